package s3fs

import (
	"container/list"
	"slices"
	"sync"
)

// readCache is what all readers of a file system keep together (X7).
const readCache = 64 << 20

// cache is the bytes that were read by ranges and may be read again. What was
// used longest ago goes first.
type cache struct {
	mu     sync.Mutex
	budget int64
	used   int64
	recent list.List          // of *extent, last used first
	shared map[string]*cached // by key, the objects that slices are read of
}

// cached is an object, as it was when it was asked for first, with what is kept
// of it. One that is read as a whole belongs to its reader; one that is read by
// slices is found by the next slice.
type cached struct {
	shared  bool
	key     string
	known   bool // etag and size are
	etag    string
	size    int64
	extents []*extent // in the order of their offsets, apart
}

// extent is bytes of an object. They are never written again.
type extent struct {
	of   *cached
	at   int64
	data []byte
	in   *list.Element
}

func (e *extent) end() int64 { return e.at + int64(len(e.data)) }

// object is the shared object of a key.
func (c *cache) object(key string) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.shared[key]; o != nil {
		return o
	}
	return &cached{shared: true, key: key}
}

// identity is the object's ETag and size; ok says whether they are known.
func (c *cache) identity(o *cached) (etag string, size int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return o.etag, o.size, o.known
}

// identify notes the object's ETag and size; false: it had others.
func (c *cache) identify(o *cached, etag string, size int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !o.known {
		o.known, o.etag, o.size = true, etag, size
	}
	return o.etag == etag && o.size == size
}

// read copies what is kept from an offset on, as far as it goes.
func (c *cache) read(o *cached, p []byte, off int64) int {
	c.mu.Lock()
	i := o.after(off) - 1
	if i < 0 || o.extents[i].end() <= off {
		c.mu.Unlock()
		return 0
	}
	e := o.extents[i]
	c.recent.MoveToFront(e.in)
	c.mu.Unlock()
	return copy(p, e.data[off-e.at:])
}

// after is the index of the first extent that begins behind an offset.
func (o *cached) after(off int64) int {
	i, _ := slices.BinarySearchFunc(o.extents, off, func(e *extent, off int64) int {
		if e.at <= off {
			return -1
		}
		return 1
	})
	return i
}

// gap narrows [from, to), which has off in it, to what is not kept around off.
// follows says that the bytes right before it are.
func (c *cache) gap(o *cached, off, from, to int64) (begin, end int64, follows bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := o.after(off)
	if i < len(o.extents) {
		to = min(to, o.extents[i].at)
	}
	if i > 0 {
		from = max(from, o.extents[i-1].end())
		follows = from == o.extents[i-1].end()
	}
	return from, to, follows
}

// share is how much of the budget there is for each shared object.
func (c *cache) share() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.budget / int64(max(1, len(c.shared)))
}

// keep takes bytes in. What another reader has brought meanwhile stays.
func (c *cache) keep(o *cached, at int64, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &extent{of: o, at: at, data: data}
	i := o.after(at)
	if len(data) == 0 || int64(len(data)) > c.budget || i > 0 && o.extents[i-1].end() > at || i < len(o.extents) && o.extents[i].at < e.end() {
		return
	}
	for c.used+int64(len(data)) > c.budget {
		c.evict(c.recent.Back().Value.(*extent))
	}
	o.extents = slices.Insert(o.extents, o.after(at), e)
	e.in = c.recent.PushFront(e)
	c.used += int64(len(data))
	if o.shared && c.shared[o.key] == nil {
		c.shared[o.key] = o
	}
}

func (c *cache) evict(e *extent) {
	o := e.of
	o.extents = slices.DeleteFunc(o.extents, func(other *extent) bool { return other == e })
	c.recent.Remove(e.in)
	c.used -= int64(len(e.data))
	if len(o.extents) == 0 && o.shared && c.shared[o.key] == o {
		delete(c.shared, o.key)
	}
}

// drop forgets an object: its reader is closed.
func (c *cache) drop(o *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(o.extents) > 0 {
		c.evict(o.extents[len(o.extents)-1])
	}
}

// dropKey forgets what slices are read of: it is removed.
func (c *cache) dropKey(key string) {
	c.mu.Lock()
	o := c.shared[key]
	c.mu.Unlock()
	if o != nil {
		c.drop(o)
	}
}
