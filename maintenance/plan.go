package maintenance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/hivesink/hivesink/coordinator"
	"github.com/hivesink/hivesink/format/parquet"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
)

// alone is why a partition is left alone.
type alone struct{ reason string }

func (a alone) Error() string { return a.reason }

func leaveAlone(format string, args ...any) error { return alone{fmt.Sprintf(format, args...)} }

// entry describes one name in a directory, as it was when that was planned.
type entry struct {
	Name string `json:"name"` // below the directory
	Size int64  `json:"size,omitempty"`
	Time int64  `json:"time,omitempty"` // of its last change, nanoseconds
	Dir  bool   `json:"dir,omitempty"`
}

// dataFile is a visible Parquet file.
type dataFile struct {
	entry
	rows    int64
	class   int    // files of one class have the same schema
	reading int    // in plan.readings
	memory  int64  // about what its open footer takes
	groups  int    // its row groups
	coarse  string // why its row groups are worth joining though it is alone; "" when they are not
	footer  *ledger.Footer
	file    *parquetfile.File // nil when there are too many to keep
}

// target is a file to be made of some of them.
type target struct {
	inputs []*dataFile
	Target
	footer *ledger.Footer // of the new file; nil without
}

// plan is what is to happen to a directory.
type plan struct {
	directory
	entries  []entry // all that is in it
	data     []*dataFile
	readings []reading // of the data files
	kept     []*dataFile
	targets  []*target
	reason   string // why there is nothing to do
}

// keepShare of the target size: a file as large as that is left as it is. What
// little would go in beside it does not pay for its bytes.
const keepShare = 0.75

// An open footer takes about so much memory, and so much for each column chunk,
// twice: its own and what the target's footer has of it. Measured with 5,000
// files of 7 columns: 2.4 KB each.
const (
	footerBytes = 1 << 10
	chunkBytes  = 2 * 350
)

// keepFooters is how many footers of a directory are kept from planning to
// building; of more, each is read again.
const keepFooters = 2000

// plan looks at a directory and decides. Errors: alone, or the partition fails.
func (c *compaction) plan(ctx context.Context, h *handles, d directory) (*plan, error) {
	p := &plan{directory: d}
	var err error
	if p.entries, err = snapshot(c.FS, path.Join(c.Root, d.rel), d.rel != ""); err != nil {
		return p, err
	}
	if err := c.readFooters(ctx, h, p); err != nil {
		return p, err
	}
	if len(p.data) == 0 {
		p.reason = "no Parquet files"
		return p, nil
	}
	if err := c.knownToLog(p); err != nil {
		return p, err
	}
	return p, c.pack(h, p)
}

// snapshot lists a directory; deep also what is in the directories in it.
func snapshot(fs storage.FS, dir string, deep bool) ([]entry, error) {
	return snapshotBelow(fs, dir, "", deep)
}

func snapshotBelow(fs storage.FS, dir, rel string, deep bool) ([]entry, error) {
	infos, err := fs.List(path.Join(dir, rel))
	if err != nil {
		return nil, err
	}
	out := make([]entry, 0, len(infos))
	for _, info := range infos {
		name := path.Join(rel, info.Name)
		if name == layout.CompactMarker {
			continue
		}
		switch {
		case info.Irregular:
			if !layout.Hidden(info.Name) {
				return nil, leaveAlone("%s is neither a file nor a directory (a symbolic link?)", name)
			}
			out = append(out, entry{Name: name, Time: info.ModTime.UnixNano()})
		case info.Dir:
			out = append(out, entry{Name: name, Dir: true})
			if !deep {
				continue
			}
			below, err := snapshotBelow(fs, dir, name, deep)
			if err != nil {
				return nil, err
			}
			out = append(out, below...)
		default:
			out = append(out, entry{Name: name, Size: info.Size, Time: info.ModTime.UnixNano()})
		}
		if atWork(info.Name) && deep {
			return nil, leaveAlone("another program seems to write here: %s", name)
		}
	}
	return out, nil
}

// visibleFile: the entry is a visible file in the directory itself.
func (e *entry) visibleFile() bool {
	return !e.Dir && !layout.Hidden(e.Name) && !strings.Contains(e.Name, "/")
}

// parquetName: a reader of *.parquet opens it, so that it must be one.
func parquetName(name string) bool {
	for _, ext := range []string{layout.PartExt, ".parq", ".pq"} {
		if strings.HasSuffix(strings.ToLower(name), ext) {
			return true
		}
	}
	return false
}

// readFooters finds the data files among the entries. One that says by its name
// that it is one and cannot be read makes the partition fail (MT6).
func (c *compaction) readFooters(ctx context.Context, h *handles, p *plan) error {
	classes := []*parquetfile.File{}
	var damaged []error
	encrypted := ""
	for i := range p.entries {
		e := &p.entries[i]
		if !e.visibleFile() {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		in := input{h, path.Join(c.Root, p.rel, e.Name)}
		if !parquetName(e.Name) {
			if ok, err := magic(in, e.Size); err != nil {
				return err
			} else if !ok {
				continue // another file
			}
		}
		f, err := parquetfile.Open(in, e.Size)
		if err == nil {
			var d *dataFile
			if d, err = describe(*e, f, &classes); err == nil {
				d.reading = numberOf(&p.readings, readingOf(f))
				if p.data = append(p.data, d); len(p.data) > keepFooters {
					forget(p.data)
				}
				continue
			}
		}
		if errors.Is(err, parquetfile.ErrEncrypted) {
			encrypted = e.Name
			continue
		}
		damaged = append(damaged, fmt.Errorf("%s: %w", e.Name, err))
	}
	if damaged == nil && encrypted != "" {
		return isEncrypted(encrypted)
	}
	return errors.Join(damaged...)
}

func isEncrypted(name string) error {
	return leaveAlone("%s is encrypted, and encrypted files are not joined", name)
}

// forget drops footers that are kept; they are read again when they are needed.
func forget(data []*dataFile) {
	for i := len(data) - 1; i >= 0 && (data[i].file != nil || i == len(data)-1); i-- {
		data[i].file = nil
	}
}

func magic(in input, size int64) (bool, error) {
	var head [4]byte
	if size < int64(len(head)) {
		return false, nil
	}
	if _, err := in.ReadAt(head[:], 0); err != nil {
		return false, err
	}
	return bytes.Equal(head[:], []byte("PAR1")), nil
}

func describe(e entry, f *parquetfile.File, classes *[]*parquetfile.File) (*dataFile, error) {
	d := &dataFile{entry: e, rows: f.Rows(), file: f, class: -1}
	footer, ok, err := ledger.DecodeFooter(f.Meta())
	if err != nil {
		return nil, err
	}
	if ok {
		d.footer = footer
	}
	for i, other := range *classes {
		if parquetfile.Same([]*parquetfile.File{other, f}) == nil {
			d.class = i
			break
		}
	}
	if d.class < 0 {
		d.class = len(*classes)
		*classes = append(*classes, f)
	}
	d.coarse = coarse(f)
	d.groups = len(f.RowGroups())
	d.memory = footerBytes + chunkBytes*int64(len(f.Leaves())*d.groups)
	return d, nil
}

// coarse says why a single file is worth writing anew: many row groups that
// would become fewer. Our own files are as good as they get.
func coarse(f *parquetfile.File) string {
	if len(f.RowGroups()) < 2 || strings.HasPrefix(f.CreatedBy(), "hivesink") || !f.Coarse() {
		return ""
	}
	mode, why := parquetfile.Advise([]*parquetfile.File{f}, parquetfile.JoinOptions{Codec: "none", KeepCodec: true})
	if mode == parquetfile.ModeCopy {
		return ""
	}
	return why
}

// knownToLog keeps MT8: the files are those that the log counts.
func (c *compaction) knownToLog(p *plan) error {
	if c.state == nil {
		return nil
	}
	var rows int64
	for _, d := range p.data {
		if d.footer == nil || d.footer.Partition != p.rel || d.footer.Table != ledger.MainTable || d.footer.TableID != c.owner.Table {
			return fmt.Errorf("%s was not written by this table's pipeline: run `hivesink fsck`", d.Name)
		}
		rows += d.rows
	}
	c.logMu.Lock()
	defer c.logMu.Unlock()
	st := c.state
	for id, u := range st.Units {
		if u.Table == ledger.MainTable && u.Partition == p.rel && !u.Published {
			return leaveAlone("unit %s is planned and not published yet; run the pipeline, or `hivesink drain`", id)
		}
	}
	known := st.Partitions[ledger.PartitionKey(ledger.MainTable, p.rel)]
	if known == nil {
		return errors.New("the table log does not know it: run `hivesink fsck`")
	}
	if known.Files != int64(len(p.data)) || known.Rows != rows {
		return fmt.Errorf("it has %d files with %d rows, the table log says %d with %d: run `hivesink fsck`",
			len(p.data), rows, known.Files, known.Rows)
	}
	return nil
}

// pack puts small files together, first-fit in the order of their names, and
// leaves the others as they are.
func (c *compaction) pack(h *handles, p *plan) error {
	keep := int64(float64(c.FileSize) * keepShare)
	type group struct{ reading, class int }
	groups := map[group][]*dataFile{}
	var order []group
	large := 0
	for _, d := range p.data {
		if d.Size >= keep {
			large++
			if d.coarse != "" {
				p.targets = append(p.targets, &target{inputs: []*dataFile{d}})
			} else {
				p.kept = append(p.kept, d)
			}
			continue
		}
		g := group{reading: d.reading} // MT11
		if c.Columns == nil {
			g.class = d.class // nothing says what files of two schemas are together
		}
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], d)
	}
	for _, g := range order {
		files := groups[g]
		weights := make([]int64, len(files))
		for i, d := range files {
			weights[i] = d.Size
		}
		for _, bin := range coordinator.Pack(weights, c.FileSize) {
			inputs := make([]*dataFile, len(bin))
			for k, i := range bin {
				inputs[k] = files[i]
			}
			for _, part := range c.bounded(inputs) {
				if len(part) == 1 && part[0].coarse == "" {
					p.kept = append(p.kept, part[0])
				} else {
					p.targets = append(p.targets, &target{inputs: part})
				}
			}
		}
	}
	why := apart(p.readings)
	if len(p.targets) == 0 {
		if p.reason = nothingToDo(p, large); why != "" && large < len(p.data) {
			p.reason += "; " + why
		}
	}
	for _, t := range p.targets {
		if err := c.choose(h, p, t); err != nil {
			return err
		}
		if why != "" {
			t.Why += "; " + why
		}
	}
	return nil
}

// mostRowGroups is how many row groups a file may have: some readers number them
// with 16 bits.
const mostRowGroups = 1<<15 - 1

// bounded divides a bin whose open footers would take more memory than a target
// may have, or that has too many row groups. What comes of it is packed further by
// the next run.
func (c *compaction) bounded(inputs []*dataFile) (out [][]*dataFile) {
	from, memory, groups := 0, int64(0), 0
	for i, d := range inputs {
		memory, groups = memory+d.memory, groups+d.groups
		if (memory > c.FooterMemory && c.FooterMemory > 0 || groups > mostRowGroups) && i > from {
			out = append(out, inputs[from:i])
			from, memory, groups = i, d.memory, d.groups
		}
	}
	return append(out, inputs[from:])
}

func nothingToDo(p *plan, large int) string {
	switch n := len(p.data); {
	case n == 1:
		return "one file"
	case large == n:
		return fmt.Sprintf("%d files, all of them large", n)
	case large >= n-1:
		return fmt.Sprintf("%d files, all but one of them large", n)
	}
	return fmt.Sprintf("no two of its %d files fit into one", len(p.data))
}

// choose picks a target's mode.
func (c *compaction) choose(h *handles, p *plan, t *target) error {
	files, err := c.open(h, p, t)
	if err != nil {
		return err
	}
	t.Inputs = len(t.inputs)
	for i, d := range t.inputs {
		if files[i].Encrypted() {
			return isEncrypted(d.Name)
		}
		t.Rows += d.rows
		t.BytesIn += d.Size
	}
	differ := parquetfile.Same(files)
	if differ == nil {
		t.Mode, t.Why = parquetfile.Advise(files, c.join(files, nil))
		return nil
	}
	t.Mode, t.Why = ModeRewrite, "the schemas differ: "+differ.Error()
	if r := &p.readings[t.inputs[0].reading]; r.legacy() {
		// Times may become of another type, of which the footer says nothing.
		return leaveAlone("the schemas differ, and dates or times of %s are counted by an old calendar or shifted by a zone, which is kept only where files are joined as they are", t.inputs[0].Name)
	}
	for i, f := range files {
		if err := c.Columns.Takes(f); err != nil {
			return leaveAlone("%s cannot be read as the table's columns: %v", t.inputs[i].Name, err)
		}
	}
	return nil
}

// open returns the inputs' footers, read again where they were not kept.
func (c *compaction) open(h *handles, p *plan, t *target) ([]*parquetfile.File, error) {
	files := make([]*parquetfile.File, len(t.inputs))
	for i, d := range t.inputs {
		files[i] = d.file
		if d.file != nil {
			continue
		}
		f, err := parquetfile.Open(input{h, path.Join(c.Root, p.rel, d.Name)}, d.Size)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Name, err)
		}
		files[i] = f
	}
	return files, nil
}
