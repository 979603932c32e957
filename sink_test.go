package hivesink_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/parquet-go/parquet-go"

	"github.com/hivesink/hivesink"
)

func load(t testing.TB, dir string, sets ...string) *hivesink.Config {
	t.Helper()
	file := filepath.Join(dir, "sink.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, ordersConfig, dir), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := hivesink.LoadConfig(file, sets...)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func open(t testing.TB, cfg *hivesink.Config) *hivesink.Sink {
	t.Helper()
	s, err := hivesink.Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// orders is a batch of the rows [from, from+n).
func orders(schema *arrow.Schema, from, n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for _, o := range upstream(from, n) {
		b.Field(0).(*array.Int64Builder).Append(o.id)
		b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(o.at))
		b.Field(2).(*array.StringBuilder).Append(o.customer)
		b.Field(3).(*array.Int64Builder).Append(o.cents)
	}
	return b.NewRecordBatch()
}

// visibleIDs reads the ids a reader sees.
func visibleIDs(t testing.TB, dir string) []int64 {
	t.Helper()
	var ids []int64
	err := filepath.WalkDir(filepath.Join(dir, "orders"), func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || (err == nil && !strings.HasSuffix(name, ".parquet")) {
			return nil
		}
		if err != nil {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rows, err := parquet.Read[struct {
			ID int64 `parquet:"id,optional"`
		}](bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ids)
	return ids
}

func wantIDs(t testing.TB, dir string, n int) {
	t.Helper()
	got := visibleIDs(t, dir)
	for i := range n {
		if i >= len(got) || got[i] != int64(i) {
			t.Fatalf("%d rows visible, want 0..%d once each: %.200s", len(got), n-1, fmt.Sprint(got))
		}
	}
	if len(got) != n {
		t.Fatalf("%d rows visible, want %d", len(got), n)
	}
}

func TestResumeFromPosition(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	for run := range 3 {
		s := open(t, load(t, dir))
		w, err := s.Writer("orders-0")
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		if run > 0 {
			want = strconv.Itoa(run * 20)
		}
		if w.Position() != want {
			t.Fatalf("run %d resumes at %q, want %q", run, w.Position(), want)
		}
		if err := w.Write(ctx, orders(s.Schema(), run*20, 20), strconv.Itoa(run*20+20)); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(ctx); err != nil {
			t.Fatal(err)
		}
		wantIDs(t, dir, run*20+20)
	}
}

func TestWriteTakesAllOrNothing(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	s := open(t, load(t, dir))
	w, err := s.Writer("orders-0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Writer("orders-0"); err == nil {
		t.Fatal("a second open Writer of one name")
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, s.Schema())
	b.Field(0).(*array.Int64Builder).AppendNull()
	for i := 1; i < 4; i++ {
		b.Field(i).AppendNull()
	}
	if err := w.Write(ctx, b.NewRecordBatch(), "1"); err == nil || !strings.Contains(err.Error(), `"id"`) {
		t.Fatalf("null in a not null column: %v", err)
	}
	other := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.BinaryTypes.String}}, nil)
	ob := array.NewRecordBuilder(memory.DefaultAllocator, other)
	ob.Field(0).(*array.StringBuilder).Append("x")
	if err := w.Write(ctx, ob.NewRecordBatch(), "1"); err == nil || !strings.Contains(err.Error(), "bigint") {
		t.Fatalf("a string as id: %v", err)
	}
	// Neither was the sink's fault: it goes on. An empty batch moves the
	// position.
	if err := w.Write(ctx, orders(s.Schema(), 0, 5), "5"); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(ctx, orders(s.Schema(), 0, 0), "6"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, dir, 5)
	s = open(t, load(t, dir))
	if w, err = s.Writer("orders-0"); err != nil || w.Position() != "6" {
		t.Fatalf("position %q, %v", w.Position(), err)
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(ctx, orders(s.Schema(), 5, 1), "7"); !errors.Is(err, hivesink.ErrClosed) {
		t.Fatalf("write after close: %v", err)
	}
}

func TestSecondOwnerIsFenced(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	s := open(t, load(t, dir))
	defer s.Close(ctx)
	if _, err := hivesink.Open(ctx, load(t, dir, "state_dir="+dir+"/other")); !errors.Is(err, hivesink.ErrFenced) {
		t.Fatalf("a second owner: %v", err)
	}
	if _, err := hivesink.Open(ctx, load(t, dir)); !errors.Is(err, hivesink.ErrFenced) {
		t.Fatalf("a second owner with the same state_dir: %v", err)
	}
}

func TestConcurrentWritersAndTimer(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	cfg := load(t, dir, "checkpoint.interval=20ms", "compaction.max_delay=50ms")
	durable := make(chan map[string]string, 1000)
	cfg.OnCheckpoint = func(p map[string]string) { durable <- p }
	s := open(t, cfg)
	errs := make(chan error, 4)
	for i := range 4 {
		w, err := s.Writer(fmt.Sprintf("orders-%d", i))
		if err != nil {
			t.Fatal(err)
		}
		go func() { // joined through errs
			for k := 0; k < 100; k += 10 {
				if err := w.Write(ctx, orders(s.Schema(), i*100+k, 10), strconv.Itoa(k+10)); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range 4 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	last := map[string]string{}
	for len(last) < 4 || slices.ContainsFunc([]string{"orders-0", "orders-1", "orders-2", "orders-3"}, func(n string) bool { return last[n] != "100" }) {
		select {
		case p := <-durable:
			for n, v := range p {
				last[n] = v
			}
		case <-time.After(3 * time.Minute):
			t.Fatalf("no checkpoint by the timer: %v", last)
		}
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, dir, 400)
}

// TestKilledEmbedder embeds the sink in a process that has no end, kills it, and
// resumes.
func TestKilledEmbedder(t *testing.T) {
	if dir := os.Getenv("HIVESINK_EMBEDDED"); dir != "" {
		embedded(t, dir, os.Getenv("HIVESINK_EMBEDDED_LAST") != "")
		return
	}
	dir := t.TempDir()
	start := func(env ...string) (*exec.Cmd, *bufio.Scanner) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledEmbedder$")
		cmd.Env = append(append(os.Environ(), "HIVESINK_EMBEDDED="+dir), env...)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, bufio.NewScanner(out)
	}
	for kills := range 5 {
		cmd, lines := start()
		n := 0 // lines after a checkpoint
		for n <= kills && lines.Scan() {
			if strings.HasPrefix(lines.Text(), "durable ") {
				n++
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); n <= kills {
			t.Fatalf("it ended by itself after %d checkpoints: %v", n, err)
		}
	}
	cmd, lines := start("HIVESINK_EMBEDDED_LAST=1")
	end := 0
	for lines.Scan() {
		_, _ = fmt.Sscanf(lines.Text(), "durable %d", &end)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("does not come to its end: %v", err)
	}
	if end < 2000 {
		t.Fatalf("it ended at row %d", end)
	}
	wantIDs(t, dir, end)
}

// embedded goes on for ever, or if it is the last one to some end.
func embedded(t *testing.T, dir string, last bool) {
	ctx := context.Background()
	cfg := load(t, dir, "checkpoint.interval=1h", "compaction.max_delay=1ms")
	s := open(t, cfg)
	w, err := s.Writer("orders-0")
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	if w.Position() != "" {
		if at, err = strconv.Atoi(w.Position()); err != nil {
			t.Fatal(err)
		}
	}
	for end := at + 2000; !last || at < end; at += 50 {
		if err := w.Write(ctx, orders(s.Schema(), at, 50), strconv.Itoa(at+50)); err != nil {
			t.Fatal(err)
		}
		if err := s.Checkpoint(ctx); err != nil {
			t.Fatal(err)
		}
		fmt.Println("durable", at+50)
	}
	if err := errors.Join(s.Finish(ctx), s.Close(ctx)); err != nil {
		t.Fatal(err)
	}
}
