package pipeline

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/record"
	"github.com/hivesink/hivesink/source"
)

// SourceOptions are the configuration's in the words of package source.
func SourceOptions(cfg *config.Config, schema *record.Schema) (source.Options, error) {
	s := cfg.Source
	zone, err := time.LoadLocation(cfg.Table.TimeZone)
	if err != nil {
		return source.Options{}, fault.Wrap(fault.Config, "use an IANA name such as Europe/Berlin", fmt.Errorf("table.time_zone: %w", err))
	}
	o := source.Options{
		Schema: schema, Format: s.Format, CSVHeader: s.CSV.Header, CSVNull: s.CSV.Null, Timestamps: s.Timestamps, Zone: zone,
		MaxRecord: int64(s.MaxRecord), NullOnBadTime: make(map[string]bool), BadBudget: new(atomic.Int64),
	}
	if s.BadRecords.Policy != config.BadFail {
		o.BadBudget.Store(s.BadRecords.Limit)
	}
	if s.CSV.Delimiter != "" {
		o.CSVDelimiter = s.CSV.Delimiter[0]
	}
	if s.CSV.Quote != "" {
		o.CSVQuote = s.CSV.Quote[0]
	}
	// A time that cannot be parsed for partitioning goes to the default
	// partition when the column is nullable, whatever the transform.
	for _, t := range cfg.Table.PartitionedBy {
		for _, c := range cfg.Table.Columns {
			isTime := c.Type.Kind == hivetype.Timestamp || c.Type.Kind == hivetype.Date
			if c.Name == t.Column && isTime && !c.NotNull {
				o.NullOnBadTime[c.Name] = true
			}
		}
	}
	return o, nil
}

// DatagenOptions are the configuration's in the words of package source.
func DatagenOptions(cfg *config.Config) source.DatagenOptions {
	d := cfg.Source.Datagen
	o := source.DatagenOptions{Rows: d.Rows, Rate: d.Rate, Seed: d.Seed, Late: d.Late, TimeColumn: cfg.Source.EventTime.Column,
		Columns: make(map[string]source.DatagenColumn, len(d.Columns))}
	for name, c := range d.Columns {
		o.Columns[name] = source.DatagenColumn{Values: c.Values, Skew: c.Skew}
	}
	return o
}
