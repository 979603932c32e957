package engines

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hivesink/hivesink/test/services"
)

// Table is what the engines are asked for.
type Table struct {
	Location string `json:"location"`          // a path, hdfs:// or s3://
	Name     string `json:"table,omitempty"`   // database.table of the metastore; "": Spark is not asked
	WebHDFS  string `json:"webhdfs,omitempty"` // host:port, for a location on HDFS; of a pair both, separated by a comma
	// Hadoop is configuration that Spark needs to come to the location.
	Hadoop map[string]string `json:"hadoop,omitempty"`
	S3     *S3               `json:"s3,omitempty"`   // for a location on S3
	Rows   bool              `json:"rows,omitempty"` // the answer has the rows themselves
}

// S3 is how an object store is spoken to.
type S3 struct {
	Endpoint  string `json:"endpoint"`
	AccessKey string `json:"access_key"`
	SecretKey string `json:"secret_key"`
}

// Column is a column as an engine sees it.
type Column struct {
	Type  string `json:"type"` // in Hive's words
	Nulls int    `json:"nulls"`
}

// Found is what an engine found in a table.
type Found struct {
	Rows       int               `json:"rows"`
	Columns    map[string]Column `json:"columns"`
	Partitions map[string]int    `json:"partitions"` // rows by partition
	Digest     string            `json:"digest"`     // of the multiset of rows
	Values     [][]any           `json:"values"`     // if Table.Rows
	Order      []string          `json:"order"`      // of the columns in Values
}

type reply struct {
	Error   string `json:"error"`
	Spark   *Found `json:"spark"`
	DuckDB  *Found `json:"duckdb"`
	PyArrow *Found `json:"pyarrow"`
}

// Metastore is the address of the metastore whose tables Spark reads. Its own
// client speaks to one of Hive 3.
func Metastore() string { return services.Address("HIVESINK_HMS3", services.HMS3) }

// Announce is the configuration of a table that Spark is to read. location is
// what readers call it; "" is table.location.
func Announce(location string) string {
	if location != "" {
		location = fmt.Sprintf(", location: %q", location)
	}
	return fmt.Sprintf("metastore: {type: hive, uri: \"thrift://%s\", create_table: true%s}", Metastore(), location)
}

// Agree reads the table with each engine, fails the test unless they have found
// the same, and returns it.
func Agree(t testing.TB, table Table) Found {
	t.Helper()
	start := time.Now()
	r, err := ask(table)
	if err != nil {
		t.Fatal(err)
	}
	if r.Error != "" {
		t.Fatalf("the engines could not read %s: %s", table.Location, r.Error)
	}
	others := map[string]*Found{"DuckDB": r.DuckDB}
	if table.Name != "" {
		others["Spark"] = r.Spark
	}
	for name, f := range others {
		if err := r.PyArrow.differs(f); err != nil {
			t.Fatalf("%s: PyArrow and %s: %v", table.Location, name, err)
		}
	}
	t.Logf("PyArrow, %s agree on %d rows in %d partitions (%s)", strings.Join(keys(others), ", "), r.PyArrow.Rows, len(r.PyArrow.Partitions),
		time.Since(start).Round(time.Millisecond))
	return *r.PyArrow
}

func keys(m map[string]*Found) (out []string) {
	for _, k := range []string{"DuckDB", "Spark"} {
		if m[k] != nil {
			out = append(out, k)
		}
	}
	return out
}

// differs says in what another engine found something else.
func (f *Found) differs(g *Found) error {
	if g == nil {
		return fmt.Errorf("no answer")
	}
	switch {
	case f.Rows != g.Rows:
		return fmt.Errorf("%d and %d rows", f.Rows, g.Rows)
	case !maps.Equal(f.Columns, g.Columns):
		return fmt.Errorf("columns %v and %v", f.Columns, g.Columns)
	case !maps.Equal(f.Partitions, g.Partitions):
		return fmt.Errorf("partitions %v and %v", f.Partitions, g.Partitions)
	case f.Digest != g.Digest:
		return fmt.Errorf("the same number of rows, but other values")
	}
	return nil
}

// server is the process that asks the engines.
type server struct {
	mu   sync.Mutex
	cmd  *exec.Cmd
	in   io.Writer
	out  *bufio.Reader
	errs strings.Builder
}

// one is started by the first question. It ends with the test process: its
// standard input does.
var one = sync.OnceValues(func() (*server, error) {
	home, err := services.DefaultHome()
	if err != nil {
		return nil, err
	}
	jars, err := home.ClassPath(services.Source("poms", "spark-s3a", "pom.xml"))
	if err != nil {
		return nil, err
	}
	python := os.Getenv("HIVESINK_PYTHON")
	if python == "" {
		python = services.Source("..", "..", ".venv", "bin", "python")
	}
	s := &server{cmd: exec.Command(python, services.Source("..", "engines", "serve.py"), "thrift://"+Metastore(), jars)}
	s.cmd.Dir = filepath.Clean(os.TempDir()) // Spark leaves its warehouse there
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.in, s.out, s.cmd.Stderr = in, bufio.NewReader(out), &s.errs
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w (make .venv/ready makes the Python environment)", err)
	}
	return s, nil
})

// patience is how long an answer may take: the first one starts a JVM.
const patience = 5 * time.Minute

func ask(table Table) (r reply, err error) {
	s, err := one()
	if err != nil {
		return r, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := json.Marshal(table)
	if err != nil {
		return r, err
	}
	late := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() }) // then the read below ends
	defer late.Stop()
	if _, err = s.in.Write(append(q, '\n')); err == nil {
		var line []byte
		if line, err = s.out.ReadBytes('\n'); err == nil {
			err = json.Unmarshal(line, &r)
		}
	}
	if err != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait() // its last words are in errs now
		return r, fmt.Errorf("serve.py: %w\n%s", err, s.errs.String())
	}
	return r, nil
}
