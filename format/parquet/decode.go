package parquetfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/parquet-go/parquet-go/encoding"
)

// columnReader reads one leaf through all row groups of a file.
type columnReader struct {
	source
	f         *File
	group     int   // the next row group
	groupRows int64 // unread rows of the row group at hand
	first     int   // levels the leaf had before the read at hand
	pages     pageReader
	opened    bool // pages is in a row group

	// Of the page. defs and reps are nil where the file has no such levels.
	defs, reps []byte
	at, levels int // unread levels
	value      int // next value
	values     pageValues
}

// pageValues are the values of a page: themselves, or places in a dictionary.
type pageValues struct {
	n       int
	plain   encoding.Values // of the page or of the dictionary
	known   int             // values of the dictionary
	indexes []int32         // nil: plain
}

var errMoreRows = errors.New("its pages are damaged: they have more rows than their row group")

// read appends the levels and values of n rows.
func (c *columnReader) read(l *leaf, n int) error {
	if c.column == nil {
		if c.like < 0 {
			l.absentRows(n)
		}
		return nil
	}
	for n > 0 {
		if c.groupRows == 0 {
			if err := c.nextGroup(); err != nil {
				return err
			}
			continue // a row group of another writer may be empty
		}
		if c.at == c.levels {
			if err := c.nextPage(); err == io.EOF {
				return fmt.Errorf("its pages are damaged: %d rows of row group %d are missing", c.groupRows, c.group-1)
			} else if err != nil {
				return err
			}
			continue
		}
		to, rows := c.span(int(min(int64(n), c.groupRows)))
		if rows == 0 {
			return errMoreRows
		}
		if err := c.take(l, to); err != nil {
			return err
		}
		n -= rows
		c.groupRows -= int64(rows)
	}
	return c.finishRow(l)
}

// finishRow reads the rest of a repeated row: it may go on on the next page.
func (c *columnReader) finishRow(l *leaf) error {
	for l.maxRep > 0 {
		if c.at == c.levels {
			if err := c.nextPage(); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
			continue
		}
		to := c.at
		for to < c.levels && c.reps[to] != 0 {
			to++
		}
		if to == c.at {
			return nil
		}
		if err := c.take(l, to); err != nil {
			return err
		}
	}
	return nil
}

// span is where the levels of at most n rows end, and how many rows begin
// before.
func (c *columnReader) span(n int) (to, rows int) {
	if c.reps == nil {
		rows = min(n, c.levels-c.at)
		return c.at + rows, rows
	}
	if c.reps[c.at] != 0 {
		return c.at, 0
	}
	for to = c.at; to < c.levels; to++ {
		if c.reps[to] == 0 {
			if rows == n {
				break
			}
			rows++
		}
	}
	return to, rows
}

// nextGroup goes to the next row group.
func (c *columnReader) nextGroup() error {
	if err := c.exhausted(); err != nil {
		return err
	}
	groups := c.f.groups()
	if c.group == len(groups) {
		return errors.New("its row groups end early")
	}
	g := &groups[c.group]
	c.pages.open(c.f, c.column, &g.columns[c.column.Index()])
	c.opened = true
	c.groupRows = g.rows
	c.group++
	return nil
}

// exhausted checks that nothing is left of a row group whose rows are read.
func (c *columnReader) exhausted() error {
	for c.opened {
		if c.at < c.levels {
			return errMoreRows
		}
		if err := c.nextPage(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// nextPage decodes the next page of the row group; io.EOF after the last.
func (c *columnReader) nextPage() error {
	c.defs, c.reps, c.at, c.levels, c.value, c.values = nil, nil, 0, 0, 0, pageValues{}
	return c.pages.next(c)
}

// check looks whether all places in the dictionary are there.
func (v *pageValues) check() error {
	for _, i := range v.indexes {
		if uint(i) >= uint(v.known) {
			return fmt.Errorf("its pages are damaged: value %d of a dictionary of %d", i, v.known)
		}
	}
	return nil
}

// count is how many values there are, in whole bytes for flags.
func count(phys physical, width int, v *encoding.Values) int {
	data, offsets := v.Data()
	switch phys {
	case physBool:
		return 8 * len(data)
	case physBytes:
		return max(len(offsets)-1, 0)
	case physInt32, physFloat:
		width = 4
	case physInt64, physDouble:
		width = 8
	}
	return len(data) / max(width, 1)
}

// take appends the levels up to to, and the values that are there for them.
func (c *columnReader) take(l *leaf, to int) error {
	from := c.value
	there, err := c.takeLevels(l, to)
	if err != nil {
		return err
	}
	return c.append(l, from, there)
}

// takeLevels appends the levels up to to, and says how many values are there
// for them.
func (c *columnReader) takeLevels(l *leaf, to int) (there int, err error) {
	n := to - c.at
	there = n
	if c.defs != nil {
		there = bytes.Count(c.defs[c.at:to], []byte{uint8(len(c.ours) - 1)})
	}
	at := len(l.defs)
	l.defs = growTo(l.defs, at+n)
	defs := l.defs[at:]
	if there == n {
		fill(defs, c.ours[len(c.ours)-1])
	} else {
		for i, d := range c.defs[c.at:to] {
			defs[i] = c.ours[d] // a level that cannot be panics: Read recovers (F7)
		}
		if bytes.IndexByte(defs, badLevel) >= 0 {
			return 0, errors.New("the file has null where the table cannot have it")
		}
	}
	if l.maxRep > 0 {
		for _, r := range c.reps[c.at:to] {
			if r > l.maxRep {
				return 0, fmt.Errorf("its pages are damaged: repetition level %d of %d", r, l.maxRep)
			}
		}
		l.reps = append(l.reps, c.reps[c.at:to]...)
	}
	if c.value+there > c.values.n {
		return 0, fmt.Errorf("its pages are damaged: %d values for %d", c.values.n, c.value+there)
	}
	c.at, c.value = to, c.value+there
	return there, nil
}

func fill(dst []uint8, v uint8) {
	for i := range dst {
		dst[i] = v
	}
}

// append appends n values from value k of the page on, as the leaf has them.
func (c *columnReader) append(l *leaf, k, n int) error {
	if n == 0 {
		return nil
	}
	v := &c.values
	switch c.phys {
	case physBool:
		bits := v.plain.Boolean()
		at := len(l.i32)
		l.i32 = growTo(l.i32, at+n)
		for i := range n {
			b := v.place(k + i)
			l.i32[at+i] = int32(bits[b>>3] >> (b & 7) & 1)
		}
	case physInt32:
		return c.appendInt32(l, k, n)
	case physInt64:
		if l.phys == physInt64 {
			l.i64 = pick(l.i64, v.plain.Int64(), v.indexes, k, n)
			break
		}
		for i := k; i < k+n; i++ {
			if x := v.plain.Int64()[v.place(i)]; l.isTime() {
				l.timestamp(x)
			} else if err := l.fixed(x); err != nil {
				return err
			}
		}
	case physFloat:
		if l.phys == physDouble {
			for i := k; i < k+n; i++ {
				l.f64 = append(l.f64, float64(v.plain.Float()[v.place(i)]))
			}
		} else {
			l.f32 = pick(l.f32, v.plain.Float(), v.indexes, k, n)
		}
	case physDouble:
		l.f64 = pick(l.f64, v.plain.Double(), v.indexes, k, n)
	case physBytes:
		return c.appendBytes(l, k, n)
	case physFixed:
		data, _ := v.plain.Data()
		for i := k; i < k+n; i++ {
			p := v.place(i) * c.width
			x := data[p : p+c.width]
			var err error
			switch {
			case l.phys == physFixed && l.width >= c.width:
				l.extend(x)
			case l.isTime():
				err = l.int96(x)
			default:
				err = l.shortened(x)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// appendInt32 appends 32-bit numbers, widened where the leaf is wider (F3).
func (c *columnReader) appendInt32(l *leaf, k, n int) error {
	v := &c.values
	src := v.plain.Int32()
	switch l.phys {
	case physInt64:
		at := len(l.i64)
		l.i64 = growTo(l.i64, at+n)
		for i := range n {
			l.i64[at+i] = int64(src[v.place(k+i)])
		}
	case physFixed:
		for i := k; i < k+n; i++ {
			if err := l.fixed(int64(src[v.place(i)])); err != nil {
				return err
			}
		}
	default:
		l.i32 = pick(l.i32, src, v.indexes, k, n)
	}
	return nil
}

// appendBytes copies a run of plain values at once, and dictionary values one
// by one.
func (c *columnReader) appendBytes(l *leaf, k, n int) error {
	v := &c.values
	data, offsets := v.plain.ByteArray()
	total := len(l.bytes)
	if v.indexes == nil {
		total += int(offsets[k+n] - offsets[k])
	} else {
		for _, i := range v.indexes[k : k+n] {
			total += int(offsets[i+1] - offsets[i])
		}
	}
	if total > math.MaxUint32 || total-len(l.bytes) > mostDecoded {
		return fmt.Errorf("its rows take %d bytes at once; the most is %d", total, mostDecoded)
	}
	at, first := len(l.bytes), len(l.ends)
	l.bytes, l.ends = growTo(l.bytes, total), growTo(l.ends, first+n)
	ends := l.ends[first:]
	if v.indexes == nil {
		copy(l.bytes[at:], data[offsets[k]:offsets[k+n]])
		shift := uint32(at) - offsets[k] // modulo 2^32
		for i, end := range offsets[k+1 : k+n+1] {
			ends[i] = end + shift
		}
		return nil
	}
	for i, p := range v.indexes[k : k+n] {
		at += copy(l.bytes[at:], data[offsets[p]:offsets[p+1]])
		ends[i] = uint32(at)
	}
	return nil
}

// place is where value i of the page is.
func (v *pageValues) place(i int) int {
	if v.indexes != nil {
		return int(v.indexes[i])
	}
	return i
}

// pick appends n values from value k on.
func pick[T any](dst, src []T, indexes []int32, k, n int) []T {
	if indexes == nil {
		return append(dst, src[k:k+n]...)
	}
	return gather(dst, src, indexes[k:k+n])
}

// fixed appends a decimal to a leaf that has it in other bytes.
func (l *leaf) fixed(v int64) error {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(v))
	if l.phys != physFixed || l.width < len(b) {
		return l.shortened(b[:])
	}
	l.extend(b[:])
	return nil
}

// extend appends a big-endian two's complement number with the leaf's width,
// which is not smaller than the number's.
func (l *leaf) extend(v []byte) {
	sign := byte(int8(v[0]) >> 7)
	for range l.width - len(v) {
		l.bytes = append(l.bytes, sign)
	}
	l.bytes = append(l.bytes, v...)
}

// absentRows appends rows in which nothing is there.
func (l *leaf) absentRows(n int) {
	at := len(l.defs)
	l.defs = growTo(l.defs, at+n)
	fill(l.defs[at:], 0)
	if l.maxRep > 0 {
		at = len(l.reps)
		l.reps = growTo(l.reps, at+n)
		fill(l.reps[at:], 0)
	}
}
