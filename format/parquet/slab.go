package parquetfile

import "slices"

// slab is memory for many small slices that live as long as one another.
type slab[T any] struct {
	free []T
	last int // how many there were in the piece of memory before
}

// slabMax is how many are made at once.
const slabMax = 1 << 10

// take returns a slice of n zero values. Appended to beyond n it is moved.
func (s *slab[T]) take(n int) []T {
	if len(s.free) < n {
		s.last = max(n, min(2*s.last, slabMax))
		s.free = make([]T, s.last)
	}
	out := s.free[:n:n]
	s.free = s.free[n:]
	return out
}

// room makes room for n more, or for as many again: append lets what is large
// grow by a quarter, and so copies it four times.
func room[T any](s []T, n int) []T {
	if cap(s)-len(s) < n {
		s = slices.Grow(s, max(n, len(s)))
	}
	return s
}
