package textval

import (
	"math/bits"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// recycler is an Arrow allocator that hands out again what was freed: batch
// after batch needs the same sizes, and new memory costs its zeroing and the
// garbage collector's work. Its sizes are powers of two, whose lists the
// garbage collector empties. Memory is not zeroed; builders zero their bitmaps.
type recycler struct {
	lists [maxRecycled + 1]sync.Pool // of *[]byte, by log2 of the capacity
	boxes sync.Pool                  // of *[]byte, empty
}

// Sizes that are kept, as log2.
const (
	minRecycled = 9
	maxRecycled = 24
)

// batchMemory is that of all decoders of the process: a file that follows
// another takes over its memory.
var batchMemory memory.Allocator = new(recycler)

// Allocate implements memory.Allocator.
func (r *recycler) Allocate(size int) []byte {
	class := bits.Len(uint(max(size, 1) - 1))
	if class < minRecycled || class > maxRecycled {
		return make([]byte, size)
	}
	if box, _ := r.lists[class].Get().(*[]byte); box != nil {
		b := *box
		*box = nil
		r.boxes.Put(box)
		return b[:size]
	}
	return make([]byte, size, 1<<class)
}

// Reallocate implements memory.Allocator.
func (r *recycler) Reallocate(size int, b []byte) []byte {
	if size <= cap(b) {
		return b[:size]
	}
	out := r.Allocate(size)
	copy(out, b)
	r.Free(b)
	return out
}

// Free implements memory.Allocator.
func (r *recycler) Free(b []byte) {
	class := bits.Len(uint(cap(b))) - 1
	if class < minRecycled || class > maxRecycled || cap(b) != 1<<class {
		return // not from here
	}
	scribble(b)
	box, _ := r.boxes.Get().(*[]byte)
	if box == nil {
		box = new([]byte)
	}
	*box = b[:0]
	r.lists[class].Put(box)
}
