package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/hivesink/hivesink/format/parquet"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
)

// auditor is one fsck run.
type auditor struct {
	ctx   context.Context
	fs    storage.FS
	root  string
	rep   *Report
	files map[string]*file  // by full path
	leaf  map[string]string // leaf id → full path of the file that holds it
	sums  map[string]*sourceSums
	parts map[string]*totals // by ledger.PartitionKey, visible
	// staged are the sizes of staged files that were found: a bundle is looked
	// for once, not for each of its parts.
	staged map[ledger.StagedFile]int64
	plans  map[string]ledger.Replacement
	gone   map[string]bool // full paths of files that were replaced by others
	half   map[string]bool // partitions in which a replacement is not noted as done
	lost   bool            // a listed file was not there any more
}

type file struct {
	table     string
	partition string
	rows      int64
	footer    *ledger.Footer
}

type sourceSums struct{ accepted, dead ledger.Sum }

type totals struct{ files, rows int64 }

// tables are the table and its side tables.
var tables = []string{ledger.MainTable, ledger.LateTable, ledger.DeadTable}

// passes is how often an audit begins again because files were replaced while
// it read them.
const passes = 5

// Run audits the table at root. The error is one of access or of a damaged
// log; what is wrong with the table is in the report.
func Run(ctx context.Context, fs storage.FS, root string) (*Report, error) {
	for pass := 1; ; pass++ {
		rep, moved, err := run(ctx, fs, root)
		if err != nil || !moved {
			return rep, err
		}
		if pass == passes {
			return nil, fault.New(fault.Retry, "run it again when that is done", "the files of %s are being replaced by `hivesink compact`", root)
		}
	}
}

// run is one pass; moved: files were replaced meanwhile, so that it proves
// nothing.
func run(ctx context.Context, fs storage.FS, root string) (rep *Report, moved bool, err error) {
	a := &auditor{ctx: ctx, fs: fs, root: root, rep: &Report{Table: root, Faults: []Fault{}, Notes: []string{}},
		files: make(map[string]*file), leaf: make(map[string]string), sums: make(map[string]*sourceSums), parts: make(map[string]*totals),
		plans: make(map[string]ledger.Replacement), gone: make(map[string]bool), half: make(map[string]bool), staged: make(map[ledger.StagedFile]int64)}
	before, err := ledger.Read(fs, root)
	if err != nil {
		return nil, false, err
	}
	for _, t := range tables {
		if err := a.list(t, tableRoot(root, t), ""); err != nil {
			return nil, false, err
		}
	}
	after, err := ledger.Read(fs, root)
	if err != nil {
		return nil, false, err
	}
	if moved, err := a.replaced(before.Seq, after.Seq); err != nil || moved || a.lost && len(after.Replacements) > 0 {
		return nil, true, err
	}
	a.halfDone(after)
	if err := a.published(before.Seq, after.Seq); err != nil {
		return nil, false, err
	}
	if err := a.pending(after); err != nil {
		return nil, false, err
	}
	a.compare(after)
	if before.Seq == after.Seq {
		a.partitions(after)
	}
	return a.rep, false, a.leftovers(after)
}

func tableRoot(root, table string) string {
	if table == ledger.MainTable {
		return root
	}
	return root + "_" + table
}

// list reads every visible file below dir.
func (a *auditor) list(table, dir, rel string) error {
	entries, err := a.fs.List(dir)
	if errors.Is(err, storage.ErrNotExist) {
		return nil // a side table that was never needed
	}
	var strays *storage.StrayError
	switch {
	case errors.As(err, &strays):
		for _, key := range strays.Keys { // readers that go by prefix see them
			a.rep.fault(Unknown, key, "", 0, "what has the key %q, or a longer one, is not hivesink's, and has no path; move it out of the table", key)
		}
	case err != nil:
		return fmt.Errorf("list the table: %w", err)
	}
	for _, e := range entries {
		if err := a.ctx.Err(); err != nil {
			return err
		}
		if layout.Hidden(e.Name) {
			continue
		}
		full := path.Join(dir, e.Name)
		if e.Irregular {
			if e, err = a.behind(full); err != nil {
				return err
			}
			if e.Irregular {
				continue
			}
		}
		if e.Dir {
			if err := a.list(table, full, path.Join(rel, path.Base(full))); err != nil {
				return err
			}
			continue
		}
		if err := a.read(table, full, rel); err != nil {
			return err
		}
	}
	return nil
}

// read takes one visible file into the sums.
func (a *auditor) read(table, full, rel string) error {
	if a.files[full] != nil {
		return nil
	}
	r, err := a.fs.Open(full)
	if errors.Is(err, storage.ErrNotExist) {
		a.lost = true
		return nil // the comparison with the log finds it missing
	}
	if err != nil {
		return fmt.Errorf("read a data file: %w", err)
	}
	defer r.Close()
	pf, err := parquetfile.Open(r, r.Size())
	switch {
	case err == nil:
	case errors.Is(err, storage.ErrNotExist):
		a.lost = true // while it was read
		return nil
	case storage.Unanswered(err):
		return fmt.Errorf("read a data file: %w", err)
	default:
		if !strings.HasSuffix(full, ".parquet") {
			a.rep.fault(Unknown, full, "", 0, "%s is not a file of hivesink; move it out of the table", full)
		} else {
			a.rep.fault(Damaged, full, "", 0, "%s cannot be read: %v", full, err)
		}
		return nil
	}
	footer, ok, err := ledger.DecodeFooter(pf.Meta())
	switch {
	case err != nil:
		a.rep.fault(Damaged, full, "", pf.Rows(), "%s: %v", full, err)
		return nil
	case !ok:
		a.rep.fault(Unknown, full, "", pf.Rows(), "%s (%d rows) was not written by hivesink; move it out of the table", full, pf.Rows())
		return nil
	}
	a.take(&file{table: table, partition: rel, rows: pf.Rows(), footer: footer}, full)
	return nil
}

func (a *auditor) take(f *file, full string) {
	a.files[full] = f
	a.rep.Files++
	key := ledger.PartitionKey(f.table, f.partition)
	if a.parts[key] == nil {
		a.parts[key] = new(totals)
	}
	a.parts[key].files++
	a.parts[key].rows += f.rows
	switch f.table {
	case ledger.MainTable:
		a.rep.Rows += f.rows
	case ledger.DeadTable:
		a.rep.DeadRows += f.rows
	case ledger.LateTable:
		a.rep.LateRows += f.rows
	}
	if f.footer.Table != f.table || f.footer.Partition != f.partition {
		a.rep.fault(Misplaced, full, oneSource(f.footer), f.rows, "%s (%d rows of %s) was written for %s, not for where it lies",
			full, f.rows, sourceNames(f.footer), place(f.footer.Table, f.footer.Partition))
	}
	var rows int64
	for _, r := range f.footer.Sources {
		rows += r.Rows
	}
	if rows != f.rows {
		a.rep.fault(Damaged, full, oneSource(f.footer), rows-f.rows, "%s has %d rows, its footer says %d: %d rows of %s are missing or too many",
			full, f.rows, rows, abs(rows-f.rows), sourceNames(f.footer))
	}
	for _, id := range f.footer.Leaves {
		if other, twice := a.leaf[id]; twice {
			a.rep.fault(Doubled, full, oneSource(f.footer), f.rows, "%s (%d rows of %s) holds part %s, which %s holds too",
				full, f.rows, sourceNames(f.footer), id, other)
			return // counted once, as the other file's
		}
	}
	for _, id := range f.footer.Leaves {
		a.leaf[id] = full
	}
	for name, r := range f.footer.Sources {
		a.add(name, f.table, r.Sum)
	}
}

func (a *auditor) add(source, table string, s ledger.Sum) {
	sums := a.sums[source]
	if sums == nil {
		sums = new(sourceSums)
		a.sums[source] = sums
	}
	if table == ledger.DeadTable {
		sums.dead = sums.dead.Add(s)
	} else {
		sums.accepted = sums.accepted.Add(s)
	}
}

// published compares the files with the published facts the log still has, and
// reads those that became visible after the listing (AU-1). Later ones belong to
// checkpoints that the sums do not have.
func (a *auditor) published(listed, last uint64) error {
	return ledger.ReadLog(a.fs, a.root, func(r *ledger.Record) error {
		if r.Seq > last {
			return nil
		}
		for _, p := range r.Published {
			if err := a.one(&p, r.Seq, listed); err != nil {
				return err
			}
		}
		for _, id := range r.Replaced {
			plan := a.plans[id]
			for _, f := range plan.Added {
				p := ledger.Published{Table: plan.Table, Path: path.Join(plan.Partition, f.Name), Rows: f.Rows, Leaves: f.Leaves, Sources: f.Sources}
				if err := a.one(&p, r.Seq, listed); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// one compares one published file, of record seq, with what is there.
func (a *auditor) one(p *ledger.Published, seq, listed uint64) error {
	full := path.Join(tableRoot(a.root, p.Table), p.Path)
	if seq > listed {
		if err := a.read(p.Table, full, partitionOf(p.Path)); err != nil {
			return err
		}
	}
	f := a.files[full]
	foot := &ledger.Footer{Sources: p.Sources}
	switch {
	case a.gone[full]:
		// Its rows are in another file now, as the sums prove.
	case f == nil && a.faulted(full):
		a.missing(full, foot, p.Rows, seq)
	case f == nil:
		a.rep.fault(Vanished, full, oneSource(foot), p.Rows, "%s (%d rows of %s), published by record %d, is gone",
			full, p.Rows, sourceNames(foot), seq)
	case !ledger.SameLeaves(f.footer.Leaves, p.Leaves):
		a.rep.fault(Replaced, full, oneSource(foot), p.Rows, "%s does not hold the %d rows of %s that record %d published under that name",
			full, p.Rows, sourceNames(foot), seq)
	}
	return nil
}

// missing adds to the fault of a file that cannot be read what the log says was
// in it.
func (a *auditor) missing(full string, foot *ledger.Footer, rows int64, seq uint64) {
	i := slices.IndexFunc(a.rep.Faults, func(f Fault) bool { return f.File == full })
	f := &a.rep.Faults[i]
	f.Source, f.Rows = oneSource(foot), rows
	f.Message += fmt.Sprintf("; record %d published %d rows of %s in it", seq, rows, sourceNames(foot))
}

func partitionOf(p string) string {
	if d := path.Dir(p); d != "." {
		return d
	}
	return ""
}

func (a *auditor) faulted(full string) bool {
	return slices.ContainsFunc(a.rep.Faults, func(f Fault) bool { return f.File == full })
}

// pending takes the parts that are durable and not visible into the sums.
func (a *auditor) pending(st *ledger.State) error {
	for _, id := range slices.Sorted(maps.Keys(st.Parts)) {
		p := st.Parts[id]
		if _, visible := a.leaf[id]; visible {
			continue // published between two steps; its rows are in that file
		}
		ok, err := a.partThere(p)
		if err != nil {
			return err
		}
		foot := &ledger.Footer{Sources: p.Sources}
		if !ok {
			what := "hidden part " + p.Name
			switch {
			case p.Upload != "":
				what = "the unfinished upload of " + p.Name
			case p.Bundle:
				what = fmt.Sprintf("hidden part %s in %s", p.ID, p.Name)
			}
			a.rep.fault(Vanished, p.Name, oneSource(foot), p.Rows, "%s of epoch %d (%d rows of %s, for %s) is gone",
				what, p.Epoch, p.Rows, sourceNames(foot), place(p.Table, p.Partition))
			continue
		}
		a.rep.PendingParts++
		a.rep.PendingRows += p.Rows
		for name, r := range p.Sources {
			a.add(name, p.Table, r.Sum)
		}
	}
	return nil
}

// partThere looks for a part's staged file. One that has gone since the log
// was read is looked up again in a fresh reading.
func (a *auditor) partThere(p *ledger.Part) (bool, error) {
	if o, ok := a.fs.(storage.Objects); ok && p.Upload != "" {
		// Not staged, but on its way to its final name (ledger T14).
		size, err := o.Uploaded(path.Join(tableRoot(a.root, p.Table), p.Partition, p.Name), p.Upload)
		if errors.Is(err, storage.ErrNotExist) {
			return a.movedOn(p)
		}
		return size == p.Bytes, err
	}
	if size, known := a.staged[p.File()]; known {
		return within(p, size), nil
	}
	where, err := ledger.FindStaged(a.fs, a.root, p.Epoch, p.Name)
	if err == nil {
		info, err := a.fs.Stat(where)
		if err == nil {
			a.staged[p.File()] = info.Size
			return within(p, info.Size), nil
		}
		if !errors.Is(err, storage.ErrNotExist) {
			return false, err
		}
	} else if !errors.Is(err, storage.ErrNotExist) {
		return false, err
	}
	return a.movedOn(p)
}

// movedOn says whether a part that is not where the log said has become, or is
// becoming, visible meanwhile.
func (a *auditor) movedOn(p *ledger.Part) (bool, error) {
	now, err := ledger.Read(a.fs, a.root)
	if err != nil {
		return false, err
	}
	if now.Parts[p.ID] == nil {
		return true, nil // published and noted meanwhile
	}
	for _, u := range now.Units {
		if slices.Contains(u.Inputs, p.ID) {
			if u.Published {
				return true, nil // its target is visible; the input was on its way out
			}
			_, err := a.fs.Stat(path.Join(tableRoot(a.root, u.Table), u.Partition, u.Target))
			return err == nil, nil
		}
	}
	return false, nil
}

// within says whether a staged file of this size can hold the part. Behind a
// slice others may lie.
func within(p *ledger.Part, size int64) bool {
	if p.Bundle {
		return p.Offset+p.Bytes <= size
	}
	return p.Bytes == size
}

// compare holds what is there against what the log accepted.
func (a *auditor) compare(st *ledger.State) {
	a.rep.Checkpoint = st.Checkpoint
	a.rep.Sources = len(st.Sources)
	for _, name := range slices.Sorted(maps.Keys(st.Sources)) {
		s := st.Sources[name]
		a.rep.Accepted += s.Accepted.Rows
		have := a.sums[name]
		if have == nil {
			have = new(sourceSums)
		}
		a.balance(name, "accepted", s.Accepted, have.accepted)
		a.balance(name, "dead-lettered", s.DeadLettered, have.dead)
	}
	for _, name := range slices.Sorted(maps.Keys(a.sums)) {
		if st.Sources[name] == nil {
			have := a.sums[name].accepted.Rows + a.sums[name].dead.Rows
			a.rep.fault(RowsOver, "", name, have, "%d rows of source partition %q are in the table, which the log does not know", have, name)
		}
	}
}

func (a *auditor) balance(name, what string, want, have ledger.Sum) {
	switch d := want.Rows - have.Rows; {
	case d > 0:
		a.rep.fault(RowsShort, "", name, d, "source partition %q: %d rows were %s, %d are there: %d are missing", name, want.Rows, what, have.Rows, d)
	case d < 0:
		a.rep.fault(RowsOver, "", name, -d, "source partition %q: %d rows were %s, %d are there: %d too many", name, want.Rows, what, have.Rows, -d)
	case want.Hash != have.Hash:
		a.rep.fault(RowsShort, "", name, 0, "source partition %q: %d rows are there, but not the %s ones: the sums of their row numbers differ", name, have.Rows, what)
	}
}

// partitions compares the files of each partition with the log's totals; only
// at rest, since both move in a run.
func (a *auditor) partitions(st *ledger.State) {
	for _, key := range slices.Sorted(maps.Keys(st.Partitions)) {
		p := st.Partitions[key]
		have := a.parts[key]
		if have == nil {
			have = new(totals)
		}
		inFlight := slices.ContainsFunc(slices.Collect(maps.Values(st.Units)), func(u *ledger.Unit) bool {
			return u.Table == p.Table && u.Partition == p.Path && !u.Published
		})
		if inFlight || a.half[key] || (have.files == p.Files && have.rows == p.Rows) {
			continue
		}
		a.rep.fault(Partition, "", "", p.Rows-have.rows, "%s has %d files with %d rows, the log says %d files with %d rows",
			place(p.Table, p.Path), have.files, have.rows, p.Files, p.Rows)
	}
}
