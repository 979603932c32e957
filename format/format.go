// Package format defines what decoders of record formats have in common. The
// decoders are in its subpackages, and so is Parquet.
package format

import (
	"github.com/apache/arrow-go/v18/arrow"
)

// RowDecoder turns the bytes of records into columns. It serves one goroutine
// and allocates nothing per record.
type RowDecoder interface {
	// Append decodes one record (without its terminator). On an *Error the
	// record is bad and nothing of it was appended. rec may be reused after
	// the call.
	Append(rec []byte) error
	// Len is the number of rows since the last NewBatch.
	Len() int
	// Size is about the bytes those rows take in memory.
	Size() int64
	// UnknownKeys is the number of keys no column matched since the last
	// NewBatch.
	UnknownKeys() int64
	// NewBatch hands over the rows so far (nil when there are none) and
	// starts anew. The caller releases it.
	NewBatch() arrow.RecordBatch
	// Release frees the decoder's buffers.
	Release()
}

// Splitter finds records in a stream of bytes, as bufio.SplitFunc does, but
// keeps records of any length apart from the ones that are too long.
type Splitter interface {
	// Next looks for one record at the start of buf. It returns the record
	// without its terminator and how many bytes it takes with it; advance 0
	// asks for more bytes. With eof an unterminated last record is a record.
	// A blank record has len(rec) == 0 and is not a row.
	Next(buf []byte, eof bool) (rec []byte, advance int)
	// Reset forgets what is remembered between calls.
	Reset()
}

// Error says what is wrong with a record.
type Error struct {
	Class  string // one of record's Class constants
	Column string // path of the column, "" for the record as a whole
	Reason string
}

func (e *Error) Error() string {
	if e.Column == "" {
		return e.Reason
	}
	return "column " + e.Column + ": " + e.Reason
}
