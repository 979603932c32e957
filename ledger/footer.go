package ledger

import (
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// Footer is what every data file says of itself in its Parquet key/value
// metadata, so that the table can be audited without the log's help.
type Footer struct {
	Pipeline  string
	TableID   string // random id of the table
	Epoch     uint64 // of the process that wrote the file
	Table     string // MainTable, DeadTable, LateTable
	Partition string // partition path
	Leaves    []string
	Sources   map[string]Range
}

// FooterPrefix begins the keys of a footer in Parquet's key/value metadata.
const FooterPrefix = "hivesink."

const (
	keyPipeline  = "hivesink.pipeline"
	keyTableID   = "hivesink.table_id"
	keyEpoch     = "hivesink.epoch"
	keyTable     = "hivesink.table"
	keyPartition = "hivesink.partition"
	keyLeaves    = "hivesink.leaves"
	keySources   = "hivesink.sources"
)

// Encode returns the footer as key/value metadata.
func (f *Footer) Encode() (map[string]string, error) {
	sources, err := json.Marshal(f.Sources) // sorts the keys
	if err != nil {
		return nil, fmt.Errorf("encode the audit footer: %w", err)
	}
	return map[string]string{
		keyPipeline:  f.Pipeline,
		keyTableID:   f.TableID,
		keyEpoch:     strconv.FormatUint(f.Epoch, 10),
		keyTable:     f.Table,
		keyPartition: f.Partition,
		keyLeaves:    strings.Join(f.Leaves, ","),
		keySources:   string(sources),
	}, nil
}

// DecodeFooter reads a footer back. ok is false when the file carries none.
func DecodeFooter(meta map[string]string) (f *Footer, ok bool, err error) {
	if _, ok := meta[keyLeaves]; !ok {
		return nil, false, nil
	}
	f = &Footer{
		Pipeline:  meta[keyPipeline],
		TableID:   meta[keyTableID],
		Table:     meta[keyTable],
		Partition: meta[keyPartition],
	}
	if f.Epoch, err = strconv.ParseUint(meta[keyEpoch], 10, 64); err != nil {
		return nil, true, fmt.Errorf("audit footer: %s is %q, want a number", keyEpoch, meta[keyEpoch])
	}
	if s := meta[keyLeaves]; s != "" {
		f.Leaves = strings.Split(s, ",")
	}
	if err := json.Unmarshal([]byte(meta[keySources]), &f.Sources); err != nil {
		return nil, true, fmt.Errorf("audit footer: %s: %w", keySources, err)
	}
	return f, true, nil
}

// Merge adds what another file of the same partition holds.
func (f *Footer) Merge(o *Footer) {
	f.Leaves = append(f.Leaves, o.Leaves...)
	if f.Sources == nil {
		f.Sources = make(map[string]Range, len(o.Sources))
	}
	for name, r := range o.Sources {
		f.Sources[name] = MergeRange(f.Sources[name], r)
	}
}

// MergeRange is what two files hold together of one source partition.
func MergeRange(a, b Range) Range {
	switch {
	case a.Rows == 0:
		return b
	case b.Rows == 0:
		return a
	}
	return Range{First: min(a.First, b.First), Last: max(a.Last, b.Last), Sum: a.Sum.Add(b.Sum)}
}

// SameLeaves says whether two files were made of the same parts.
func SameLeaves(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	a, b = append([]string(nil), a...), append([]string(nil), b...)
	sort.Strings(a)
	sort.Strings(b)
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
