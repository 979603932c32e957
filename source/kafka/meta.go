package kafka

import (
	"bytes"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/format"
	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/record"
)

// metaColumns build the columns of source.kafka.metadata.
type metaColumns struct {
	topic     string // of the messages to come
	partition int32
	all       []array.Builder // in the order of the table's columns
	size      int64

	topics      *array.StringBuilder
	partitions  *array.Int32Builder
	partitions8 *array.Int64Builder
	offsets     *array.Int64Builder
	times       *array.TimestampBuilder
	keys        *text
	headers     *array.MapBuilder
	names       *text
	values      *text

	keyNotNull, timeNotNull string // name of the column
	timeColumn              string
	nullOnBadTime           bool
	last                    map[string]int // of many headers, where each name comes last
	pairs                   [][2][]byte
}

// text is a column of type string or binary.
type text struct {
	b    *array.BinaryBuilder
	utf8 bool
}

func newText(b array.Builder) *text {
	if s, ok := b.(*array.StringBuilder); ok {
		return &text{s.BinaryBuilder, true}
	}
	return &text{b.(*array.BinaryBuilder), false}
}

// append appends bytes; what a string column cannot hold is replaced, as it is
// in other formats.
func (t *text) append(b []byte) {
	if t.utf8 && !utf8.Valid(b) {
		b = bytes.ToValidUTF8(b, []byte("\uFFFD"))
	}
	t.b.Append(b)
}

func newMetaColumns(c *config.Metadata, fields []hivetype.Field, nullOnBadTime map[string]bool) *metaColumns {
	m := &metaColumns{}
	for _, f := range fields {
		b := array.NewBuilder(memory.DefaultAllocator, record.ArrowType(f.Type))
		m.all = append(m.all, b)
		switch f.Name {
		case c.Topic:
			m.topics = b.(*array.StringBuilder)
		case c.Partition:
			m.partitions, _ = b.(*array.Int32Builder)
			m.partitions8, _ = b.(*array.Int64Builder)
		case c.Offset:
			m.offsets = b.(*array.Int64Builder)
		case c.Timestamp:
			m.times = b.(*array.TimestampBuilder)
			m.timeColumn, m.nullOnBadTime = f.Name, nullOnBadTime[f.Name]
			if f.NotNull {
				m.timeNotNull = f.Name
			}
		case c.Key:
			m.keys = newText(b)
			if f.NotNull {
				m.keyNotNull = f.Name
			}
		case c.Headers:
			m.headers = b.(*array.MapBuilder)
			m.names, m.values = newText(m.headers.KeyBuilder()), newText(m.headers.ItemBuilder())
		}
	}
	return m
}

const (
	// maxMillis is the last time that a timestamp column holds.
	maxMillis = math.MaxInt64 / 1000
	// manyHeaders are more than can be compared each with each: a message of 1 MB
	// has room for 200,000.
	manyHeaders = 32
)

// check says what would keep a message out of the table.
func (c *metaColumns) check(m *message) error {
	if c.keyNotNull != "" && m.noKey {
		return &format.Error{Class: record.ClassNull, Column: c.keyNotNull, Reason: "the message has no key, but the column is not null"}
	}
	if c.timeNotNull != "" && m.time < 0 {
		return &format.Error{Class: record.ClassNull, Column: c.timeNotNull, Reason: "the message has no time, but the column is not null"}
	}
	if c.times != nil && m.time > maxMillis && !c.nullOnBadTime {
		return &format.Error{Class: record.ClassRange, Column: c.timeColumn, Reason: fmt.Sprintf("the message's time, %d ms since 1970, is out of range: is it in another unit?", m.time)}
	}
	c.pairs = c.pairs[:0]
	if c.headers == nil {
		return nil
	}
	rest := m.headers
	for range m.count {
		var h [2][]byte
		var null, ok bool
		if h[0], null, rest, ok = field(rest, true); !ok || null {
			return &format.Error{Class: record.ClassSyntax, Reason: "the headers of the message cannot be read"}
		}
		if h[1], null, rest, ok = field(rest, true); !ok {
			return &format.Error{Class: record.ClassSyntax, Reason: "the headers of the message cannot be read"}
		}
		if null {
			h[1] = nil
		} else if h[1] == nil {
			h[1] = []byte{}
		}
		c.pairs = append(c.pairs, h)
	}
	return nil
}

// append appends what check has looked at. It cannot go wrong.
func (c *metaColumns) append(m *message) {
	if c.topics != nil {
		c.topics.Append(c.topic)
		c.size += int64(len(c.topic)) + 4
	}
	if c.partitions != nil {
		c.partitions.Append(c.partition)
		c.size += 4
	}
	if c.partitions8 != nil {
		c.partitions8.Append(int64(c.partition))
		c.size += 8
	}
	if c.offsets != nil {
		c.offsets.Append(m.offset)
		c.size += 8
	}
	if c.times != nil {
		if m.time < 0 || m.time > maxMillis {
			c.times.AppendNull()
		} else {
			c.times.Append(arrow.Timestamp(m.time * 1000))
		}
		c.size += 8
	}
	if c.keys != nil {
		if m.noKey {
			c.keys.b.AppendNull()
		} else {
			c.keys.append(m.key)
		}
		c.size += int64(len(m.key)) + 4
	}
	if c.headers != nil {
		c.headers.Append(true)
		if len(c.pairs) > manyHeaders {
			c.last = make(map[string]int, len(c.pairs))
			for i, h := range c.pairs {
				c.last[string(h[0])] = i
			}
		}
		for i, h := range c.pairs {
			if c.again(i) {
				continue
			}
			c.names.append(h[0])
			if h[1] == nil {
				c.values.b.AppendNull()
			} else {
				c.values.append(h[1])
			}
		}
		c.size += int64(len(m.headers)) + 4
	}
}

// again says whether the name of header i comes again: the last one counts, for
// a map has a key once.
func (c *metaColumns) again(i int) bool {
	if len(c.pairs) > manyHeaders {
		return c.last[string(c.pairs[i][0])] != i
	}
	for _, h := range c.pairs[i+1:] {
		if bytes.Equal(h[0], c.pairs[i][0]) {
			return true
		}
	}
	return false
}

// take hands over the columns.
func (c *metaColumns) take() []arrow.Array {
	c.size = 0
	out := make([]arrow.Array, len(c.all))
	for i, b := range c.all {
		out[i] = b.NewArray()
	}
	return out
}

func (c *metaColumns) release() {
	for _, b := range c.all {
		b.Release()
	}
}
