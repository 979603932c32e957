package kafka

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/format"
	"github.com/hivesink/hivesink/format/avro"
	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/record"
)

// counter is a registry of a test: reply says what to answer to the nth question
// for a path.
type counter struct {
	mu    sync.Mutex
	asked map[string]int
	reply func(path string, n int) (status int, body string)
}

func (c *counter) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	c.mu.Lock()
	c.asked[req.URL.Path]++
	n := c.asked[req.URL.Path]
	c.mu.Unlock()
	status, body := c.reply(req.URL.Path, n)
	w.WriteHeader(status)
	w.Write([]byte(body)) //nolint:errcheck // the client says so
}

func (c *counter) count(path string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[path]
}

func serve(t *testing.T, reply func(path string, n int) (int, string)) (*counter, string) {
	t.Helper()
	c := &counter{asked: make(map[string]int), reply: reply}
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	return c, s.URL
}

func always(status int, body string) func(string, int) (int, string) {
	return func(string, int) (int, string) { return status, body }
}

const (
	theSchema  = `{"schema":"{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"id\",\"type\":\"long\"}]}"}`
	notThere   = `{"error_code":40403,"message":"Schema 7 not found"}`
	ingress404 = "<html><body><h1>404 Not Found</h1></body></html>"
)

func newTestRegistry(t *testing.T, log *slog.Logger, urls ...string) *registry {
	t.Helper()
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	r, err := newRegistry(&config.SchemaRegistry{URL: strings.Join(urls, ",")}, log)
	if err != nil {
		t.Fatal(err)
	}
	r.pauses = []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond}
	r.client.Timeout = patience
	return r
}

func (r *registry) must(t *testing.T, id uint32) *writerSchema {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := r.schema(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What one registry does not have, or something before it, another may.
func TestSchemaFromTheOther(t *testing.T) {
	for name, first := range map[string]func(string, int) (int, string){
		"ingress":     always(404, ingress404),
		"empty":       always(404, ""),
		"wrong path":  always(404, `{"error_code":404,"message":"HTTP 404 Not Found"}`),
		"lags":        always(404, notThere),
		"refuses":     always(422, `{"error_code":42201,"message":"no"}`),
		"proxy":       always(400, "<html>plain HTTP to an HTTPS port"),
		"down":        always(503, ""),
		"no password": always(401, ""),
		"throttles":   always(429, ""),
		"login page":  always(200, "<html>please log in"),
		"other JSON":  always(200, "{}"),
	} {
		_, one := serve(t, first)
		_, two := serve(t, always(200, theSchema))
		if s := newTestRegistry(t, nil, one, two).must(t, 7); s.wrong != nil || !strings.Contains(s.text, `"id"`) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// A registry that says itself that it does not have a schema is asked again some
// times, and again later; what does not come from it is no answer.
func TestSchemaThatIsNotThere(t *testing.T) {
	const path = "/schemas/ids/7"
	c, url := serve(t, always(404, notThere))
	r := newTestRegistry(t, nil, url)
	r.missingFor = time.Hour
	for range 3 {
		if s := r.must(t, 7); s.wrong == nil || !strings.Contains(s.wrong.Error(), "the registry has no schema 7") {
			t.Fatalf("%+v", s)
		}
	}
	if n := c.count(path); n != 4 {
		t.Errorf("asked %d times, want once and three times again", n)
	}
	// It comes to be there.
	c, url = serve(t, func(_ string, n int) (int, string) {
		if n <= 2 {
			return 404, notThere
		}
		return 200, theSchema
	})
	if s := newTestRegistry(t, nil, url).must(t, 7); s.wrong != nil || c.count(path) != 3 {
		t.Errorf("asked %d times: %+v", c.count(path), s)
	}
	// It comes to be there after its records were bad for a while.
	c, url = serve(t, func(_ string, n int) (int, string) {
		if n <= 4 {
			return 404, notThere
		}
		return 200, theSchema
	})
	r = newTestRegistry(t, nil, url)
	r.missingFor = 0
	if s := r.must(t, 7); s.wrong == nil || c.count(path) != 4 {
		t.Errorf("asked %d times: %+v", c.count(path), s)
	}
	if s := r.must(t, 7); s.wrong != nil || c.count(path) != 5 {
		t.Errorf("asked %d times: %+v", c.count(path), s)
	}
	// An ingress without a registry behind it is waited for.
	c, url = serve(t, func(_ string, n int) (int, string) {
		if n <= 6 {
			return 404, ingress404
		}
		return 200, theSchema
	})
	var log bytes.Buffer
	r = newTestRegistry(t, slog.New(slog.NewTextHandler(&log, nil)), url)
	r.backoff = time.Millisecond
	if s := r.must(t, 7); s.wrong != nil || c.count(path) != 7 {
		t.Errorf("asked %d times: %+v", c.count(path), s)
	}
	if text := log.String(); strings.Count(text, "asking the schema registry failed; trying again") != 6 || !strings.Contains(text, "answers again") {
		t.Errorf("the log says %s", text)
	}
	// One of two that says so is not enough: the other may have it.
	_, one := serve(t, always(404, notThere))
	c, two := serve(t, func(_ string, n int) (int, string) {
		if n <= 6 {
			return 503, ""
		}
		return 200, theSchema
	})
	r = newTestRegistry(t, nil, one, two)
	r.backoff = time.Millisecond
	if s := r.must(t, 7); s.wrong != nil || c.count(path) != 7 {
		t.Errorf("asked %d times: %+v", c.count(path), s)
	}
}

// A stream of ids that are nobody's is not waited for, one by one, for ever.
func TestManySchemasThatAreNotThere(t *testing.T) {
	c, url := serve(t, always(404, notThere))
	r := newTestRegistry(t, nil, url)
	r.missingFor = 0
	const ids = 1200
	began := time.Now()
	for id := range uint32(ids) {
		if r.must(t, id).wrong == nil {
			t.Fatal("it is there")
		}
	}
	total := 0
	for _, n := range c.asked {
		total += n
	}
	minutes := 1 + int(time.Since(began)/time.Minute)
	if total > ids+idsAMinute*3*minutes {
		t.Errorf("asked %d times in %d minutes", total, minutes)
	}
	if len(r.known) > 1000 { // those whose time is over are forgotten
		t.Errorf("%d are kept", len(r.known))
	}
}

// A registry that refuses an id, or what it refers to, makes the schema wrong.
func TestSchemaThatIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		reply func(string, int) (int, string)
		want  string
	}{
		"422": {always(422, `{"error_code":422,"message":"bad id"}`), "bad id"},
		"400": {always(400, `{"error_code":0,"message":"bad id"}`), "bad id"},
		"reference": {func(path string, _ int) (int, string) {
			if strings.HasPrefix(path, "/subjects/") {
				return 404, `{"error_code":40402,"message":"Version 3 not found."}`
			}
			return 200, `{"schema":"{}","references":[{"subject":"a/b","version":3}]}`
		}, "refers to one that is not there"},
		"references": {func(path string, _ int) (int, string) {
			var n int
			fmt.Sscanf(path, "/subjects/s/versions/%d", &n)
			return 200, fmt.Sprintf(`{"schema":"{}","references":[{"subject":"s","version":%d}]}`, n+1)
		}, "more than 256"},
		"large": {always(200, `{"schema":"`+strings.Repeat("x", maxSchemaBytes)+`"}`), "larger than"},
	} {
		_, url := serve(t, c.reply)
		if s := newTestRegistry(t, nil, url).must(t, 7); s.wrong == nil || !strings.Contains(s.wrong.Error(), c.want) {
			t.Errorf("%s: %v", name, s.wrong)
		}
	}
}

// Ids are 31 bits: what is more is garbage, and nobody is asked.
func TestIDsAreUnsigned(t *testing.T) {
	c, url := serve(t, always(200, theSchema))
	id, err := hivetype.Parse("bigint")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := record.NewSchema([]hivetype.Field{{Name: "id", Type: id}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, err := avrorow.New(schema, avrorow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	a := &avroValues{d: d, registry: newTestRegistry(t, nil, url), compiled: make(map[uint32]*compiled)}
	value := func(id int64) []byte { return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(id)), 2) }
	for _, id := range []int64{-5, -1 << 31, 1 << 31} {
		v := value(id)
		if err := a.schema(context.Background(), v); err != nil {
			t.Fatal(err)
		}
		var e *format.Error
		if err := a.Append(v); !errors.As(err, &e) || !strings.Contains(e.Reason, fmt.Sprint(uint32(id))) {
			t.Errorf("%d: %v", id, err)
		}
	}
	if len(c.asked) != 0 {
		t.Errorf("asked %v", c.asked)
	}
	for range 2 {
		v := value(1<<31 - 1)
		if err := a.schema(context.Background(), v); err != nil {
			t.Fatal(err)
		}
		if err := a.Append(v); err != nil {
			t.Error(err)
		}
	}
	if n := c.count("/schemas/ids/2147483647"); n != 1 || d.Len() != 2 {
		t.Errorf("asked %d times, %d rows", n, d.Len())
	}
}

// The start finds out whether it is a registry that answers.
func TestRegistryCheck(t *testing.T) {
	for name, c := range map[string]struct {
		reply func(string, int) (int, string)
		want  string // "": it starts
	}{
		"types": {always(200, `["AVRO"]`), ""},
		"before there were types": {func(path string, _ int) (int, string) {
			if path == "/schemas/ids/1" {
				return 404, notThere
			}
			return 404, ""
		}, ""},
		"old":     {always(404, `{"error_code":404,"message":"HTTP 404 Not Found"}`), ""},
		"ingress": {always(404, ingress404), "schema_registry.url: "},
		"refused": {always(401, ""), "check username and password"},
	} {
		_, url := serve(t, c.reply)
		within := patience
		if name == "ingress" {
			within = 700 * time.Millisecond // which is waited for
		}
		ctx, cancel := context.WithTimeoutCause(context.Background(), within, errStartTimeout)
		err := newTestRegistry(t, nil, url).check(ctx)
		cancel()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
