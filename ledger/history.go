package ledger

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/storage"
)

// A record that two snapshots cover is of no use to whoever opens the table,
// and there may be millions of them within Options.History. So they leave the
// log directory, which every opening lists, for the history directory, many to
// a file: the records' own bytes, one line each (T12).

func historyDir(table string) string { return path.Join(table, layout.MetaDir, layout.HistoryDir) }

// span is a file of the history: the records from first to last. Those of two
// spans may be the same, after a crash.
type span struct{ first, last uint64 }

func (s span) path(table string) string {
	return path.Join(historyDir(table), layout.HistoryFile(s.first, s.last))
}

const (
	spanRecords = 4096    // at most, in one file
	spanBytes   = 8 << 20 // begins another file
	moveAtOnce  = 8192    // records, by one snapshot: a log that was never moved catches up
	// expiryShare of Options.History is how often expired files are looked for.
	expiryShare = 32
)

// moveToHistory moves records up to and including upTo, but that of the current
// epoch, and removes those that are older than Options.History.
func (l *Ledger) moveToHistory(records []uint64, upTo uint64) error {
	now := l.o.Now()
	limit := now.Add(-l.o.History).UnixMicro()
	run := spanWriter{l: l}
	moved := 0
	for _, seq := range records {
		if seq > upTo || moved == moveAtOnce {
			break
		}
		if seq == l.sealed {
			continue
		}
		moved++
		data, err := l.o.FS.ReadFile(recordPath(l.o.Table, seq))
		if err != nil {
			return storage.Classify(fmt.Errorf("move log record %d to the history: %w", seq, err))
		}
		r, _, err := Decode(recordPath(l.o.Table, seq), data)
		if err != nil {
			return err
		}
		if r.Time > limit {
			err = run.add(seq, data)
		} else {
			err = l.Trash(recordPath(l.o.Table, seq))
		}
		if err != nil {
			return err
		}
	}
	if err := run.finish(); err != nil {
		return err
	}
	return l.expire(now.UnixMicro(), limit)
}

// spanWriter gathers records that follow each other.
type spanWriter struct {
	l    *Ledger
	span span
	data []byte
}

func (w *spanWriter) add(seq uint64, record []byte) error {
	if len(w.data) > 0 && (seq != w.span.last+1 || seq-w.span.first == spanRecords || len(w.data) > spanBytes) {
		if err := w.finish(); err != nil {
			return err
		}
	}
	if len(w.data) == 0 {
		w.span.first = seq
	}
	w.span.last = seq
	w.data = append(w.data, record...)
	return nil
}

// finish makes the file durable, reads it back, and only then removes the
// records it is made of. One of its name is there already when that removal was
// cut short; it says the same.
func (w *spanWriter) finish() error {
	if len(w.data) == 0 {
		return nil
	}
	l, name := w.l, w.span.path(w.l.o.Table)
	if err := storage.MkdirAllSync(l.o.FS, metaDir(l.o.Table), historyDir(l.o.Table)); err != nil {
		return storage.Classify(fmt.Errorf("make the directory of the history: %w", err))
	}
	tmp := path.Join(l.staging, "history-"+layout.ID(l.o.Random()))
	if err := l.exclusive(tmp, name, w.data); err != nil {
		return l.lost(fmt.Errorf("write records %d to %d to the history: %w", w.span.first, w.span.last, err))
	}
	back, err := l.o.FS.ReadFile(name)
	if err != nil {
		return storage.Classify(fmt.Errorf("read the history back: %w", err))
	}
	if !bytes.Equal(back, w.data) {
		return damaged("history", name, errors.New("it is not what was written"), "")
	}
	for seq := w.span.first; seq <= w.span.last; seq++ {
		if err := l.Trash(recordPath(l.o.Table, seq)); err != nil {
			return err
		}
	}
	w.data = w.data[:0]
	return nil
}

// expire removes files of the history of which every record is older than
// Options.History. The directory is listed now and then only.
func (l *Ledger) expire(now, limit int64) error {
	every := l.o.History.Microseconds() / expiryShare
	if since := now - l.keep.expired; l.keep.expired != 0 && since >= 0 && since < every {
		return nil
	}
	spans, err := listHistory(l.o.FS, l.o.Table)
	if err != nil {
		return err
	}
	for _, s := range spans {
		records, err := readSpan(l.o.FS, l.o.Table, s)
		if err != nil {
			return err
		}
		if last := records[len(records)-1]; last.r.Time > limit {
			break
		}
		if err := l.Trash(s.path(l.o.Table)); err != nil {
			return err
		}
	}
	l.keep.expired = now
	return nil
}

// listHistory is what the history directory holds, in the order of the first
// records; other files in it are nobody's.
func listHistory(fs storage.FS, table string) ([]span, error) {
	entries, err := fs.List(historyDir(table))
	if errors.Is(err, storage.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, storage.Classify(fmt.Errorf("list the history: %w", err))
	}
	var out []span
	for _, e := range entries {
		if first, last, ok := layout.ParseHistoryFile(e.Name); ok && !e.Dir {
			out = append(out, span{first, last})
		}
	}
	return out, nil
}

// logged is a record as the log has it.
type logged struct {
	r        *Record
	checksum string
	name     string // of its file
}

// readSpan reads a file of the history, which has a record for every number
// from its first to its last.
func readSpan(fs storage.FS, table string, s span) ([]logged, error) {
	name := s.path(table)
	data, err := fs.ReadFile(name)
	if err != nil {
		return nil, storage.Classify(fmt.Errorf("read the history: %w", err))
	}
	var out []logged
	for seq := s.first; seq <= s.last; seq++ {
		line, rest, ok := bytes.Cut(data, []byte("\n"))
		if !ok {
			return nil, damaged("history", name, fmt.Errorf("record %d is not in it", seq), "")
		}
		r, sum, err := Decode(name, data[:len(line)+1])
		if err != nil {
			return nil, err
		}
		if r.Seq != seq {
			return nil, damaged("history", name, fmt.Errorf("it has record %d in place of %d", r.Seq, seq), "")
		}
		out = append(out, logged{r, sum, name})
		data = rest
	}
	if len(data) > 0 {
		return nil, damaged("history", name, fmt.Errorf("there is more after record %d", s.last), "")
	}
	return out, nil
}

// ReadLog calls fn for every record that the log and its history still have, in
// order. An error of fn ends it. Records that the owner removes meanwhile are
// passed over.
func ReadLog(fs storage.FS, table string, fn func(*Record) error) error {
	// The log first: what leaves it meanwhile is then found in the history.
	files, err := list(fs, table)
	if err != nil {
		return err
	}
	spans, err := listHistory(fs, table)
	if err != nil {
		return err
	}
	if len(files.records) == 0 && len(spans) == 0 {
		return noTable(table)
	}
	all := spans
	for _, seq := range files.records {
		all = append(all, span{seq, seq})
	}
	slices.SortStableFunc(all, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	in := logReader{fs: fs, table: table, fn: fn}
	for _, s := range all {
		if s.last <= in.before.seq {
			continue
		}
		if err := in.read(s); err != nil {
			return err
		}
	}
	return nil
}

// logReader hands records on, each once.
type logReader struct {
	fs     storage.FS
	table  string
	fn     func(*Record) error
	before link
}

func (in *logReader) read(s span) error {
	var records []logged
	var err error
	if s.first == s.last {
		var r *Record
		var sum string
		if r, sum, err = readRecord(in.fs, in.table, s.first); err == nil {
			records = []logged{{r, sum, recordPath(in.table, s.first)}}
		}
	}
	if len(records) == 0 && (err == nil || errors.Is(err, storage.ErrNotExist)) {
		records, err = in.fromHistory(s)
	}
	if err != nil {
		return err
	}
	for _, x := range records {
		if x.r.Seq <= in.before.seq {
			continue
		}
		if err := in.before.check(x.r, x.r.Seq); err != nil {
			return err
		}
		if err := in.fn(x.r); err != nil {
			return err
		}
		in.before = link{seq: x.r.Seq, epoch: x.r.Epoch, checksum: x.checksum, name: x.name}
	}
	return nil
}

// fromHistory reads a span's file, or that into which a record has moved since
// the log was listed. Found nowhere it is older than history.
func (in *logReader) fromHistory(s span) ([]logged, error) {
	records, err := readSpan(in.fs, in.table, s)
	if !errors.Is(err, storage.ErrNotExist) {
		return records, err
	}
	spans, err := listHistory(in.fs, in.table)
	if err != nil {
		return nil, err
	}
	for _, other := range spans {
		if other.first <= s.first && s.first <= other.last {
			records, err := readSpan(in.fs, in.table, other)
			if !errors.Is(err, storage.ErrNotExist) {
				return records, err
			}
		}
	}
	return nil, nil
}
