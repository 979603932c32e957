//go:build integration

package s3

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hivesink/hivesink/test/mainjob"
	"github.com/hivesink/hivesink/test/services"
)

// within is how long a start that cannot work may take.
const within = time.Minute

// startYAML is a run whose location and section s3 are the test's.
const startYAML = `
pipeline: start
state_dir: %s/state
source: {datagen: {rows: 10}}
table: {name: t, location: %s, columns: [id bigint]}
%s
`

func startConfig(t *testing.T, location, section string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "sink.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, startYAML, dir, location, section), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// silent accepts and says nothing.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return "http://" + l.Addr().String()
}

// TestStartFailures: what is wrong at the start is one error that names the
// option, in bounded time, with no secret in it.
func TestStartFailures(t *testing.T) {
	mainjob.Binary(t) // building it takes no part of the time
	url := services.VersityURL()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>hello</html>") }))
	t.Cleanup(other.Close)
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // it says of each handshake that it failed
	secure.StartTLS()
	t.Cleanup(secure.Close)
	bucket := "s3://" + services.S3Bucket + "/start"
	for _, c := range []struct {
		name, location, section string
		env                     []string
		code                    int
		words                   []string
	}{
		{"refused", bucket, settings("http://127.0.0.1:1", ""), env, 1, []string{"s3.endpoint", "connection refused"}},
		{"no such host", bucket, settings("http://no-such-host.invalid", ""), env, 1, []string{"s3.endpoint", "no such host"}},
		{"silent", bucket, settings(silent(t), ""), env, 1, []string{"s3.endpoint", "cannot be reached"}},
		{"no S3", bucket, settings(other.URL, ""), env, 2, []string{"s3.endpoint", "does not answer as S3 does"}},
		{"unknown authority", bucket, settings(secure.URL, ""), env, 2, []string{"s3.endpoint", "s3.tls.ca", "unknown authority"}},
		{"missing bucket", "s3://no-such-bucket/start", settings(url, ""), env, 2, []string{"table.location", `no bucket "no-such-bucket"`, "NoSuchBucket"}},
		{"wrong secret", bucket, settings(url, ""), []string{env[0], "TEST_S3_SECRET=another-planted-secret"}, 2, []string{"s3.secret_key", "SignatureDoesNotMatch"}},
		{"wrong key", bucket, settings(url, ""), []string{"TEST_S3_ACCESS=nobody", env[1]}, 2, []string{"s3.access_key", "refuses"}},
		{"missing secret", bucket, settings(url, ""), env[:1], 2, []string{"s3.secret_key", "TEST_S3_SECRET is not set"}},
		{"no credentials", bucket, fmt.Sprintf("s3: {endpoint: %q, path_style: true}", url),
			[]string{"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null"}, 2, []string{"s3.access_key", "no credentials"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := startConfig(t, c.location, c.section)
			for _, command := range []string{"run", "fsck"} {
				began := time.Now()
				r := mainjob.Want(t, c.code, c.env, command, "-c", file)
				if took := time.Since(began); took > within {
					t.Errorf("%s took %s", command, took)
				}
				text := lastLine(r.Err)
				for _, word := range c.words {
					if !strings.Contains(text, word) {
						t.Errorf("%s: %q is not in: %s", command, word, text)
					}
				}
				if len(text) > 700 {
					t.Errorf("%s: the error is %d bytes long: %s", command, len(text), text)
				}
				if strings.Contains(r.Out+r.Err, "planted-secret") {
					t.Errorf("%s: a secret is printed: %v", command, r)
				}
			}
		})
	}
}

// lastLine is the error of a command; before it come the words of what was
// tried again.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
