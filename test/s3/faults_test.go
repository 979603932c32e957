//go:build integration

package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	faults "github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/s3fs"
	"github.com/hivesink/hivesink/test/mainjob"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error is %v, want %v", err, want)
	}
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// TestObjects: the rules of storage.Objects on real stores.
func TestObjects(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		fs := open(t, s3fs.Options{Endpoint: url, PartSize: 5 << 20})
		dir, ctx := scratch(t, fs), context.Background()
		at := func(name string) string { return path.Join(dir, name) }
		must(t, fs.Probe(ctx, dir))

		// O1: of many makers of a name one wins.
		var wg sync.WaitGroup
		wins := make(chan string, 16)
		for i := range 16 {
			wg.Go(func() {
				text := fmt.Sprint("maker ", i)
				if err := fs.Make(at("race"), []byte(text)); err == nil {
					wins <- text
				} else if !errors.Is(err, storage.ErrExist) {
					t.Errorf("maker %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		if len(wins) != 1 {
			t.Fatalf("%d makers of one name won", len(wins))
		}
		got, err := fs.ReadFile(at("race"))
		must(t, err)
		if won := <-wins; string(got) != won {
			t.Fatalf("%q won, %q is there", won, got)
		}

		// Large and small, put and read back in pieces.
		big := randomBytes(11<<20 + 123)
		must(t, fs.Put(at("big"), bytes.NewReader(big), int64(len(big))))
		is(t, fs.Put(at("big"), strings.NewReader("x"), 1), storage.ErrExist)
		r, err := fs.Open(at("big"))
		must(t, err)
		if r.Size() != int64(len(big)) {
			t.Fatalf("size %d", r.Size())
		}
		for _, off := range []int64{0, 5, 1<<20 - 3, 7 << 20, int64(len(big)) - 100_000, int64(len(big)) - 10} {
			p := make([]byte, min(200_000, int64(len(big))-off))
			if _, err := r.ReadAt(p, off); err != nil || !bytes.Equal(p, big[off:off+int64(len(p))]) {
				t.Fatalf("read at %d: %v", off, err)
			}
		}
		must(t, r.Close())
		for _, c := range [][2]int{{0, 9000}, {9000, 300}, {9300, 100_000}, {3 << 20, 3 << 20}, {len(big) - 40_000, 40_000}} {
			s, err := storage.OpenSlice(fs, at("big"), int64(c[0]), int64(c[1]))
			must(t, err)
			p := make([]byte, c[1])
			for _, off := range []int{0, c[1] / 2, c[1] - 8} { // small reads, then all of it
				if _, err := s.ReadAt(p[:8], int64(off)); err != nil || !bytes.Equal(p[:8], big[c[0]+off:c[0]+off+8]) {
					t.Fatalf("slice of %d at %d, read at %d: %v", c[1], c[0], off, err)
				}
			}
			if _, err := s.ReadAt(p, 0); err != nil || !bytes.Equal(p, big[c[0]:c[0]+c[1]]) {
				t.Fatalf("slice of %d at %d: %v", c[1], c[0], err)
			}
			must(t, s.Close())
		}
		if _, err := storage.OpenSlice(fs, at("big"), int64(len(big))-5, 6); err == nil {
			t.Fatal("a slice that is not all there is opened")
		}

		// O3: hidden until completed, never over an object, never after an abort.
		id, err := fs.Upload(ctx, at("target"), bytes.NewReader(big), int64(len(big)))
		must(t, err)
		_, err = fs.Stat(at("target"))
		is(t, err, storage.ErrNotExist)
		other, err := fs.UploadCopy(ctx, at("target"), at("big"), int64(len(big)))
		must(t, err)
		gone, err := fs.Upload(ctx, at("target"), strings.NewReader("aborted"), 7)
		must(t, err)
		must(t, fs.Abort(at("target"), gone))
		must(t, fs.Abort(at("target"), gone))
		is(t, fs.Complete(at("target"), gone), storage.ErrNotExist)
		must(t, fs.Complete(at("target"), other))
		is(t, fs.Complete(at("target"), id), storage.ErrExist)
		must(t, fs.Abort(at("target"), id))
		// Both answers to a second completion are legal.
		if err := fs.Complete(at("target"), other); err != nil && !errors.Is(err, storage.ErrNotExist) {
			t.Fatalf("completed twice: %v", err)
		}
		got, err = fs.ReadFile(at("target"))
		must(t, err)
		if !bytes.Equal(got, big) {
			t.Fatal("the copied target is not what was copied")
		}

		// Begun and never told: found under the very name, on either store.
		lost, err := fs.Upload(ctx, at("lost"), strings.NewReader("lost"), 4)
		must(t, err)
		must(t, fs.AbortAt(at("lost")))
		is(t, fs.Complete(at("lost"), lost), storage.ErrNotExist)

		// Known by its id only, as another process knows it: looked at, completed.
		whole, err := fs.Upload(ctx, at("whole"), bytes.NewReader(big), int64(len(big)))
		must(t, err)
		next := open(t, s3fs.Options{Endpoint: url})
		size, err := next.Uploaded(at("whole"), whole)
		must(t, err)
		if size != int64(len(big)) {
			t.Fatalf("the upload has %d bytes, want %d", size, len(big))
		}
		must(t, next.Complete(at("whole"), whole))
		_, err = next.Uploaded(at("whole"), whole)
		is(t, err, storage.ErrNotExist)
		got, err = fs.ReadFile(at("whole"))
		must(t, err)
		if !bytes.Equal(got, big) {
			t.Fatal("another process completed something else")
		}

		// Listings.
		for i := range 30 {
			must(t, fs.Make(at(fmt.Sprintf("log/%012d", i)), nil))
		}
		infos, err := fs.List(dir)
		must(t, err)
		var names []string
		for _, i := range infos {
			names = append(names, fmt.Sprint(i.Name, i.Dir))
		}
		if got := strings.Join(names, " "); got != "bigfalse logtrue racefalse targetfalse wholefalse" {
			t.Fatalf("listed: %s", got)
		}
		behind, err := fs.ListAfter(at("log"), fmt.Sprintf("%012d", 27), 1)
		must(t, err)
		if len(behind) != 1 || behind[0].Name != fmt.Sprintf("%012d", 28) {
			t.Fatalf("after 27 comes %v", behind)
		}
		behind, err = fs.ListAfter(at("log"), fmt.Sprintf("%012d", 29), 1)
		must(t, err)
		if len(behind) != 0 {
			t.Fatalf("after the last comes %v", behind)
		}
		must(t, fs.RemoveTree(at("log")))
		_, err = fs.List(at("log"))
		is(t, err, storage.ErrNotExist)
	})
}

// TestRequests: what passes is tried again, in a bounded time; answers that were
// lost are found out.
func TestRequests(t *testing.T) {
	ctx := context.Background()
	onEach(t, func(t *testing.T, url string) {
		slow := refuse(http.StatusServiceUnavailable, "SlowDown")
		for name, c := range map[string]struct {
			fault *fault
			do    func(fs *s3fs.FS, at string) error
		}{
			"put, answer lost":       {&fault{op: "PutObject", do: loseAnswer}, put(1000)},
			"put, slow down":         {&fault{op: "PutObject", times: 3, do: slow}, put(1000)},
			"put, conflict":          {&fault{op: "PutObject", do: refuse(http.StatusConflict, "ConditionalRequestConflict")}, put(1000)},
			"put, internal error":    {&fault{op: "PutObject", do: refuse(http.StatusInternalServerError, "InternalError")}, put(1000)},
			"put, cut in the body":   {&fault{op: "PutObject", do: cutBody}, put(4 << 20)},
			"put, hung":              {&fault{op: "PutObject", do: hang}, put(1000)},
			"part, cut in the body":  {&fault{op: "UploadPart", nth: 2, do: cutBody}, put(11 << 20)},
			"part, answer lost":      {&fault{op: "UploadPart", do: loseAnswer}, put(11 << 20)},
			"part, slow down":        {&fault{op: "UploadPart", times: 4, do: slow}, put(11 << 20)},
			"create, answer lost":    {&fault{op: "CreateMultipartUpload", do: loseAnswer}, put(11 << 20)},
			"complete, answer lost":  {&fault{op: "CompleteMultipartUpload", do: loseAnswer}, put(11 << 20)},
			"complete, done twice":   {&fault{op: "CompleteMultipartUpload", do: twice}, put(11 << 20)},
			"complete, slow down":    {&fault{op: "CompleteMultipartUpload", times: 2, do: slow}, put(11 << 20)},
			"get, cut":               {&fault{op: "GetObject", do: loseAnswer}, put(1000)},
			"delete, answer lost":    {&fault{op: "DeleteObject", do: loseAnswer}, remove},
			"abort fails once":       {&fault{op: "AbortMultipartUpload", do: slow}, abort(ctx)},
			"abort, the answer lost": {&fault{op: "AbortMultipartUpload", do: loseAnswer}, abort(ctx)},
		} {
			t.Run(name, func(t *testing.T) {
				p := newProxy(t, url, c.fault)
				dir := scratch(t, open(t, s3fs.Options{Endpoint: url}))
				o := s3fs.Options{Endpoint: p.URL, PartSize: 5 << 20}
				if strings.HasSuffix(name, "hung") {
					o.RequestTimeout = 2 * time.Second
				}
				fs := open(t, o)
				must(t, c.do(fs, path.Join(dir, "object.part")))
				left, err := open(t, s3fs.Options{Endpoint: url}).List(dir)
				if err != nil && !errors.Is(err, storage.ErrNotExist) {
					t.Fatal(err)
				}
				for _, i := range left {
					if i.Name != "object.part" {
						t.Errorf("%s is left", i.Name)
					}
				}
			})
		}
	})
}

// put makes an object of n bytes and reads it back.
func put(n int) func(fs *s3fs.FS, at string) error {
	return func(fs *s3fs.FS, at string) error {
		data := randomBytes(n)
		if err := fs.Put(at, bytes.NewReader(data), int64(n)); err != nil {
			return err
		}
		got, err := fs.ReadFile(at)
		if err == nil && !bytes.Equal(got, data) {
			err = errors.New("it is not what was put")
		}
		return err
	}
}

func remove(fs *s3fs.FS, at string) error {
	if err := fs.Make(at, nil); err != nil {
		return err
	}
	if err := fs.Remove(at); err != nil {
		return err
	}
	if _, err := fs.Stat(at); !errors.Is(err, storage.ErrNotExist) {
		return fmt.Errorf("removed, and then: %v", err)
	}
	return nil
}

func abort(ctx context.Context) func(fs *s3fs.FS, at string) error {
	return func(fs *s3fs.FS, at string) error {
		id, err := fs.Upload(ctx, at, strings.NewReader("x"), 1)
		if err != nil {
			return err
		}
		if err := fs.Abort(at, id); err != nil {
			return err
		}
		if err := fs.Complete(at, id); !errors.Is(err, storage.ErrNotExist) {
			return fmt.Errorf("completed after it was aborted: %v", err)
		}
		return nil
	}
}

// TestBounded: a store that goes on failing is given up in time, and the error
// says how often it was tried.
func TestBounded(t *testing.T) {
	p := newProxy(t, stores()["versitygw"], &fault{op: "PutObject", times: 1000, do: refuse(http.StatusServiceUnavailable, "SlowDown")})
	waits := 0
	fs := open(t, s3fs.Options{Endpoint: p.URL, RetryFor: 5 * time.Second, Notify: func(string, error) { waits++ }})
	began := time.Now()
	err := fs.Make("/bounded", []byte("x"))
	if took := time.Since(began); err == nil || took > time.Minute || waits < 3 || waits > 12 {
		t.Fatalf("after %s and %d pauses: %v", took, waits, err)
	}
	if !strings.Contains(err.Error(), "SlowDown") || !strings.Contains(err.Error(), "times") {
		t.Fatalf("it says: %v", err)
	}
}

// TestNoConditionalWrites: a store that does not keep conditional writes is
// refused with that reason, before anything is written.
func TestNoConditionalWrites(t *testing.T) {
	unconditional := func(p *proxy, w http.ResponseWriter, r *http.Request) {
		r.Header.Del("If-None-Match") // not among the signed headers of either store's check
		p.forward(w, r)
	}
	for _, op := range []string{"PutObject", "CompleteMultipartUpload"} {
		for name, do := range map[string]action{"ignored": unconditional, "not implemented": refuse(http.StatusNotImplemented, "NotImplemented")} {
			t.Run(op+" "+name, func(t *testing.T) {
				url := stores()["versitygw"]
				p := newProxy(t, url, &fault{op: op, glob: "probe-*", times: 100, do: do})
				fs := open(t, s3fs.Options{Endpoint: p.URL})
				dir := scratch(t, open(t, s3fs.Options{Endpoint: url}))
				err := fs.Probe(context.Background(), dir)
				if faults.ClassOf(err) != faults.Config || !strings.Contains(err.Error(), "If-None-Match") {
					t.Fatalf("probe: %v", err)
				}
			})
		}
	}
}

// TestJobWithFaults runs the job through a proxy that does to it, in one run,
// everything that may happen to a request.
func TestJobWithFaults(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		p := newProxy(t, url,
			&fault{op: "PutObject", glob: "0000*", nth: 5, do: loseAnswer}, // log records
			&fault{op: "PutObject", glob: "0000*", nth: 9, times: 3, do: refuse(http.StatusServiceUnavailable, "SlowDown")},
			&fault{op: "PutObject", glob: "*.bundle", nth: 3, do: loseAnswer},
			&fault{op: "CreateMultipartUpload", nth: 4, do: loseAnswer},
			&fault{op: "UploadPart", nth: 5, do: loseAnswer},
			&fault{op: "CompleteMultipartUpload", glob: "part-*", nth: 2, do: loseAnswer},
			&fault{op: "CompleteMultipartUpload", glob: "part-*", nth: 5, do: twice},
			&fault{op: "CompleteMultipartUpload", glob: "part-*", nth: 8, do: refuse(http.StatusConflict, "ConditionalRequestConflict")},
			&fault{op: "CompleteMultipartUpload", glob: "part-*", nth: 10, do: refuse(http.StatusNotFound, "NoSuchUpload")},
			&fault{op: "ListObjectsV2", nth: 12, do: refuse(http.StatusInternalServerError, "InternalError")},
			&fault{op: "DeleteObject", nth: 6, do: loseAnswer},
			&fault{op: "GetObject", nth: 20, do: loseAnswer},
		)
		mainjob.Plain(t, jobPlace(t, url, p.URL), 30_000, 12_000)
		if n := p.count("CopyObject"); n > 0 {
			t.Errorf("%d CopyObject: a copy in one request cannot be taken back", n)
		}
	})
}
