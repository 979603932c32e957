package maintenance

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/hivesink/hivesink/compactor"
	"github.com/hivesink/hivesink/storage"
)

// OpenFiles is how many files a worker keeps open, however many inputs a target
// has, unless Options.OpenFiles says that it is fewer.
const OpenFiles = 64

// handles opens files when they are read and closes those that have waited
// longest, so that thousands of inputs need few descriptors.
type handles struct {
	ctx      context.Context
	fs       storage.FS
	throttle *compactor.Throttle
	read     *atomic.Int64
	most     int

	mu    sync.Mutex
	open  map[string]storage.Reader
	order []string // by age
}

func newHandles(ctx context.Context, o *Options) *handles {
	h := &handles{ctx: ctx, fs: o.FS, throttle: o.Throttle, read: &o.Stats.BytesRead, open: make(map[string]storage.Reader), most: OpenFiles}
	if o.OpenFiles > 0 {
		h.most = min(h.most, o.OpenFiles)
	}
	return h
}

// input is a file that is read through handles.
type input struct {
	h    *handles
	name string
}

func (in input) ReadAt(p []byte, off int64) (int, error) {
	h := in.h
	h.mu.Lock()
	defer h.mu.Unlock()
	r, ok := h.open[in.name]
	if !ok {
		if len(h.order) == h.most {
			_ = h.open[h.order[0]].Close() // it was read, no error can matter
			delete(h.open, h.order[0])
			h.order = append(h.order[:0], h.order[1:]...)
		}
		var err error
		if r, err = h.fs.Open(in.name); err != nil {
			return 0, err
		}
		r = h.throttle.Slow(h.ctx, r)
		h.open[in.name] = r
		h.order = append(h.order, in.name)
	}
	n, err := r.ReadAt(p, off)
	h.read.Add(int64(n))
	return n, err
}

func (h *handles) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.open {
		_ = r.Close() // read only
	}
	clear(h.open)
	h.order = nil
}
