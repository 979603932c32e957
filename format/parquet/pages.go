package parquetfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// read appends the levels and values of n rows.
func (c *columnReader) read(l *leaf, n int) error {
	if c.column < 0 {
		l.defs = fill(l.defs, 0, n)
		if l.maxRep > 0 {
			l.reps = fill(l.reps, 0, n)
		}
		return nil
	}
	for n > 0 {
		if c.level == c.levels {
			if err := c.nextPage(); err == io.EOF {
				return fmt.Errorf("it ends %d rows early: %w", n, io.ErrUnexpectedEOF)
			} else if err != nil {
				return err
			}
		}
		levels, rows := c.span(n)
		if err := c.take(l, levels); err != nil {
			return err
		}
		n -= rows
	}
	// The values of a repeated row go on until the next row begins.
	for l.maxRep > 0 {
		if c.level == c.levels {
			if err := c.nextPage(); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
		}
		levels, _ := c.span(0)
		if levels == 0 {
			return nil
		}
		if err := c.take(l, levels); err != nil {
			return err
		}
	}
	return nil
}

// span is how many of the page's next levels belong to rows that began before
// or are among the next n, and how many of those begin among them.
func (c *columnReader) span(n int) (levels, rows int) {
	have := c.levels - c.level
	if c.from.maxRep == 0 {
		n = min(n, have)
		return n, n
	}
	for _, r := range c.reps[c.level:] {
		if r == 0 {
			if rows == n {
				break
			}
			rows++
		}
		levels++
	}
	return levels, rows
}

// nextPage reads the next page that has values; io.EOF after the last.
func (c *columnReader) nextPage() error {
	c.closePage()
	for {
		if c.pages == nil {
			groups := c.f.pq.RowGroups()
			if c.group == len(groups) {
				return io.EOF
			}
			c.pages = groups[c.group].ColumnChunks()[c.column].Pages()
			c.group++
			c.dict = nil
		}
		p, err := c.pages.ReadPage()
		if err == io.EOF {
			err = c.pages.Close()
			c.pages = nil
			if err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if p.NumValues() > 0 {
			return c.openPage(p)
		}
		parquet.Release(p)
	}
}

func (c *columnReader) openPage(p parquet.Page) error {
	c.page, c.level, c.value = p, 0, 0
	c.levels, c.defs, c.reps, c.data = int(p.NumValues()), p.DefinitionLevels(), p.RepetitionLevels(), p.Data()
	if c.from.maxDef > 0 && len(c.defs) != c.levels || c.from.maxRep > 0 && len(c.reps) != c.levels {
		return errors.New("a page is damaged: it lacks levels")
	}
	d := p.Dictionary()
	if d == nil {
		c.dict = nil
	} else if c.dict == nil {
		c.dict = &dictionaryPage{data: d.Page().Data()}
	}
	return nil
}

func (c *columnReader) closePage() {
	if c.page != nil {
		parquet.Release(c.page)
		c.page, c.levels, c.level = nil, 0, 0
	}
}

// take appends the page's next levels and the values that are there for them.
// All is copied: the page's memory is the library's.
func (c *columnReader) take(l *leaf, levels int) error {
	values := levels
	if c.from.maxDef > 0 {
		defs := c.defs[c.level : c.level+levels]
		values = bytes.Count(defs, []byte{c.from.maxDef})
		l.defs = append(l.defs, defs...)
	} else { // required in the file: everything is there
		l.defs = fill(l.defs, l.maxDef, levels)
	}
	if l.maxRep > 0 {
		l.reps = append(l.reps, c.reps[c.level:c.level+levels]...)
	}
	if err := c.takeValues(l, values); err != nil {
		return err
	}
	c.level += levels
	c.value += values
	return nil
}

var errFewValues = errors.New("a page is damaged: it has fewer values than its levels say")

func (c *columnReader) takeValues(l *leaf, n int) error {
	if n == 0 {
		return nil
	}
	data, ids := &c.data, []int32(nil)
	if c.dict != nil {
		all := c.data.Int32()
		if len(all) < c.value+n {
			return errFewValues
		}
		data, ids = &c.dict.data, all[c.value:c.value+n]
	}
	var ok bool
	switch l.phys {
	case physBool:
		return c.takeFlags(l, data.Boolean(), ids, n)
	case physInt32:
		l.i32, ok = takeNumbers(l.i32, data.Int32(), ids, c.value, n)
	case physInt64:
		if c.widen {
			l.i64, ok = takeWidened(l.i64, data.Int32(), ids, c.value, n)
		} else {
			l.i64, ok = takeNumbers(l.i64, data.Int64(), ids, c.value, n)
		}
	case physFloat:
		l.f32, ok = takeNumbers(l.f32, data.Float(), ids, c.value, n)
	case physDouble:
		l.f64, ok = takeNumbers(l.f64, data.Double(), ids, c.value, n)
	case physFixed:
		raw, _ := data.Data()
		ok = l.takeFixed(raw, ids, c.value, n)
	case physBytes:
		raw, offsets := data.ByteArray()
		ok = l.takeText(raw, offsets, ids, c.value, n)
	}
	if !ok {
		return errFewValues
	}
	return nil
}

// takeNumbers appends n numbers of src from value k on; or, with a dictionary,
// those that ids name.
func takeNumbers[T any](dst, src []T, ids []int32, k, n int) ([]T, bool) {
	if ids == nil {
		if len(src) < k+n {
			return dst, false
		}
		return append(dst, src[k:k+n]...), true
	}
	for _, id := range ids {
		if uint(id) >= uint(len(src)) {
			return dst, false
		}
		dst = append(dst, src[id])
	}
	return dst, true
}

func takeWidened(dst []int64, src []int32, ids []int32, k, n int) ([]int64, bool) {
	if ids == nil {
		if len(src) < k+n {
			return dst, false
		}
		for _, v := range src[k : k+n] {
			dst = append(dst, int64(v))
		}
		return dst, true
	}
	for _, id := range ids {
		if uint(id) >= uint(len(src)) {
			return dst, false
		}
		dst = append(dst, int64(src[id]))
	}
	return dst, true
}

func (c *columnReader) takeFlags(l *leaf, bits []byte, ids []int32, n int) error {
	for i := range n {
		k := c.value + i
		if ids != nil {
			k = int(ids[i])
		}
		if k < 0 || k/8 >= len(bits) {
			return errFewValues
		}
		l.i32 = append(l.i32, int32(bits[k/8]>>(k%8)&1))
	}
	return nil
}

func (l *leaf) takeFixed(raw []byte, ids []int32, k, n int) bool {
	if ids == nil {
		if len(raw) < (k+n)*l.width {
			return false
		}
		l.bytes = append(l.bytes, raw[k*l.width:(k+n)*l.width]...)
		return true
	}
	for _, id := range ids {
		if id < 0 || (int(id)+1)*l.width > len(raw) {
			return false
		}
		l.bytes = append(l.bytes, raw[int(id)*l.width:(int(id)+1)*l.width]...)
	}
	return true
}

func (l *leaf) takeText(raw []byte, offsets []uint32, ids []int32, k, n int) bool {
	at := len(l.ends)
	l.ends = growTo(l.ends, at+n)
	ends := l.ends[at:]
	if ids == nil {
		if len(offsets) < k+n+1 {
			return false
		}
		shift := uint32(len(l.bytes)) - offsets[k] // wraps around, and back below
		for i, end := range offsets[k+1 : k+n+1] {
			ends[i] = end + shift
		}
		l.bytes = append(l.bytes, raw[offsets[k]:offsets[k+n]]...)
		return true
	}
	for i, id := range ids {
		if id < 0 || int(id)+1 >= len(offsets) {
			return false
		}
		l.bytes = append(l.bytes, raw[offsets[id]:offsets[id+1]]...)
		ends[i] = uint32(len(l.bytes))
	}
	return true
}

// fill appends n times v.
func fill(dst []uint8, v uint8, n int) []uint8 {
	at := len(dst)
	dst = growTo(dst, at+n)
	for i := range dst[at:] {
		dst[at+i] = v
	}
	return dst
}
