package source

import (
	"github.com/hivesink/hivesink/format"
	"github.com/hivesink/hivesink/format/csv"
	"github.com/hivesink/hivesink/format/json"
	"github.com/hivesink/hivesink/format/text"
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
	values := textval.Options{Timestamps: o.Timestamps, Zone: o.Zone, NullOnBadTime: o.NullOnBadTime}
	switch o.Format {
	case FormatJSON:
		return recordFormat{
			splitter: jsonrow.NewSplitter,
			decoder: func([]byte) (format.RowDecoder, error) {
				d, err := jsonrow.New(o.Schema, values)
				if err != nil {
					return nil, err
				}
				return d, nil
			},
		}, nil
	case FormatCSV:
		c := csvrow.Options{Options: values, Delimiter: o.CSVDelimiter, Quote: o.CSVQuote, Null: o.CSVNull}
		return recordFormat{
			header:   o.CSVHeader,
			quote:    o.CSVQuote,
			splitter: func() format.Splitter { return csvrow.NewSplitter(c.Delimiter, c.Quote) },
			decoder:  func(header []byte) (format.RowDecoder, error) { return csvDecoder(o, header, c) },
		}, nil
	}
	return recordFormat{}, fault.New(fault.Config, "use json or csv", "source.format %s is not in this build", o.Format)
}

func csvDecoder(o *Options, header []byte, c csvrow.Options) (format.RowDecoder, error) {
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
