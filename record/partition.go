package record

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
)

// Partition is where records go: one directory of the table. It is never
// changed once it was handed out, and stays valid after Reset.
type Partition struct {
	Path   string   // below the table, "" when the table has no partition columns
	Names  []string // of the partition columns, lower case
	Values []string // as the catalogue has them: not escaped, layout.DefaultPartition for null
	// Closes is when the partition's time is complete, in microseconds: the
	// watermark must be at Closes + the commit delay. It is the end of the
	// period the values name; with a time extractor, and for identity columns,
	// 1 µs after the time they name (the reference sink wants the watermark
	// past it). 0: no known period.
	Closes int64
}

// RouteError is a row that has no partition.
type RouteError struct {
	Row    int    // of the batch
	Class  string // ClassPartition, or ClassType for text that cannot be in a name
	Reason string // names the column
}

// Partitioner finds the partition of each row of a batch. It numbers the
// partitions it meets and remembers them until Reset. Not safe for use by
// several goroutines.
//
//   - P1: the same directory has the same number until Reset, whatever values
//     name it (null, the empty text, the default partition's own name), and no
//     two directories share one.
//   - P2: a row whose values are known costs no allocation.
//   - P3: a row has a number, or a RouteError: never a cut or altered name. The
//     table log and catalogues hold names as UTF-8, so what is not has none; nor
//     has what the storage would not take (Limit).
type Partitioner struct {
	spec    []layout.Transform
	names   []string
	zone    *time.Location
	ex      *layout.TimeExtractor
	index   []int // of each partition column's source, in Schema.Columns
	columns []column
	ids     [][]int32 // of the batch: per column, per row; -1: no directory has such a name
	levels  []level   // how ids of columns 0..i make one number
	parts   []*Partition
	keys    []int64 // scratch of the columns
	limits  layout.Limits
	long    bool // a row of the batch was refused for its path
}

// column gives each value of a column of Arrow data a small number.
type column interface {
	// assign sets out[i] to the number of row i, or -1.
	assign(arr arrow.Array, out []int32)
	value(id int32) string
	// refused says why row i got -1.
	refused(arr arrow.Array, i int) (class, reason string)
	reset()
}

// level joins the number so far with the id of the next column.
type level struct {
	known   map[uint64]int32
	lastKey uint64
	lastID  int32
}

// NewPartitioner makes a Partitioner for a table's schema. zone is that of the
// transforms (nil: UTC); ex may be nil. Errors are of class fault.Config.
func NewPartitioner(s *Schema, spec []layout.Transform, zone *time.Location, ex *layout.TimeExtractor) (*Partitioner, error) {
	if zone == nil {
		zone = time.UTC
	}
	p := &Partitioner{spec: spec, zone: zone, ex: ex}
	for _, t := range spec {
		name := strings.ToLower(t.Name)
		at := slices.IndexFunc(s.Columns, func(f hivetype.Field) bool { return f.Name == t.Column })
		if err := checkSpec(s, p.names, name, at, t); err != nil {
			return nil, err
		}
		c, err := newColumn(name, s.Columns[at].Type, t, zone, &p.keys, &p.limits)
		if err != nil {
			return nil, fault.New(fault.Config, "", "partition column %s: %w", name, err)
		}
		p.names = append(p.names, name)
		p.index = append(p.index, at)
		p.columns = append(p.columns, c)
	}
	if ex != nil && len(spec) > 0 {
		if err := ex.Check(p.names); err != nil {
			return nil, fault.Wrap(fault.Config, "", fmt.Errorf("time extractor: %w", err))
		}
	}
	if ex == nil && len(spec) > 0 && spec[0].Func == layout.Identity && !layout.NamesPeriod(spec) {
		p.ex = new(layout.TimeExtractor) // the reference's rule: the first value is a time
	}
	p.ids = make([][]int32, len(spec))
	p.levels = make([]level, len(spec))
	p.Reset()
	return p, nil
}

// checkSpec refuses partition columns that no reader would find.
func checkSpec(s *Schema, before []string, name string, at int, t layout.Transform) error {
	switch {
	case at < 0:
		return fault.New(fault.Config, "", "partition column %s: the table has no column %q", name, t.Column)
	case slices.Contains(before, name):
		return fault.New(fault.Config, "", "partition column %s is listed twice", name)
	case layout.Hidden(name):
		return fault.New(fault.Config, "rename it", "partition column %s: readers pass over directories that start with %q", name, name[:1])
	case len(layout.PartitionPath([]string{name}, []string{""})) > layout.MaxComponent:
		return fault.New(fault.Config, "shorten it", "partition column %.40s…: the name alone is too long for a directory", name)
	case t.Func == layout.Identity && name != t.Column:
		return fault.New(fault.Config, "", "partition column %s: a column is a partition column under its own name, %s", name, t.Column)
	case t.Func != layout.Identity && slices.ContainsFunc(s.Columns, func(f hivetype.Field) bool { return f.Name == name }):
		return fault.New(fault.Config, "give the partition column another name", "partition column %s is also a column of the table", name)
	}
	return nil
}

// Limit sets what the storage takes, before the first row comes.
func (p *Partitioner) Limit(l layout.Limits) { p.limits = l }

// Len is how many partitions have a number; they are 0 to Len()-1.
func (p *Partitioner) Len() int { return len(p.parts) }

// Partition is the partition of a number.
func (p *Partitioner) Partition(n int32) *Partition { return p.parts[n] }

// Reset forgets all numbers, and with them the memory they take.
func (p *Partitioner) Reset() {
	p.parts = nil
	for i := range p.levels {
		p.levels[i] = level{known: make(map[uint64]int32), lastKey: noKey}
	}
	for _, c := range p.columns {
		c.reset()
	}
}

// noKey is no key of a level: ids are not negative.
const noKey = ^uint64(0)

// Assign sets out[i] to the number of row i's partition; out is at least as
// long as rec. A row whose directory cannot have a name gets -1 and is in bad,
// ascending.
func (p *Partitioner) Assign(rec arrow.RecordBatch, out []int32) (bad []RouteError) {
	n := int(rec.NumRows())
	out = out[:n]
	if len(p.columns) == 0 {
		if len(p.parts) == 0 {
			p.parts = append(p.parts, &Partition{})
		}
		clear(out)
		return nil
	}
	for k, c := range p.columns {
		if cap(p.ids[k]) < n {
			p.ids[k] = make([]int32, n)
		}
		p.ids[k] = p.ids[k][:n]
		arr := rec.Column(p.index[k])
		c.assign(arr, p.ids[k])
		bad = appendBad(bad, c, arr, p.ids[k])
	}
	if len(bad) > 0 {
		// P3: one error a row, however many of its values are refused.
		slices.SortStableFunc(bad, func(a, b RouteError) int { return cmp.Compare(a.Row, b.Row) })
		bad = slices.CompactFunc(bad, func(a, b RouteError) bool { return a.Row == b.Row })
		for _, e := range bad {
			p.ids[0][e.Row] = -1
		}
	}
	copy(out, p.ids[0])
	p.long = false
	for k := 1; k < len(p.columns)-1; k++ {
		p.join(k, out, nil)
	}
	p.join(len(p.columns)-1, out, p.newPartition)
	if p.long {
		return p.appendLong(bad, out)
	}
	return bad
}

// appendLong appends the rows that were refused for the path of their partition.
func (p *Partitioner) appendLong(bad []RouteError, out []int32) []RouteError {
	for i, id := range out {
		if id < 0 && p.ids[0][i] >= 0 {
			bad = append(bad, RouteError{Row: i, Class: ClassPartition,
				Reason: fmt.Sprintf("the path of its partition has more bytes than the %d that the storage has room for", p.limits.Path)})
		}
	}
	slices.SortFunc(bad, func(a, b RouteError) int { return cmp.Compare(a.Row, b.Row) })
	return bad
}

func appendBad(bad []RouteError, c column, arr arrow.Array, ids []int32) []RouteError {
	for i, id := range ids {
		if id < 0 {
			class, reason := c.refused(arr, i)
			bad = append(bad, RouteError{Row: i, Class: class, Reason: reason})
		}
	}
	return bad
}

// join makes the numbers so far and the ids of column k into one number; rows
// of a negative number keep it. Of the last column the number is the
// partition's.
func (p *Partitioner) join(k int, out []int32, create func(row int) int32) {
	l := &p.levels[k]
	ids := p.ids[k]
	for i, id := range out {
		if id < 0 {
			continue
		}
		key := uint64(uint32(ids[i]))
		if k > 0 {
			key |= uint64(uint32(id)) << 32
		}
		if key != l.lastKey {
			next, ok := l.known[key]
			if !ok {
				if create != nil {
					if next = create(i); next < 0 { // not remembered: such values may be many
						out[i] = next
						continue
					}
				} else {
					next = int32(len(l.known))
				}
				l.known[key] = next
			}
			l.lastKey, l.lastID = key, next
		}
		out[i] = l.lastID
	}
}

// newPartition numbers the partition of a row of the batch; -1 when the storage
// does not take its path.
func (p *Partitioner) newPartition(row int) int32 {
	part := &Partition{Names: p.names, Values: make([]string, len(p.columns))}
	for k, c := range p.columns {
		part.Values[k] = c.value(p.ids[k][row])
	}
	part.Path = layout.PartitionPath(part.Names, part.Values)
	if !p.limits.TakesPath(part.Path) {
		p.long = true
		return -1
	}
	part.Closes = p.closes(part.Values)
	p.parts = append(p.parts, part)
	return int32(len(p.parts) - 1)
}

// ClosesNow is Partition.Closes of a partition whose parts say recorded. What
// they say stays, since zone and transforms apply to new parts only. But where
// they know of no period, the configuration of now may: a time extractor that
// could not read the values and was mended, or one that was added.
func (p *Partitioner) ClosesNow(path string, recorded int64) int64 {
	if recorded != 0 || path == "" {
		return recorded
	}
	names, values, err := layout.ParsePath(path)
	if err != nil || !slices.Equal(names, p.names) {
		return recorded
	}
	return p.closes(values)
}

// closes is Partition.Closes of these values.
func (p *Partitioner) closes(values []string) int64 {
	var at int64
	if p.ex != nil {
		start, err := p.ex.Extract(p.names, values, p.zone)
		if err != nil {
			return 0 // it is complete at end of input only, like the default partition
		}
		at = start + 1
	} else {
		_, end, ok := layout.Period(p.spec, values, p.zone)
		if !ok {
			return 0
		}
		at = end
	}
	if at == 0 {
		return 1 // 1970-01-01 00:00:00: 0 means that there is no period
	}
	return at
}
