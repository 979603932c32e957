package s3fs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
)

const planted = "planted-secret"

// answers is a store that says one thing after the other, the last for ever;
// the greeting of New is answered well and not counted.
func answers(t *testing.T, list ...http.HandlerFunc) (*FS, *atomic.Int64) {
	t.Helper()
	var n atomic.Int64
	var greeted atomic.Bool
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !greeted.Swap(true) {
			fmt.Fprint(w, `<ListBucketResult><Name>bkt</Name></ListBucketResult>`)
			return
		}
		i := int(n.Add(1)) - 1
		list[min(i, len(list)-1)](w, r)
	}))
	t.Cleanup(srv.Close)
	f, err := New(context.Background(), options(srv.URL))
	if err != nil {
		t.Fatal(err)
	}
	return f, &n
}

func options(url string) Options {
	given := func(s string) func() (string, error) { return func() (string, error) { return s, nil } }
	return Options{Bucket: "bkt", Endpoint: url, Region: "us-east-1", PathStyle: true, startFor: time.Minute,
		AccessKey: given("key"), SecretKey: given(planted)}
}

// fedUp has f give up with the try after the most-th request: by their number,
// since nobody knows how long a busy machine takes for one.
func fedUp(f *FS, n *atomic.Int64, most int) {
	f.o.Notify = func(string, error) {
		if int(n.Load()) >= most {
			f.o.RetryFor = 0
		}
	}
}

func say(status int, code string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		if code != "" {
			fmt.Fprintf(w, `<Error><Code>%s</Code><Message>in the test</Message></Error>`, code)
		}
	}
}

// TestRetries: what passes is tried again, and nothing else.
func TestRetries(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		again  bool
		is     error
	}{
		{503, "SlowDown", true, nil},
		{500, "InternalError", true, nil},
		{429, "TooManyRequests", true, nil},
		{409, "OperationAborted", true, nil},
		{409, "ConditionalRequestConflict", true, nil}, // of a PUT: the next try is told how it went
		{412, "PreconditionFailed", false, storage.ErrExist},
		{403, "AccessDenied", false, storage.ErrPermission},
		{403, "SignatureDoesNotMatch", true, nil}, // once: the secret may have been exchanged
		{403, "InvalidAccessKeyId", true, nil},    // the keys have been good
		{404, "NoSuchKey", false, storage.ErrNotExist},
		{501, "NotImplemented", false, nil},
		{507, "XMinioStorageFull", true, nil},
	} {
		f, n := answers(t, say(c.status, c.code), well)
		err := f.Make("/dir/name", []byte("text"))
		if c.again != (err == nil) || c.again != (n.Load() == 2) {
			t.Errorf("%d %s: %d tries, %v", c.status, c.code, n.Load(), err)
		}
		if err == nil {
			continue
		}
		if c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%d %s: %v is not %v", c.status, c.code, err, c.is)
		}
		var named *storage.Error
		if !errors.As(err, &named) || named.Name != "/dir/name" || !strings.Contains(err.Error(), c.code) {
			t.Errorf("%d %s: %v", c.status, c.code, err)
		}
	}
}

// TestLostAnswer: after a try without an answer the object is looked at (O2).
func TestLostAnswer(t *testing.T) {
	cut := func(w http.ResponseWriter, _ *http.Request) {
		if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = c.Close()
		}
	}
	there := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				w.Header().Set("ETag", `"e"`)
				fmt.Fprint(w, text)
				return
			}
			say(412, "PreconditionFailed")(w, r)
		}
	}
	f, _ := answers(t, cut, there("ours"))
	if err := f.Put("/name", bytes.NewReader([]byte("ours")), 4); err != nil {
		t.Errorf("our own object: %v", err)
	}
	f, _ = answers(t, cut, there("else"))
	if err := f.Put("/name", bytes.NewReader([]byte("ours")), 4); !errors.Is(err, storage.ErrExist) {
		t.Errorf("somebody else's object: %v", err)
	}
	f, n := answers(t, there("ours")) // at the first try it can be nobody's but another's
	if err := f.Put("/name", bytes.NewReader([]byte("ours")), 4); !errors.Is(err, storage.ErrExist) || n.Load() != 1 {
		t.Errorf("an object that was there before: %d requests, %v", n.Load(), err)
	}
}

// TestRetryFor: an endless failure ends within RetryFor, after ever longer pauses
// (X1).
func TestRetryFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &FS{o: Options{RetryFor: 2 * time.Second, RequestTimeout: time.Minute}}
		tries, began := 0, time.Now()
		err := f.do(t.Context(), "PutObject", "name", func(context.Context) error {
			tries++
			return &smithy.GenericAPIError{Code: "SlowDown"}
		})
		if took := time.Since(began); err == nil || tries != 5 || took < 700*time.Millisecond || took > 2*time.Second {
			t.Fatalf("%d tries in %s: %v", tries, took, err)
		}
	})
}

// TestGivenUp: the error of what was given up says how often it was tried, and has
// no secret in it (X4).
func TestGivenUp(t *testing.T) {
	f, n := answers(t, say(503, "SlowDown"))
	fedUp(f, n, 2)
	err := f.Make("/name", nil)
	if err == nil || n.Load() != 3 {
		t.Fatalf("%d tries: %v", n.Load(), err)
	}
	if text := fmt.Sprintf("%v %+v", err, err); strings.Contains(text, planted) || !strings.Contains(text, "failed 3 times") {
		t.Errorf("it says: %s", text)
	}
}

// TestStart: each refusal names its option and class.
func TestStart(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		class  fault.Class
		word   string
	}{
		{404, "NoSuchBucket", fault.Config, "table.location"},
		{403, "InvalidAccessKeyId", fault.Config, "s3.access_key"},
		{403, "SignatureDoesNotMatch", fault.Config, "s3.secret_key"},
		{403, "AccessDenied", fault.Config, "table.location"},
		{403, "RequestTimeTooSkewed", fault.Config, "clock"},
		{301, "PermanentRedirect", fault.Config, "s3.region"},
		{400, "AuthorizationHeaderMalformed", fault.Config, "s3.region"},
		{200, "", fault.Config, "s3.endpoint"},
	} {
		srv := httptest.NewServer(say(c.status, c.code))
		_, err := New(context.Background(), options(srv.URL))
		srv.Close()
		if fault.ClassOf(err) != c.class || !strings.Contains(fmt.Sprint(err), c.word) {
			t.Errorf("%d %s: class %s: %v", c.status, c.code, fault.ClassOf(err), err)
		}
		if strings.Contains(fmt.Sprintf("%v %+v", err, err), planted) {
			t.Errorf("%d %s: a secret is printed: %v", c.status, c.code, err)
		}
	}
}

// TestRefusedKeys: keys that cannot be read are the configuration's fault.
func TestRefusedKeys(t *testing.T) {
	o := options("http://127.0.0.1:1")
	o.SecretKey = func() (string, error) { return "", fault.New(fault.Config, "", "s3.secret_key: is missing") }
	_, err := New(context.Background(), o)
	if fault.ClassOf(err) != fault.Config || !strings.Contains(err.Error(), "s3.secret_key: is missing") {
		t.Fatalf("class %s: %v", fault.ClassOf(err), err)
	}
}
