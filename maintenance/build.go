package maintenance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/hivesink/hivesink/format/parquet"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
)

// build makes a target's file durable under its hidden name and verifies it
// (MT1).
func (c *compaction) build(ctx context.Context, h *handles, p *plan, pl *place, t *target) error {
	files, err := c.open(h, p, t)
	if err != nil {
		return err
	}
	t.footer = c.footer(p, t)
	name := pl.staged(t.File)
	if err := c.writeFile(ctx, t, files, name); err != nil {
		return fmt.Errorf("write %s: %w", t.File, err)
	}
	if len(t.inputs) > 0 { // new files look like the old ones
		if err := c.FS.Mimic(path.Join(c.Root, p.rel, t.inputs[0].Name), name); err != nil {
			return err
		}
	}
	if err := c.verify(ctx, t, files, name); err != nil {
		return fmt.Errorf("verify %s, made of %d files (%s): %w", t.File, len(t.inputs), t.Mode, err)
	}
	c.Stats.Files.Add(int64(len(t.inputs)))
	c.Stats.Rows.Add(t.Rows)
	for _, d := range t.inputs {
		d.file = nil // the footers of many files are large
	}
	return nil
}

func (c *compaction) writeFile(ctx context.Context, t *target, files []*parquetfile.File, name string) (err error) {
	f, err := c.FS.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	w := bufio.NewWriterSize(f, 256<<10)
	info, err := c.write(ctx, t, files, w)
	if err != nil {
		return err
	}
	if info.Rows != t.Rows {
		return fmt.Errorf("%d rows were written, the inputs have %d", info.Rows, t.Rows)
	}
	t.BytesOut = info.Bytes
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Sync()
}

// verify reads the new file back and compares it with the inputs: rows, schema,
// the nulls of each column where statistics have them, and whether its pages
// have the values that the footer counts.
func (c *compaction) verify(ctx context.Context, t *target, inputs []*parquetfile.File, name string) error {
	r, err := c.FS.Open(name)
	if err != nil {
		return err
	}
	defer r.Close()
	if r.Size() != t.BytesOut {
		return fmt.Errorf("it has %d bytes, %d were written", r.Size(), t.BytesOut)
	}
	f, err := parquetfile.Open(r, r.Size())
	if err != nil {
		return err
	}
	if err := f.CheckPages(ctx); err != nil {
		return err
	}
	if t.Mode == ModeRewrite {
		return c.Columns.Verify(f, t.Rows)
	}
	if f.Rows() != t.Rows {
		return fmt.Errorf("it has %d rows, the inputs %d", f.Rows(), t.Rows)
	}
	if err := parquetfile.Same([]*parquetfile.File{inputs[0], f}); err != nil {
		return err
	}
	return sameNulls(ctx, inputs, f)
}

func sameNulls(ctx context.Context, inputs []*parquetfile.File, out *parquetfile.File) error {
	got, leaves := out.Nulls(), out.Leaves()
	want := make([]int64, len(got))
	for _, f := range inputs {
		for k, n := range f.Nulls() {
			if n < 0 || want[k] < 0 {
				want[k] = -1
			} else {
				want[k] += n
			}
		}
	}
	for k := range want {
		// Some writers leave the count out, which reads as none; some count wrongly.
		if want[k] <= 0 || got[k] < 0 || got[k] == want[k] {
			continue
		}
		before, err := countNulls(ctx, inputs, k)
		if err != nil {
			return err
		}
		after, err := countNulls(ctx, []*parquetfile.File{out}, k)
		if err != nil {
			return err
		}
		if after != before {
			return fmt.Errorf("column %s has %d nulls, in the inputs %d", leaves[k], after, before)
		}
	}
	return nil
}

func countNulls(ctx context.Context, files []*parquetfile.File, leaf int) (sum int64, err error) {
	for _, f := range files {
		n, err := f.CountNulls(ctx, leaf)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// footer is the sum of the inputs' audit footers, when all have one of this
// place: the log's, or in a table whose log is gone one another's.
func (c *compaction) footer(p *plan, t *target) *ledger.Footer {
	first := t.inputs[0].footer
	if first == nil {
		return nil
	}
	sum := &ledger.Footer{Pipeline: first.Pipeline, TableID: first.TableID, Epoch: first.Epoch, Table: first.Table, Partition: first.Partition}
	if c.Log != nil {
		sum.Pipeline, sum.Epoch = c.owner.Pipeline, c.Log.Epoch()
	}
	for _, d := range t.inputs {
		f := d.footer
		if f == nil || f.TableID != sum.TableID || f.Table != sum.Table || f.Partition != sum.Partition {
			return nil
		}
		sum.Epoch = max(sum.Epoch, f.Epoch)
		sum.Merge(f)
	}
	return sum
}

// carry brings all that is not replaced into the new directory: links where
// they can be, copies elsewhere.
func (c *compaction) carry(p *plan, pl *place) error {
	replaced := make(map[string]bool)
	for _, t := range p.targets {
		for _, d := range t.inputs {
			replaced[d.Name] = true
		}
	}
	var made []string
	for _, e := range p.entries {
		from, to := path.Join(pl.partition(), e.Name), path.Join(pl.dir(), e.Name)
		switch {
		case replaced[e.Name]:
		case e.Dir:
			if err := c.FS.Mkdir(to); err != nil {
				return err
			}
			if err := c.FS.Mimic(from, to); err != nil {
				return err
			}
			made = append(made, to)
		default:
			if err := c.bring(from, to); err != nil {
				return err
			}
		}
	}
	for _, dir := range made {
		if err := c.FS.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// bring links a file, or copies it where it cannot be linked.
func (c *compaction) bring(from, to string) error {
	err := c.FS.Link(from, to)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	r, err := c.FS.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := c.FS.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, io.NewSectionReader(r, 0, r.Size()))
	if err == nil {
		err = w.Sync()
	}
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = c.FS.Mimic(from, to)
	}
	return err
}

// unchanged says whether the partition is still what was planned (MT5).
func (c *compaction) unchanged(p *plan) error {
	now, err := snapshot(c.FS, path.Join(c.Root, p.rel), p.rel != "")
	if errors.Is(err, storage.ErrNotExist) {
		return leaveAlone("it was removed while it was being compacted")
	}
	if err != nil {
		return err
	}
	if change := difference(p, now); change != "" {
		return leaveAlone("it changed while it was being compacted: %s; another program may be writing here", change)
	}
	return nil
}

// difference names the first change that matters: anything in a directory that
// is exchanged; in the table's root the files that are to go.
func difference(p *plan, now []entry) string {
	was := make(map[string]entry, len(p.entries))
	for _, e := range p.entries {
		was[e.Name] = e
	}
	inputs := make(map[string]bool)
	for _, t := range p.targets {
		for _, d := range t.inputs {
			inputs[d.Name] = true
		}
	}
	root := p.rel == ""
	for _, e := range now {
		old, known := was[e.Name]
		delete(was, e.Name)
		switch {
		case root && !inputs[e.Name]:
		case !known:
			return e.Name + " is new"
		case e != old:
			return e.Name + " is another file now"
		}
	}
	for name := range was {
		if !root || inputs[name] {
			return strings.TrimSpace(name + " is gone")
		}
	}
	return ""
}
