package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// restarts are starts of the binary on a table with a past: from exec to the
// first record read, after a kill -9 with work in flight.
type restarts struct {
	Kept stats `json:"to_first_record_ms_index_kept"`
	Lost stats `json:"to_first_record_ms_state_dir_lost"`
	N    int   `json:"starts_each"`
}

// newTables are starts on a new table with a checkpoint every 500 ms.
type newTables struct {
	FirstFile     stats `json:"exec_to_first_visible_file_ms"`
	FirstRecord   stats `json:"exec_to_first_record_ms"`
	AgainRecord   stats `json:"after_kill_exec_to_first_record_ms"`
	AgainFile     stats `json:"after_kill_exec_to_first_new_visible_file_ms"`
	CheckpointsMs int   `json:"checkpoint_interval_ms"`
	N             int   `json:"starts"`
}

// sink is a running binary.
type sink struct {
	cmd    *exec.Cmd
	start  time.Time
	record chan time.Duration // to the line that says so; closed at the end of the process
	tail   strings.Builder    // what it said, to be read after record is closed
}

// launch starts `hivesink run` and listens for its first record.
func launch(ctx context.Context, bin, config string) (*sink, error) {
	s := &sink{cmd: exec.CommandContext(ctx, bin, "run", "-v", "-c", config), record: make(chan time.Duration, 1)}
	s.cmd.Stdout = io.Discard
	said, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	s.start = time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // ends with the process's stderr; joined by kill
		defer close(s.record)
		lines := bufio.NewScanner(said)
		for lines.Scan() {
			if strings.Contains(lines.Text(), `msg="first record"`) {
				s.record <- time.Since(s.start)
			}
			if !strings.Contains(lines.Text(), "level=INFO") {
				s.tail.WriteString(lines.Text() + "\n")
			}
		}
	}()
	return s, nil
}

// firstRecord waits for the line.
func (s *sink) firstRecord() (float64, error) {
	d, ok := <-s.record
	if !ok {
		return 0, fmt.Errorf("the binary ended before its first record: %s", s.tail.String())
	}
	return float64(d.Microseconds()) / 1000, nil
}

// kill is kill -9.
func (s *sink) kill() error {
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	for range s.record { // to its end
	}
	err := s.cmd.Wait()
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.ExitCode() == -1 {
		return nil
	}
	return fmt.Errorf("the binary ended by itself (%v): the input was too short for the measurement; %s", err, s.tail.String())
}

// restart kills and starts the binary on the table in dir.
func restart(ctx context.Context, o options, dir string) (*restarts, error) {
	if err := writeInput(dir, o.input); err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "growth.yaml")
	if err := os.WriteFile(config, []byte(configOf(dir, "500ms")), 0o644); err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewSource(1))
	var kept, lost []float64
	for i := range 2*o.starts + 1 {
		if i%2 == 1 {
			if err := os.RemoveAll(filepath.Join(dir, "state")); err != nil {
				return nil, err
			}
		}
		// Another file for each start, so that the input never ends.
		if err := os.Link(filepath.Join(dir, inputFile), filepath.Join(dir, "in", fmt.Sprintf("rows-%02d.ndjson", i))); err != nil {
			return nil, err
		}
		s, err := launch(ctx, o.bin, config)
		if err != nil {
			return nil, err
		}
		ms, err := s.firstRecord()
		if err != nil {
			return nil, err
		}
		switch {
		case i == 0: // nothing was in flight
		case i%2 == 1:
			lost = append(lost, ms)
		default:
			kept = append(kept, ms)
		}
		time.Sleep(700*time.Millisecond + time.Duration(rng.Intn(300))*time.Millisecond) // checkpoints, parts and units in flight
		if err := s.kill(); err != nil {
			return nil, err
		}
	}
	return &restarts{Kept: statsOf(kept), Lost: statsOf(lost), N: o.starts}, nil
}

func (r *restarts) print() {
	fmt.Printf("the binary on the largest table, killed with work in flight, %d starts each      median    worst\n", r.N)
	fmt.Printf("  exec to the first record, state directory kept                          %7.0f ms %5.0f ms\n", r.Kept.Median, r.Kept.Worst)
	fmt.Printf("  exec to the first record, state directory lost                          %7.0f ms %5.0f ms\n\n", r.Lost.Median, r.Lost.Worst)
}

// startYAML is what somebody writes who wants to see rows within a second: each
// checkpoint is compacted and published by itself.
const startYAML = `
pipeline: start
state_dir: %q
source:
  files: {paths: [%q]}
  format: json
table:
  database: d
  name: t
  location: %q
  columns: [id bigint, ts timestamp, user_name string, country string, amount double, url string, ok boolean]
  partitioned_by: [{dt: date(ts)}]
  compression: zstd
checkpoint: {interval: 500ms}
compaction: {policy: checkpoint}
commit: {policies: [metastore, success-file]}
`

func startNew(ctx context.Context, o options, dir string) (*newTables, error) {
	in := filepath.Join(dir, "in")
	if err := os.MkdirAll(in, 0o755); err != nil {
		return nil, err
	}
	if err := writeInput(in, o.input); err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "start.yaml")
	table, state := filepath.Join(dir, "table"), filepath.Join(dir, "state")
	text := fmt.Sprintf(startYAML, state, filepath.Join(in, "*.ndjson"), table)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return nil, err
	}
	var file, record, file2, record2 []float64
	for range o.starts {
		if err := errors.Join(os.RemoveAll(table), os.RemoveAll(state)); err != nil {
			return nil, err
		}
		for _, to := range []struct{ file, record *[]float64 }{{&file, &record}, {&file2, &record2}} {
			f, r, err := startOnce(ctx, o.bin, config, table)
			if err != nil {
				return nil, err
			}
			*to.file, *to.record = append(*to.file, f), append(*to.record, r)
		}
	}
	return &newTables{FirstFile: statsOf(file), FirstRecord: statsOf(record), AgainFile: statsOf(file2), AgainRecord: statsOf(record2),
		CheckpointsMs: 500, N: o.starts}, nil
}

// startOnce starts the binary and kills it when a file has become visible that
// was not there before.
func startOnce(ctx context.Context, bin, config, table string) (file, record float64, err error) {
	before, err := visible(table)
	if err != nil {
		return 0, 0, err
	}
	s, err := launch(ctx, bin, config)
	if err != nil {
		return 0, 0, err
	}
	for {
		now, err := visible(table)
		if err != nil {
			return 0, 0, err
		}
		if now > before {
			file = float64(time.Since(s.start).Microseconds()) / 1000
			break
		}
		if time.Since(s.start) > time.Minute {
			return 0, 0, errors.Join(fmt.Errorf("no file is visible after a minute: %s", table), s.kill())
		}
		time.Sleep(2 * time.Millisecond)
	}
	if record, err = s.firstRecord(); err != nil {
		return 0, 0, err
	}
	return file, record, s.kill()
}

// visible counts the data files in the partition directories.
func visible(table string) (n int, err error) {
	err = filepath.WalkDir(table, func(_ string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case strings.HasSuffix(d.Name(), ".parquet"):
			n++
		}
		return nil
	})
	return n, err
}

// Flink's figures are of ../shared's yardsticks, measured on two shared cores.
const flinkNote = `  for orientation, measured elsewhere, Flink 2.3 on two cores, checkpoint 2 s: 7,200-9,100 ms to the first visible
  file after launch, 7,000-15,000 ms to the first new one after kill -9 and restore`

func (n *newTables) print() {
	fmt.Printf("the binary on a new table, checkpoint 500 ms, compaction on, %d starts           median    worst\n", n.N)
	for _, r := range []struct {
		name string
		s    stats
	}{
		{"exec to the first record", n.FirstRecord}, {"exec to the first visible file", n.FirstFile},
		{"after kill -9: exec to the first record", n.AgainRecord}, {"after kill -9: exec to the first new visible file", n.AgainFile},
	} {
		fmt.Printf("  %-70s  %7.0f ms %5.0f ms\n", r.name, r.s.Median, r.s.Worst)
	}
	fmt.Println(flinkNote)
}

const inputFile = "rows.ndjson"

// writeInput writes rows of 7 columns over 10 days, about 150 bytes each.
func writeInput(dir string, rows int) error {
	f, err := os.Create(filepath.Join(dir, inputFile))
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	rng := rand.New(rand.NewSource(42))
	for i := range rows {
		ts := firstHour.Add(time.Duration(rng.Int63n(int64(10 * 24 * time.Hour)))).Format("2006-01-02T15:04:05.000Z")
		fmt.Fprintf(w, `{"id":%d,"ts":"%s","user_name":"user-%06d","country":"C%03d","amount":%.2f,"url":"/shop/category-%02d/item-%05d","ok":%t,"name":"n"}`+"\n",
			i, ts, rng.Intn(100000), rng.Intn(200), rng.Float64()*1000, rng.Intn(40), rng.Intn(60000), rng.Intn(10) != 0)
	}
	return errors.Join(w.Flush(), f.Close())
}
