//go:build integration

package hdfs

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hivesink/hivesink/storage/hdfsfs"
	"github.com/hivesink/hivesink/test/mainjob"
)

// refusal is a configuration that a run refuses.
type refusal struct {
	what   string
	at     string // authority of the location
	config string // section hdfs
	code   int
	says   string
}

const smallJob = `
pipeline: refused
state_dir: %s
source: {datagen: {rows: 10}}
table: {name: refused, location: "hdfs://%s/refused/table", columns: [id bigint]}
%s
`

// refused runs each, and wants one line that names the option to look at, within
// a bounded time.
func refused(t *testing.T, all []refusal) {
	t.Helper()
	mainjob.Binary(t) // built before any time is taken
	for _, r := range all {
		t.Run(strings.ReplaceAll(r.what, " ", "-"), func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "c.yaml")
			must(t, os.WriteFile(file, fmt.Appendf(nil, smallJob, filepath.Join(dir, "state"), r.at, r.config), 0o600))
			began := time.Now()
			got := mainjob.Want(t, r.code, nil, "run", "-c", file)
			said := strings.TrimSpace(got.Err)
			lines := strings.Split(said, "\n")
			last := lines[len(lines)-1]
			t.Logf("%s: %s", time.Since(began).Round(10*time.Millisecond), last)
			if !strings.Contains(last, r.says) || !strings.HasPrefix(last, "hivesink run: ") {
				t.Errorf("want %q in the last line of:\n%s", r.says, said)
			}
			for _, line := range lines[:len(lines)-1] {
				if !strings.Contains(line, "waiting for the storage") {
					t.Errorf("more than one error:\n%s", said)
				}
			}
			if time.Since(began) > time.Minute {
				t.Errorf("it took %s", time.Since(began))
			}
		})
	}
}

// TestRefusedAtStart: a wrong host, a port where nobody listens, a server that
// never answers, one that is no name node, a user who may not write.
func TestRefusedAtStart(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and says nothing
	must(t, err)
	defer silent.Close()
	web, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer web.Close()
	go func() { // ends with the listener
		for {
			c, err := web.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			_ = c.Close()
		}
	}()
	fs := open(t, hdfsfs.Options{})
	if err := fs.Mkdir("/refused"); err != nil {
		t.Log(err)
	}
	t.Cleanup(func() { _ = fs.Remove("/refused") })
	at := "table.location hdfs://"
	refused(t, []refusal{
		{"no such host", "no-such-host.invalid:8020", "hdfs: {start_timeout: 3s}", 1, at},
		{"refused", "127.0.0.1:1", "hdfs: {start_timeout: 3s}", 1, "connection refused"},
		{"no answer", silent.Addr().String(), "hdfs: {start_timeout: 3s}", 1, at},
		{"no name node", web.Addr().String(), "hdfs: {start_timeout: 3s}", 1, at},
		{"wrong namenodes", nameNode(), "hdfs: {start_timeout: 3s, namenodes: [\"127.0.0.1:1\"]}", 1, "hdfs.namenodes"},
		{"no permission", nameNode(), "hdfs: {user: nobody-we-know}", 1, "hdfs.user"},
		{"no conf_dir", nameNode(), "hdfs: {conf_dir: /nowhere}", 2, "hdfs.conf_dir"},
	})
}
