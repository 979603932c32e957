//go:build integration

// Package whole goes the whole way once: rows that are produced to a Kafka
// cluster in transactions, some of them aborted, come to a table on HDFS and to
// a Hive Metastore, while hivesink is killed again and again, and a data node
// and the metastore are away for a while. Then Spark counts the committed rows,
// each exactly once.
//
//	HIVESINK_WHOLE_ROWS=5000000 HIVESINK_KILLS=10 HIVESINK_OUTAGE=60s make whole
package whole

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hivesink/hivesink/internal/testproc"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/hdfsfs"
	"github.com/hivesink/hivesink/test/engines"
	"github.com/hivesink/hivesink/test/mainjob"
	"github.com/hivesink/hivesink/test/services"
)

const config = `
pipeline: whole
state_dir: %[1]s/state
source:
  kafka: {brokers: [%[2]s], topics: [%[3]s], group: %[3]s, start: earliest}
  format: json
  readers: 2
table:
  database: whole
  name: %[3]s
  location: hdfs://%[4]s%[5]s
  columns: [id bigint, ts timestamp, user_name string, country string, amount double, ok boolean]
  partitioned_by: [{dt: date(ts)}]
checkpoint: {interval: 1s}
compaction: {file_size: 8MB, max_delay: 10s}
commit: {policies: [metastore, success-file]}
metastore: {type: hive, uri: "thrift://%[6]s", create_table: true}
hdfs: {call_timeout: 10s}
`

// Spark's own client speaks to the metastore of Hive 3.
func metastore() string { return services.Address("HIVESINK_HMS3", services.HMS3) }

const metastoreDaemon = "hms-3"

type world struct {
	t      *testing.T
	home   *services.Home
	fs     storage.FS
	root   string
	table  string
	config string

	nameNode string

	run *testproc.Process // the one at work
}

func newWorld(t *testing.T) *world {
	t.Helper()
	home, err := services.DefaultHome()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, home: home, table: fmt.Sprintf("clicks_%d", time.Now().Unix())}
	name := services.Address("HIVESINK_HDFS", services.HDFSNameNode)
	fs, err := hdfsfs.New(t.Context(), hdfsfs.Options{Authority: name, CallTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.Close() })
	dir := "/whole-" + w.table
	if err := fs.Mkdir(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := storage.RemoveAll(fs, dir); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	w.fs, w.root, w.nameNode = fs, path.Join(dir, "table"), name
	local := t.TempDir()
	w.config = filepath.Join(local, "sink.yaml")
	text := fmt.Sprintf(config, local, strings.Join(services.KafkaThree.Brokers(), ", "), w.table, name, w.root,
		metastore())
	if err := os.WriteFile(w.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	makeTopic(t, w.table)
	return w
}

// records is the sequence of the last log record.
func (w *world) records() int {
	entries, err := w.fs.List(path.Join(w.root, layout.MetaDir, layout.LogDir))
	if err != nil {
		return 0
	}
	for _, e := range slices.Backward(entries) {
		if seq, ok := layout.ParseLogFile(e.Name); ok {
			return int(seq)
		}
	}
	return 0
}

// goesOn waits until a run has appended n more records.
func (w *world) goesOn(n int, why string) {
	w.t.Helper()
	more := w.records() + n
	if !w.run.Until(w.t, why, func() bool { return w.records() >= more }) {
		w.t.Fatalf("the run ended while it was waited for: %s\n%v", why, w.run.Wait(w.t))
	}
}

// again kills the run at work and starts another one.
func (w *world) again(why string) {
	w.t.Helper()
	w.goesOn(4, why)
	if !w.run.Kill(w.t) {
		w.t.Fatalf("%s: the run ended before it could be killed: %v", why, w.run.Wait(w.t))
	}
	w.run = mainjob.Start(w.t, nil, "run", "-c", w.config, "--json")
}

func TestTheWholeWay(t *testing.T) {
	rows, kills := testproc.Number(t, "HIVESINK_WHOLE_ROWS", 200_000), testproc.Number(t, "HIVESINK_KILLS", 4)
	outage := 10 * time.Second
	if text := os.Getenv("HIVESINK_OUTAGE"); text != "" {
		var err error
		if outage, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t)
	p := &producer{topic: w.table, rows: rows, batch: max(100, rows/250)}
	produced := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// Rows come all the while: a quarter of them each outage.
	go func() { produced <- p.run(ctx, max(1000, rows/int(4*outage/time.Second+1))) }()

	w.run = mainjob.Start(t, nil, "run", "-c", w.config, "--json")
	for n := range kills {
		w.again(fmt.Sprintf("kill %d of %d", n+1, kills))
		switch n {
		case kills / 3:
			w.away(services.HDFSSingle.Daemon("dn2"), outage, func() {})
		case 2 * kills / 3:
			w.away(metastoreDaemon, outage, func() { w.again("killed while the metastore is away") })
		}
	}
	if err := <-produced; err != nil {
		t.Fatalf("producer: %v", err)
	}
	if p.aborted.Load() == 0 || p.committed.Load() != int64(rows) {
		t.Fatalf("%d rows committed, %d aborted", p.committed.Load(), p.aborted.Load())
	}
	w.goesOn(1, "a record after the last row")
	w.run.Kill(t)
	mainjob.Want(t, 0, nil, "run", "-c", w.config, "--json", "--set", "source.kafka.until=end")
	mainjob.Want(t, 0, nil, "fsck", "-c", w.config)
	st, err := ledger.Read(w.fs, w.root)
	if err != nil {
		t.Fatal(err)
	}
	announced := 0
	for _, part := range st.Partitions {
		if part.Announced > 0 {
			announced++
		}
	}
	t.Logf("%d rows committed, %d aborted, %d partitions announced, %d log records", rows, p.aborted.Load(), announced, w.records())
	w.spark(rows)
	if rows > allRows {
		return
	}
	found := engines.Agree(t, engines.Table{Location: "hdfs://" + w.nameNode + w.root,
		WebHDFS: services.Address("HIVESINK_WEBHDFS", services.HDFSNameNodeHTTP)})
	if found.Rows != rows {
		t.Fatalf("the engines see %d rows, %d were committed", found.Rows, rows)
	}
}

// allRows is how many rows are few enough to be compared one by one, by DuckDB
// and PyArrow; Spark's sums are of all.
const allRows = 500_000

// away takes a daemon down for a while; the run goes on, meanwhile too.
func (w *world) away(daemon string, outage time.Duration, meanwhile func()) {
	w.t.Helper()
	if !w.home.Running(daemon) {
		w.t.Fatalf("%s does not run: the fault would not fire", daemon)
	}
	if err := w.home.Kill(daemon); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = w.home.Again(daemon) }) // for other tests
	end := time.Now().Add(outage)
	w.goesOn(2, "records while "+daemon+" is away")
	meanwhile()
	time.Sleep(time.Until(end))
	if err := w.home.Again(daemon); err != nil {
		w.t.Fatal(err)
	}
	w.goesOn(2, "records after "+daemon+" has come back")
}
