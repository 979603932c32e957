package s3fs

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
)

func hangUp(w http.ResponseWriter, _ *http.Request) {
	if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
		_ = c.Close()
	}
}

// TestNoSpace: a full store is worth another try later, if each try was refused
// for that: nothing has been done then. One that was not answered may have been.
func TestNoSpace(t *testing.T) {
	for _, c := range []struct {
		name  string
		list  []http.HandlerFunc
		class fault.Class
	}{
		{"full", []http.HandlerFunc{say(507, "XMinioStorageFull")}, fault.Retry},
		{"full, says the status", []http.HandlerFunc{say(507, "")}, fault.Retry},
		{"a quota", []http.HandlerFunc{say(403, "QuotaExceeded")}, fault.Retry},
		{"a quota of MinIO", []http.HandlerFunc{say(400, "XMinioAdminBucketQuotaExceeded")}, fault.Retry},
		{"no answer, then full", []http.HandlerFunc{hangUp, say(507, "XMinioStorageFull")}, fault.Halt},
		{"no answer, then a quota", []http.HandlerFunc{hangUp, say(403, "QuotaExceeded")}, fault.Halt},
		{"busy, then full", []http.HandlerFunc{say(503, "SlowDown"), say(507, "XMinioStorageFull")}, fault.Halt},
		{"full, then no answer", []http.HandlerFunc{say(507, "XMinioStorageFull"), hangUp}, fault.Halt},
		{"an empty answer, then a quota", []http.HandlerFunc{say(200, ""), say(403, "QuotaExceeded")}, fault.Halt},
	} {
		for op, do := range map[string]func(f *FS) error{
			"Make": func(f *FS) error { return f.Make("/name", []byte("text")) },
			"Upload": func(f *FS) error {
				_, err := f.Upload(context.Background(), "/name", strings.NewReader("text"), 4)
				return err
			},
		} {
			t.Run(c.name+", "+op, func(t *testing.T) {
				t.Parallel()
				f, n := answers(t, c.list...)
				fedUp(f, n, len(c.list))
				err := storage.Classify(do(f))
				if fault.ClassOf(err) != c.class || errors.Is(err, storage.ErrNoSpace) != (c.class == fault.Retry) || int(n.Load()) < len(c.list) {
					t.Errorf("%d requests, class %s, no space %t: %v", n.Load(), fault.ClassOf(err), errors.Is(err, storage.ErrNoSpace), err)
				}
				if c.class == fault.Retry && !strings.Contains(hintOf(err), "free some space") {
					t.Errorf("the hint is %q", hintOf(err))
				}
			})
		}
	}
}

func hintOf(err error) string {
	var classed *fault.Error
	if errors.As(err, &classed) {
		return classed.Hint
	}
	return ""
}

// TestNoListingOfUploads: a store that cannot list uploads is asked once, by one
// try: nothing depends on it.
func TestNoListingOfUploads(t *testing.T) {
	for name, refuse := range map[string]http.HandlerFunc{"500": say(500, "InternalError"), "501": say(501, "NotImplemented"), "silence": cutShort(t)} {
		var listed atomic.Int64
		f, _ := answers(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("uploads") {
				listed.Add(1)
				refuse(w, r)
				return
			}
			well(w, r)
		})
		for range 3 {
			if err := errors.Join(f.AbortAt("/dir/name"), f.AbortLeft("/dir")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if listed.Load() != 1 {
			t.Errorf("%s: asked %d times", name, listed.Load())
		}
	}
}
