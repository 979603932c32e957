package hivesink_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/hivesink/hivesink"
)

const ordersConfig = `
pipeline: orders
state_dir: %[1]s/state
table:
  database: shop
  name: orders
  location: %[1]s/orders
  columns:
    - id bigint not null
    - ordered_at timestamp
    - customer string
    - cents bigint
  partitioned_by:
    - dt: date(ordered_at)
`

// order is what our upstream delivers.
type order struct {
	id, at   int64 // at: microseconds since 1970
	customer string
	cents    int64
}

// upstream is a source that can be read from any offset: a queue, a log, a
// table with a sequence. Here it makes its records up.
func upstream(from, n int) []order {
	out := make([]order, 0, n)
	for i := from; i < from+n; i++ {
		out = append(out, order{int64(i), 1767225600_000000 + int64(i)*3600_000000, "customer-" + strconv.Itoa(i%3), int64(i) * 100})
	}
	return out
}

// A complete small ETL program: it resumes where the last checkpoint stood,
// transforms, writes Arrow batches, and acknowledges upstream only what is
// durable.
func Example() {
	dir, err := os.MkdirTemp("", "hivesink")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := etl(dir); err != nil {
		panic(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "orders", "dt=*", "*.parquet"))
	fmt.Println(len(files), "files", err)
	// Output:
	// resuming at ""
	// durable: orders-0 at 50
	// 3 files <nil>
}

func etl(dir string) error {
	ctx := context.Background()
	file := filepath.Join(dir, "sink.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, ordersConfig, dir), 0o600); err != nil {
		return err
	}
	cfg, err := hivesink.LoadConfig(file)
	if err != nil {
		return err
	}
	acknowledged := ""
	cfg.OnCheckpoint = func(positions map[string]string) { acknowledged = positions["orders-0"] }

	sink, err := hivesink.Open(ctx, cfg)
	if err != nil {
		return err
	}
	w, err := sink.Writer("orders-0")
	if err != nil {
		return err
	}
	fmt.Printf("resuming at %q\n", w.Position())
	offset := 0
	if w.Position() != "" {
		if offset, err = strconv.Atoi(w.Position()); err != nil {
			return err
		}
	}
	build := array.NewRecordBuilder(memory.DefaultAllocator, sink.Schema())
	defer build.Release()
	for offset < 50 {
		orders := upstream(offset, 10)
		for _, o := range orders {
			build.Field(0).(*array.Int64Builder).Append(o.id)
			build.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(o.at))
			build.Field(2).(*array.StringBuilder).Append(o.customer)
			build.Field(3).(*array.Int64Builder).Append(o.cents)
		}
		offset += len(orders)
		batch := build.NewRecordBatch()
		err := w.Write(ctx, batch, strconv.Itoa(offset))
		batch.Release()
		if err != nil {
			return err
		}
	}
	if err := sink.Checkpoint(ctx); err != nil { // or wait for checkpoint.interval
		return err
	}
	fmt.Println("durable: orders-0 at", acknowledged)
	if err := sink.Finish(ctx); err != nil { // this input has an end
		return err
	}
	return sink.Close(ctx)
}
