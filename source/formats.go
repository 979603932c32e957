package source

import (
	"github.com/hivesink/hivesink/format"
	csvrow "github.com/hivesink/hivesink/format/csv"
	jsonrow "github.com/hivesink/hivesink/format/json"
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
	switch o.Format {
	case FormatJSON:
		return recordFormat{splitter: jsonrow.NewSplitter, decoder: o.jsonDecoder}, nil
	case FormatCSV:
		return recordFormat{
			header:   o.CSVHeader,
			quote:    o.CSVQuote,
			splitter: func() format.Splitter { return csvrow.NewSplitter(o.CSVDelimiter, o.CSVQuote) },
			decoder:  o.csvDecoder,
		}, nil
	}
	return recordFormat{}, fault.New(fault.Config, "use json or csv", "source.format %s is not in this build", o.Format)
}

func (o *Options) jsonDecoder([]byte) (format.RowDecoder, error) {
	d, err := jsonrow.New(o.Schema, jsonrow.Options{Timestamps: o.Timestamps, Zone: o.Zone, NullOnBadTime: o.NullOnBadTime})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// csvDecoder makes a decoder of records below a header; nil: the fields are the
// schema's columns in their order.
func (o *Options) csvDecoder(header []byte) (format.RowDecoder, error) {
	c := csvrow.Options{
		Timestamps: o.Timestamps, Zone: o.Zone, NullOnBadTime: o.NullOnBadTime,
		Delimiter: o.CSVDelimiter, Quote: o.CSVQuote, Null: o.CSVNull,
	}
	var names []string
	if header != nil {
		var err error
		if names, err = csvrow.ParseHeader(header, c); err != nil {
			return nil, err
		}
	}
	d, err := csvrow.New(o.Schema, names, c)
	if err != nil {
		return nil, err
	}
	return d, nil
}
