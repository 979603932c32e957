package s3fs

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hivesink/hivesink/storage"
)

// vast is a store with an object of size bytes under every key. It has no memory
// of its own. sent is how many bytes it has given.
type vast struct {
	size int64
	etag atomic.Value // string
	sent atomic.Int64
}

// fill writes what lies at an offset of an object.
func fill(p []byte, key string, off int64) {
	salt := int64(len(key)) + int64(key[len(key)-1])
	for i := range p {
		at := off + int64(i)
		p[i] = byte(at ^ at>>8 ^ at>>16 + salt)
	}
}

func (v *vast) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		well(w, r)
		return
	}
	etag, _ := v.etag.Load().(string)
	if m := r.Header.Get("If-Match"); m != "" && m != etag {
		say(412, "PreconditionFailed")(w, r)
		return
	}
	var from, last int64
	if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=-%d", &last); err == nil {
		from, last = max(0, v.size-last), v.size-1
	} else if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &last); err != nil {
		say(400, "NoRange")(w, r)
		return
	}
	if last = min(last, v.size-1); from > last {
		say(416, "InvalidRange")(w, r)
		return
	}
	p := make([]byte, last+1-from)
	fill(p, strings.TrimPrefix(r.URL.Path, "/bkt/"), from)
	if etag != "" {
		w.Header().Set("ETag", etag)
	}
	w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
	w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, last, v.size))
	w.Header().Set("Content-Length", fmt.Sprint(len(p)))
	w.WriteHeader(http.StatusPartialContent)
	v.sent.Add(int64(len(p))) // first: who has the bytes may look at once
	_, _ = w.Write(p)
}

// open is a file system on such a store, with its count of requests.
func (v *vast) open(t *testing.T) (*FS, *atomic.Int64) {
	v.etag.Store(`"first"`)
	return answers(t, v.ServeHTTP)
}

// look reads what a Parquet file is opened by: its first bytes and its last.
func look(t *testing.T, r storage.Reader) {
	t.Helper()
	p := make([]byte, 16<<10)
	if _, err := r.ReadAt(p[:4], 0); err != nil {
		t.Fatal(err)
	}
	p = p[:min(int64(len(p)), r.Size())]
	if _, err := r.ReadAt(p, r.Size()-int64(len(p))); err != nil {
		t.Fatal(err)
	}
}

// scan reads a file as pages are read, and compares it.
func scan(t *testing.T, r storage.Reader, key string, from int64) {
	t.Helper()
	got, want := make([]byte, 64<<10), make([]byte, 64<<10)
	for off := int64(0); off < r.Size(); off += int64(len(got)) {
		n, err := r.ReadAt(got, off)
		if err != nil && (!errors.Is(err, io.EOF) || off+int64(n) != r.Size()) {
			t.Fatal(err)
		}
		fill(want[:n], key, from+off)
		if string(got[:n]) != string(want[:n]) {
			t.Fatalf("%s: other bytes at %d", key, from+off)
		}
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestManySlices merges slices of many bundles, as a unit does that has all its
// inputs open: what is kept has a bound, and neither requests nor bytes explode
// (X7).
func TestManySlices(t *testing.T) {
	const bundles, length = 2000, 100 << 10
	v := &vast{size: 4 << 20}
	f, n := v.open(t)
	before := heap()
	readers := make([]storage.Reader, bundles)
	key := func(i int) string { return fmt.Sprintf("staging/%d", i) }
	at := func(i int) int64 { return int64(i) * 1777 }
	for i := range readers {
		r, err := storage.OpenSlice(f, "/"+key(i), at(i), length)
		if err != nil {
			t.Fatal(err)
		}
		look(t, r)
		readers[i] = r
	}
	opened := n.Load()
	grown := heap() - before
	for i, r := range readers {
		scan(t, r, key(i), at(i))
	}
	if more := heap() - before; more > grown {
		grown = more
	}
	t.Logf("%d slices of %d KB: %d MB kept, %d requests to open and %d to read, %d MB", bundles, length>>10, grown>>20, opened, n.Load()-opened, v.sent.Load()>>20)
	if limit := int64(readCache + 16<<20); grown > limit {
		t.Errorf("%d bytes are kept, more than %d", grown, limit)
	}
	if opened > bundles || n.Load() > 2*bundles {
		t.Errorf("%d requests to open %d slices, %d in all", opened, bundles, n.Load())
	}
	if limit := int64(2 * bundles * (length + 2*grainBytes)); v.sent.Load() > limit {
		t.Errorf("%d bytes were fetched, more than %d", v.sent.Load(), limit)
	}
	for _, r := range readers {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestNeighbours: slices of one bundle that are read one after the other share
// requests, also when there are many bundles and one slice of each is read in
// turn, as units do.
func TestNeighbours(t *testing.T) {
	for _, c := range []struct {
		bundles, slices int
		length          int64
		most            int64 // requests
	}{
		{1, 40, 100 << 10, 6},
		{1, 1000, 2 << 10, 4},
		{10, 100, 40 << 10, 60},
		{500, 4, 20 << 10, 1000},
	} {
		v := &vast{size: 4 << 20}
		f, n := v.open(t)
		for s := range c.slices {
			for b := range c.bundles {
				key := fmt.Sprintf("staging/%d", b)
				r, err := f.OpenSlice("/"+key, int64(s)*c.length, c.length)
				if err != nil {
					t.Fatal(err)
				}
				look(t, r)
				scan(t, r, key, int64(s)*c.length)
				_ = r.Close()
			}
		}
		t.Logf("%d slices of each of %d bundles: %d requests, %d KB", c.slices, c.bundles, n.Load(), v.sent.Load()>>10)
		if n.Load() > c.most {
			t.Errorf("%d slices of each of %d bundles: %d requests, more than %d", c.slices, c.bundles, n.Load(), c.most)
		}
	}
}

// TestLargeOnes: no byte of a large slice or object is fetched twice, but by
// rounding, and a large block costs one request.
func TestLargeOnes(t *testing.T) {
	v := &vast{size: 3<<20 + 777}
	f, n := v.open(t)
	for _, c := range []struct {
		from, size int64 // a slice; size 0: all
		most       int64 // requests
	}{
		{0, 0, 6}, {5000, 700 << 10, 3}, {100_001, 2 << 20, 5},
	} {
		n.Store(0)
		v.sent.Store(0)
		name := fmt.Sprintf("/x/%d", c.from)
		r, err := f.Open(name)
		if c.size > 0 {
			n.Store(0)
			v.sent.Store(0)
			r, err = f.OpenSlice(name, c.from, c.size)
		}
		if err != nil {
			t.Fatal(err)
		}
		look(t, r)
		scan(t, r, name[1:], c.from)
		if n.Load() > c.most || v.sent.Load() > r.Size()+3*grainBytes {
			t.Errorf("%d bytes from %d on: %d requests for %d bytes", r.Size(), c.from, n.Load(), v.sent.Load())
		}
		_ = r.Close()
	}
}

// TestSliceErrors: what is not all there is not opened, and what was replaced is
// not mixed up.
func TestSliceErrors(t *testing.T) {
	v := &vast{size: 1 << 20}
	f, n := v.open(t)
	for _, c := range [][2]int64{{1 << 20, 10}, {1<<20 - 5, 10}, {1 << 30, 10}, {0, 1<<20 + 1}, {-1, 10}, {0, 0}} {
		if r, err := f.OpenSlice("/x", c[0], c[1]); err == nil {
			t.Errorf("%d bytes from %d on are opened, as %d", c[1], c[0], r.Size())
		}
	}
	r, err := f.OpenSlice("/y", 0, 300<<10)
	if err != nil {
		t.Fatal(err)
	}
	v.etag.Store(`"second"`)
	if _, err := r.ReadAt(make([]byte, 10), 100<<10); !errors.Is(err, errReplaced) {
		t.Errorf("read of an object that was replaced: %v", err)
	}
	if err := f.Remove("/y"); err != nil {
		t.Fatal(err)
	}
	before := n.Load()
	r, err = f.OpenSlice("/y", 0, 300<<10)
	if err != nil || n.Load() == before {
		t.Fatalf("open after it was removed: %d requests, %v", n.Load()-before, err)
	}
	scan(t, r, "y", 0)
	if err := errors.Join(r.Close(), f.Remove("/x"), f.Remove("/y")); err != nil {
		t.Error(err)
	}
	if len(f.cache.shared) > 0 || f.cache.used != 0 || f.cache.recent.Len() != 0 {
		t.Errorf("%d objects, %d bytes, %d extents are kept of what is removed", len(f.cache.shared), f.cache.used, f.cache.recent.Len())
	}
}

// TestNoETag: what was put into the directory behind a gateway has none, and can
// be read all the same.
func TestNoETag(t *testing.T) {
	v := &vast{size: 2 << 20}
	f, _ := v.open(t)
	v.etag.Store("")
	r, err := f.Open("/x")
	if err != nil {
		t.Fatal(err)
	}
	scan(t, r, "x", 0)
	_ = r.Close()
	for range 2 {
		if r, err = f.OpenSlice("/x", 777, 300<<10); err != nil {
			t.Fatal(err)
		}
		look(t, r)
		scan(t, r, "x", 777)
		_ = r.Close()
	}
	f, n := answers(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		w.Header().Set("Content-Length", "4")
		_, _ = w.Write([]byte("text"))
	})
	data, err := f.ReadFile("/x")
	info, serr := f.Stat("/x")
	if string(data) != "text" || info.Size != 4 || err != nil || serr != nil || n.Load() != 2 {
		t.Errorf("read %q, %v; size %d, %v; %d requests", data, err, info.Size, serr, n.Load())
	}
}

// TestCrowd reads at random, by many at once, with next to no room.
func TestCrowd(t *testing.T) {
	v := &vast{size: 1<<20 + 4321}
	f, _ := v.open(t)
	f.cache.budget = 700 << 10
	var crowd sync.WaitGroup
	for seed := range uint64(8) {
		crowd.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 1))
			for range 20 {
				key := fmt.Sprintf("x/%d", rng.IntN(3))
				from, size := rng.Int64N(v.size), int64(0)
				r, err := f.Open("/" + key)
				if size = 1 + rng.Int64N(v.size-from); rng.IntN(4) > 0 {
					_ = r.Close()
					r, err = f.OpenSlice("/"+key, from, size)
				} else {
					from, size = 0, v.size
				}
				if err != nil {
					t.Error(err)
					return
				}
				for range 10 {
					off := rng.Int64N(size)
					got := make([]byte, 1+rng.IntN(100<<10))
					n, err := r.ReadAt(got, off)
					want := make([]byte, min(int64(len(got)), size-off))
					fill(want, key, from+off)
					if string(got[:n]) != string(want) || err != nil && !errors.Is(err, io.EOF) {
						t.Errorf("%d bytes at %d of %d from %d on: %d, %v", len(got), off, size, from, n, err)
					}
				}
				_ = r.Close()
			}
		})
	}
	crowd.Wait()
	sum := int64(0)
	for e := f.cache.recent.Front(); e != nil; e = e.Next() {
		sum += int64(len(e.Value.(*extent).data))
	}
	if sum != f.cache.used || sum > f.cache.budget || sum == 0 {
		t.Errorf("%d bytes are kept, %d are counted, %d allowed", sum, f.cache.used, f.cache.budget)
	}
}
