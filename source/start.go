package source

import (
	"bytes"
	"context"
	"fmt"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/record"
)

var (
	bom         = []byte{0xef, 0xbb, 0xbf}
	utf16Little = []byte{0xff, 0xfe}
	utf16Big    = []byte{0xfe, 0xff}
)

// start reads what comes before the first record and goes to where the reader
// resumes. Interrupted by the end of ctx, it goes on when called again.
func (f *framer) start(ctx context.Context) error {
	if f.form.header || f.from.fresh() {
		if err := f.passBOM(ctx); err != nil {
			return err
		}
	}
	if f.form.header && f.dec == nil {
		if err := f.readHeader(ctx); err != nil {
			return err
		}
	} else if f.dec == nil {
		var err error
		if f.dec, err = f.form.decoder(nil); err != nil {
			return fault.Wrap(fault.Config, "", fmt.Errorf("read %s: %w", f.name, err))
		}
	}
	if f.from.fresh() {
		return nil
	}
	if err := f.goTo(ctx, f.from.Offset); err != nil {
		return err
	}
	if err := f.in.resumed(f.from); err != nil {
		return err
	}
	return f.checkContinued(ctx)
}

// passBOM passes over a UTF-8 byte order mark at the very start.
func (f *framer) passBOM(ctx context.Context) error {
	if f.offset > 0 {
		return nil
	}
	if err := f.need(ctx, len(bom)); err != nil {
		return err
	}
	start := f.buf[f.r:f.w]
	if bytes.HasPrefix(start, bom) {
		f.r += len(bom)
		f.offset += int64(len(bom))
	}
	if bytes.HasPrefix(start, utf16Little) || bytes.HasPrefix(start, utf16Big) {
		return fault.New(fault.Halt, "convert it to UTF-8", "read %s: it is UTF-16 text, by its first two bytes", f.name)
	}
	return nil
}

// readHeader reads the first record that is not blank. Without one there is no
// decoder, and no row either.
func (f *framer) readHeader(ctx context.Context) error {
	for {
		rec, n := f.frame()
		switch {
		case n == 0 && f.tooLong(), int64(len(rec)) > f.o.MaxRecord:
			return fault.New(fault.Halt, "is it CSV? raise source.max_record if so", "read %s: its header is longer than %d bytes", f.name, f.o.MaxRecord)
		case n == 0 && f.eof:
			return nil
		case n == 0:
			if err := f.more(ctx); err != nil {
				return err
			}
			continue
		}
		if len(rec) > 0 {
			dec, err := f.form.decoder(bytes.Clone(rec))
			if err != nil {
				return fault.Wrap(fault.Config, "", fmt.Errorf("read the header of %s: %w", f.place(), err))
			}
			f.dec = dec
		}
		f.r += n
		f.offset += int64(n)
		if f.dec != nil {
			return nil
		}
	}
}

// goTo goes to a decompressed offset, backwards never: a header may be read
// beyond where an input without one had ended.
func (f *framer) goTo(ctx context.Context, offset int64) error {
	if f.offset > offset {
		return nil
	}
	if f.offset+int64(f.w-f.r) < offset {
		ok, err := f.in.seek(offset)
		if err != nil {
			return fault.Wrap(fault.Halt, "", fmt.Errorf("read %s: go to offset %d: %w", f.name, offset, err))
		}
		if ok {
			f.r, f.w, f.counted, f.eof = 0, 0, 0, false
			f.offset, f.line = offset, f.from.Line
			f.split.Reset()
			return nil
		}
	}
	for {
		n := int(min(int64(f.w-f.r), offset-f.offset))
		f.r += n
		f.offset += int64(n)
		if f.offset == offset {
			f.counted, f.line = f.r, f.from.Line
			f.split.Reset()
			return nil
		}
		if f.eof {
			return fault.New(fault.Halt, f.stop, "resume %s: it has %d bytes decompressed, fewer than the %d that were read before", f.name, f.offset, offset)
		}
		f.r, f.w, f.counted = 0, 0, 0
		if err := f.more(ctx); err != nil {
			return err
		}
	}
}

// checkContinued halts when the last line had no line end, was taken as a
// record at the end of input, and has been continued since (S4).
func (f *framer) checkContinued(ctx context.Context) error {
	if f.offset > f.from.Offset {
		return nil
	}
	f.open = false
	if !f.from.Open {
		return nil
	}
	if err := f.need(ctx, terminatorBytes); err != nil {
		return err
	}
	next := f.buf[f.r:f.w]
	if len(next) == 0 || next[0] == '\n' || bytes.HasPrefix(next, []byte("\r\n")) {
		f.open = len(next) == 0
		return nil
	}
	return fault.New(fault.Halt, "end the files with a line end before they are read; a record that was cut is in the table now",
		"resume %s line %d: at offset %d the last line, which had no line end and was read as a record, has been continued", f.name, f.from.Line+1, f.from.Offset)
}

// need fills the buffer until it has n bytes or all there are.
func (f *framer) need(ctx context.Context, n int) error {
	for f.w-f.r < n && !f.eof {
		if err := f.more(ctx); err != nil {
			return err
		}
	}
	return nil
}

// more is fill for what cannot go on without more bytes.
func (f *framer) more(ctx context.Context) error {
	if f.readErr != nil {
		return f.readErr
	}
	return f.fill(ctx, true)
}

// beginLong starts to pass over the record at buf[r], which is too long.
func (f *framer) beginLong() {
	f.long = &longRecord{raw: bytes.Clone(f.buf[f.r : f.r+int(min(f.o.MaxRecord, rawBytes))]), place: f.place(),
		end: recordEnd{delimiter: f.o.CSVDelimiter, quote: f.form.quote}}
	f.lineAt(f.r)
	f.split.Reset()
}

// passLong passes over what the buffer has of a long record, and takes it as
// one bad record when its end is there.
func (f *framer) passLong() (took bool) {
	l, view := f.long, f.buf[f.r:f.w]
	if len(view) == 0 && !f.eof {
		return false
	}
	end, ended := l.end.find(view)
	l.size += int64(end)
	l.lines += int64(bytes.Count(view[:end], newline))
	f.r += end
	f.counted = f.r
	if !ended && !f.eof {
		return true
	}
	f.open = !ended
	f.long = nil
	f.offset += l.size
	f.line += l.lines
	f.bad(record.BadRecord{Place: l.place, Class: record.ClassTooLong, Reason: f.longReason(), Raw: l.raw})
	return true
}

func (f *framer) longReason() string {
	return fmt.Sprintf("the record is longer than source.max_record, %d bytes", f.o.MaxRecord)
}
