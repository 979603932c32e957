package compactor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/hivesink/hivesink/format/parquet"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
)

// Options are what all units of a process share.
type Options struct {
	FS storage.FS
	// Objects is the storage, when it is an object store, else nil; and Room where
	// a target waits there until it is whole and verified.
	Objects   storage.Objects
	Room      func() storage.Scratch
	Staging   string // the owner's staging directory
	Pipeline  string
	TableID   string
	Epoch     uint64
	Codec     string // of published files
	CreatedBy string
	// Syncs is how many directories Publish syncs at once: a file system makes
	// those that are asked for together durable together. 0: one by one.
	Syncs int
	// OpenInputs is how many inputs each worker may have open; 0: OpenInputs.
	OpenInputs int
	// Throttle bounds what all workers read; nil: no limit.
	Throttle *Throttle
	// Schema is the Parquet schema of a table (ledger.MainTable, …).
	Schema func(table string) *parquetfile.Schema
	// Location is the root directory of a table.
	Location func(table string) string
}

// Input is a part with the place it lies in.
type Input struct {
	ledger.Part
	Path string
}

// Job is a unit with its inputs.
type Job struct {
	Unit    ledger.Unit
	Inputs  []Input
	Attempt int
}

// Built is a durable, verified, still hidden target.
type Built struct {
	Unit   ledger.Unit
	Path   string // staged file; in mode publish the input
	Upload string // on an object store: the id of the hidden upload to the target
	Mode   string
	Bytes  int64
	Footer ledger.Footer

	own bool // it has the columns of its inputs, not the table's (C7)
}

// TargetError says that a unit's inputs are there, and that no good target came
// of them.
type TargetError struct{ Err error }

func (e *TargetError) Error() string { return e.Err.Error() }

func (e *TargetError) Unwrap() error { return e.Err }

// Choose picks the cheapest mode that gives a good file: publish when the one
// input already has the table's encoding; merge when some have it, whose pages
// need not be encoded again; rewrite when all are in the hidden parts' encoding,
// of which every value is encoded for the first time.
func Choose(inputs []*ledger.Part, codec string) (mode, why string) {
	final := 0
	for _, p := range inputs {
		if p.Final && p.Codec == codec {
			final++
		}
	}
	switch {
	case len(inputs) == 1 && final == 1:
		return ledger.ModePublish, "one input in the table's encoding"
	case final > 0:
		return ledger.ModeMerge, fmt.Sprintf("%d of %d inputs in the table's encoding", final, len(inputs))
	case len(inputs) == 1:
		return ledger.ModeRewrite, "one input in another encoding than the table's"
	}
	return ledger.ModeRewrite, fmt.Sprintf("%d inputs in another encoding than the table's", len(inputs))
}

// Build makes the unit's target durable in the staging directory and verifies
// it. A missing or damaged input halts: the log says that it is there.
func (o *Options) Build(ctx context.Context, j Job) (*Built, error) {
	b := &Built{Unit: j.Unit, Mode: j.Unit.Mode}
	b.Footer = ledger.Footer{Pipeline: o.Pipeline, TableID: o.TableID, Epoch: o.Epoch, Table: j.Unit.Table, Partition: j.Unit.Partition}
	files := make([]*parquetfile.File, len(j.Inputs))
	inputs := o.newShelf(ctx, &j.Unit)
	defer inputs.close()
	for i := range j.Inputs {
		in := &j.Inputs[i]
		r, err := inputs.add(in)
		if err != nil {
			return nil, o.inputError(j, in, err)
		}
		f, footer, err := check(r, in.Rows, []string{in.ID}, in.Partition)
		if err != nil {
			return nil, o.inputError(j, in, err)
		}
		files[i] = f
		b.Footer.Merge(footer)
		b.Bytes += in.Bytes
	}
	if j.Unit.Mode == ledger.ModePublish {
		if len(j.Inputs) != 1 || j.Inputs[0].Bundle {
			return nil, fault.New(fault.Halt, "", "unit %s: mode publish takes one input with a file of its own, it has %d", j.Unit.ID, len(j.Inputs))
		}
		b.Path = j.Inputs[0].Path
		if o.Objects == nil {
			return b, nil
		}
		return b, o.copyUp(ctx, j, b)
	}
	var err error
	if b.own, err = o.keepsColumns(j, files); err == nil {
		err = o.build(ctx, j, files, b)
	}
	if err != nil {
		return nil, &TargetError{err}
	}
	return b, nil
}

// keepsColumns says whether the target has the columns of its inputs because
// those of the table have been changed since, and something of the inputs would
// be lost (C7).
func (o *Options) keepsColumns(j Job, files []*parquetfile.File) (bool, error) {
	s := o.Schema(j.Unit.Table)
	inPath, _, err := layout.ParsePath(j.Unit.Partition)
	if err != nil {
		return false, err
	}
	for i := range j.Inputs {
		if j.Inputs[i].Schema == s.ID() {
			continue
		}
		lost := s.Takes(files[i])
		if k := slices.IndexFunc(inPath, func(name string) bool { return s.Adds(files[i], name) }); lost == nil && k >= 0 {
			lost = fmt.Errorf("column %s: its value is in the path, and would be null", inPath[k])
		}
		if lost != nil {
			if err := parquetfile.Same(files); err != nil {
				return false, fmt.Errorf("unit %s of partition %q: its inputs have different columns (%w), which the table's are not all of: %w", j.Unit.ID, j.Unit.Partition, err, lost)
			}
			return true, nil
		}
	}
	return false, nil
}

func (o *Options) open(in *Input) (storage.Reader, error) {
	if in.Bundle {
		return storage.OpenSlice(o.FS, in.Path, in.Offset, in.Bytes)
	}
	return o.FS.Open(in.Path)
}

func (o *Options) inputError(j Job, in *Input, err error) error {
	class, hint := fault.Halt, "run fsck to see which rows are affected"
	if errors.Is(err, storage.ErrNoSpace) {
		class = fault.Retry
	}
	if storage.Unanswered(err) && !errors.Is(err, storage.ErrNotExist) {
		hint = "start again when the storage answers"
	}
	return fault.Wrap(class, hint,
		fmt.Errorf("unit %s of partition %q: input %s (%d rows): %w", j.Unit.ID, j.Unit.Partition, in.Path, in.Rows, err))
}

// build writes the inputs as one file (C4) and verifies it.
func (o *Options) build(ctx context.Context, j Job, files []*parquetfile.File, b *Built) error {
	meta, err := b.Footer.Encode()
	if err != nil {
		return err
	}
	if o.Objects != nil {
		return o.buildUp(ctx, j, files, b, meta)
	}
	b.Path = path.Join(o.Staging, layout.StagedTarget(j.Unit.ID, j.Attempt))
	if err := o.writeTarget(ctx, j, files, b, meta); err != nil {
		return storage.Classify(fmt.Errorf("unit %s of partition %q: write target: %w", j.Unit.ID, j.Unit.Partition, err))
	}
	r, err := o.FS.Open(b.Path)
	if err != nil {
		return fmt.Errorf("unit %s: verify target: %w", j.Unit.ID, err)
	}
	err = o.verify(j, b, files[0], r)
	_ = r.Close() // it was read, no error can matter
	if err != nil {
		_ = o.FS.Remove(b.Path) // garbage, as in writeTarget
	}
	return err
}

// verify reads a target before anybody can see it.
func (o *Options) verify(j Job, b *Built, input *parquetfile.File, r storage.Reader) error {
	f, _, err := check(r, j.Unit.Rows, b.Footer.Leaves, j.Unit.Partition)
	if err == nil && b.own {
		err = parquetfile.Same([]*parquetfile.File{input, f})
	} else if err == nil {
		err = o.Schema(j.Unit.Table).Verify(f, j.Unit.Rows)
	}
	if err != nil {
		return fault.Wrap(fault.Halt, "the inputs are untouched", fmt.Errorf("unit %s: verify target %s: %w", j.Unit.ID, b.Path, err))
	}
	return nil
}

func (o *Options) writeTarget(ctx context.Context, j Job, files []*parquetfile.File, b *Built, meta map[string]string) (err error) {
	file, err := o.FS.Create(b.Path)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := file.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			_ = o.FS.Remove(b.Path) // garbage of this attempt; the next owner removes what stays
		}
	}()
	if err := o.fill(ctx, j, files, b, file, meta); err != nil {
		return err
	}
	return file.Sync()
}

// fill writes the target's bytes.
func (o *Options) fill(ctx context.Context, j Job, files []*parquetfile.File, b *Built, to io.Writer, meta map[string]string) error {
	w := bufio.NewWriterSize(to, 256<<10)
	info, err := o.join(ctx, j, files, b, w, meta)
	if err != nil {
		return err
	}
	if b.Mode == ledger.ModeMerge && info.Copied == info.RowGroups {
		b.Mode = ledger.ModeCopy
	}
	if info.Rows != j.Unit.Rows {
		return fmt.Errorf("the target has %d rows, the plan says %d", info.Rows, j.Unit.Rows)
	}
	b.Bytes = info.Bytes
	return w.Flush()
}

func (o *Options) join(ctx context.Context, j Job, files []*parquetfile.File, b *Built, w io.Writer, meta map[string]string) (parquetfile.Info, error) {
	s := o.Schema(j.Unit.Table)
	if b.own {
		b.Mode = ledger.ModeMerge
		said(meta, files)
		return parquetfile.Merge(ctx, files, w, parquetfile.JoinOptions{Codec: o.Codec, CreatedBy: o.CreatedBy, Meta: meta})
	}
	if j.Unit.Mode == ledger.ModeMerge || j.Unit.Mode == ledger.ModeCopy {
		return s.Merge(ctx, files, w, parquetfile.JoinOptions{Codec: o.Codec, CreatedBy: o.CreatedBy, Meta: meta})
	}
	return s.Rewrite(ctx, files, w, parquetfile.WriterOptions{Codec: o.Codec, CreatedBy: o.CreatedBy}, meta)
}

// said adds what all files say of how their values are read. The rest of what
// they say is of each by itself.
func said(meta map[string]string, files []*parquetfile.File) {
	for k, v := range files[0].Meta() { // each by itself: the order does not matter
		differs := func(f *parquetfile.File) bool { return f.Meta()[k] != v }
		if !strings.HasPrefix(k, ledger.FooterPrefix) && !slices.ContainsFunc(files, differs) {
			meta[k] = v
		}
	}
}

// check opens a data file and compares its footer with what it must be.
func check(r storage.Reader, rows int64, leaves []string, partition string) (*parquetfile.File, *ledger.Footer, error) {
	f, err := parquetfile.Open(r, r.Size())
	if err != nil {
		return nil, nil, err
	}
	if f.Rows() != rows {
		return nil, nil, fmt.Errorf("it has %d rows, the log says %d", f.Rows(), rows)
	}
	footer, ok, err := ledger.DecodeFooter(f.Meta())
	if err != nil {
		return nil, nil, err
	}
	if !ok {
		return nil, nil, errors.New("it has no audit footer: another program wrote it")
	}
	if footer.Partition != partition || !ledger.SameLeaves(footer.Leaves, leaves) {
		return nil, nil, fmt.Errorf("it holds parts %v of partition %q, the log says %v of %q",
			footer.Leaves, footer.Partition, leaves, partition)
	}
	return f, footer, nil
}
