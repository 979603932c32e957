package source

import (
	"github.com/hivesink/hivesink/format"
	"github.com/hivesink/hivesink/internal/fault"
)

// Formats of records.
const (
	FormatJSON = "json"
	FormatCSV  = "csv"
)

// recordFormat is what a framer needs to know of a format.
type recordFormat struct {
	header   bool // the first record is a header
	quote    byte // between two of these a line end is text; 0: none
	splitter func() format.Splitter
	decoder  func(header []byte) (format.RowDecoder, error)
}

func (o *Options) recordFormat() (recordFormat, error) {
	return recordFormat{}, fault.New(fault.Config, "use json or csv", "source.format %s is not in this build", o.Format)
}
