package main

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/hivesink/hivesink/pipeline"
	"github.com/hivesink/hivesink/writer"
)

const batchRows = 8192

// feed is one writer that goes round the partitions, a row for each in turn.
type feed struct {
	p       *pipeline.Pipeline
	name    string
	lane    *writer.Lane
	builder *array.RecordBuilder
	devices []string
	rows    int // of an interval
	row     int64
	random  uint64
}

func newFeed(ctx context.Context, p *pipeline.Pipeline, i int, o options) (*feed, error) {
	f := &feed{p: p, name: fmt.Sprintf("feed-%d", i), rows: o.partitions * o.rows / o.readers, random: uint64(i + 1),
		builder: array.NewRecordBuilder(memory.DefaultAllocator, p.Schema().Arrow), row: int64(i)}
	for k := range o.partitions {
		f.devices = append(f.devices, fmt.Sprintf("device-%05d", k))
	}
	from, err := p.Own(ctx, f.name)
	if err != nil {
		return nil, err
	}
	if f.lane, err = p.NewLane(); err != nil {
		return nil, err
	}
	f.lane.Adopt(f.name, from)
	return f, nil
}

// interval writes what comes between two checkpoints.
func (f *feed) interval(ctx context.Context) error {
	for left := f.rows; left > 0; {
		n := min(left, batchRows)
		left -= n
		rec := f.batch(n)
		err := f.p.Gate(ctx)
		if err == nil {
			err = f.p.WriteBatch(ctx, f.lane, f.name, rec, fmt.Sprint(f.row))
		}
		rec.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

var countries = []string{"DE", "FR", "US", "IN", "BR", "JP", "NG", "VN"}

func (f *feed) batch(n int) arrow.RecordBatch {
	b := f.builder
	for range n {
		f.random = f.random*6364136223846793005 + 1442695040888963407
		r := f.random >> 33
		b.Field(0).(*array.Int64Builder).Append(f.row)
		b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(1_800_000_000_000_000 + f.row*1000))
		b.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("user-%d", r%100_000))
		b.Field(3).(*array.StringBuilder).Append(countries[r%8])
		b.Field(4).(*array.Float64Builder).Append(float64(r%1_000_000) / 100)
		b.Field(5).(*array.StringBuilder).Append(fmt.Sprintf("https://example.com/p/%d/%d", r%1000, r%97))
		b.Field(6).(*array.BooleanBuilder).Append(r%3 == 0)
		b.Field(7).(*array.StringBuilder).Append(f.devices[f.row%int64(len(f.devices))])
		f.row++
	}
	return b.NewRecordBatch()
}
