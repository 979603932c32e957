package kafka

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// slackBytes is how much key, headers and the frame of a message may take beside
// a value of the longest length.
const slackBytes = 256 << 10

// rawBytes is how much is kept of a message that is too long.
const rawBytes = 4 << 10

// message is one record of a batch. Its bytes are good until the next one.
type message struct {
	offset  int64
	time    int64 // milliseconds
	key     []byte
	value   []byte
	noKey   bool // null
	noValue bool // null: a tombstone
	headers []byte
	count   int  // of headers
	long    bool // value is only a beginning
	size    int64
}

// records goes through the messages of a batch. What is compressed is never
// whole in memory: a window slides over it (K4).
type records struct {
	h     head
	left  int32
	buf   []byte
	r, w  int
	src   io.Reader // nil: all there is is in buf
	own   []byte    // the window's memory, kept from batch to batch
	codec codecs
	limit int64 // of a value
}

// begin goes to a batch.
func (s *records) begin(h head) error {
	s.h, s.left = h, h.count
	if h.attributes&attrCodec == 0 {
		s.buf, s.r, s.w, s.src = h.records, 0, len(h.records), nil
		return nil
	}
	src, err := s.codec.open(h.attributes&attrCodec, h.records)
	if err != nil {
		return s.damaged(err)
	}
	if s.own == nil {
		s.own = make([]byte, 64<<10)
	}
	s.src, s.buf, s.r, s.w = src, s.own, 0, 0
	return nil
}

func (s *records) damaged(err error) error {
	return fmt.Errorf("batch at offset %d: %w", s.h.base, err)
}

// next reads a message; false is the end of the batch.
func (s *records) next(m *message) (bool, error) {
	if s.left == 0 {
		return false, nil
	}
	s.left--
	if err := s.fill(10); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, s.damaged(err)
	}
	length, n := varint(s.buf[s.r:s.w])
	if n <= 0 || length < 0 {
		return false, s.damaged(errors.New("a message's length cannot be read"))
	}
	s.r += n
	m.long = length > s.limit+slackBytes
	want := int(length)
	if m.long {
		want = int(min(length, slackBytes))
	}
	if err := s.fill(want); err != nil {
		return false, s.damaged(err)
	}
	body := s.buf[s.r : s.r+want]
	if err := s.parse(body, m); err != nil {
		return false, s.damaged(err)
	}
	m.size = length
	if int64(len(m.value)) > s.limit {
		m.long = true
	}
	if m.long {
		m.value = m.value[:min(len(m.value), rawBytes)]
		m.value = bytes.Clone(m.value) // passing over the rest overwrites it
		m.key = bytes.Clone(m.key)
	}
	if want < int(length) {
		return true, s.pass(length)
	}
	s.r += want
	return true, nil
}

// pass goes over n bytes.
func (s *records) pass(n int64) error {
	for n > 0 {
		if s.r == s.w {
			if err := s.fill(1); err != nil {
				return s.damaged(err)
			}
		}
		k := int(min(n, int64(s.w-s.r)))
		s.r += k
		n -= int64(k)
	}
	return nil
}

// fill sees to it that n bytes are in the window.
func (s *records) fill(n int) error {
	if s.w-s.r >= n {
		return nil
	}
	if s.src == nil {
		return io.ErrUnexpectedEOF
	}
	if s.r > 0 {
		s.w = copy(s.buf, s.buf[s.r:s.w])
		s.r = 0
	}
	if n > len(s.buf) {
		grown := make([]byte, min(max(n, 2*len(s.buf)), int(s.limit)+slackBytes+64))
		copy(grown, s.buf[:s.w])
		s.buf, s.own = grown, grown
	}
	for s.w < n {
		k, err := s.src.Read(s.buf[s.w:])
		s.w += k
		if errors.Is(err, io.EOF) {
			if s.w >= n {
				return nil
			}
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var errFields = errors.New("a message's fields do not fit its length")

// parse reads the fields of a message. Of one that is too long the body is
// only a beginning.
func (s *records) parse(b []byte, m *message) error {
	whole := !m.long
	if len(b) == 0 {
		return errFields
	}
	b = b[1:] // attributes: none are defined
	dt, n := varint(b)
	if n <= 0 {
		return errFields
	}
	b = b[n:]
	do, n := varint(b)
	if n <= 0 {
		return errFields
	}
	b = b[n:]
	m.offset, m.time = s.h.base+do, s.h.baseTime+dt
	if s.h.attributes&attrAppendTime != 0 {
		m.time = s.h.maxTime
	}
	m.headers, m.count = nil, 0
	var ok bool
	if m.key, m.noKey, b, ok = field(b, whole); !ok {
		return errFields
	}
	if m.value, m.noValue, b, ok = field(b, whole); !ok {
		return errFields
	}
	if !whole {
		return nil
	}
	count, n := varint(b)
	if n <= 0 || count < 0 {
		return errFields
	}
	m.headers, m.count = b[n:], int(count)
	return nil
}

// field takes a length and as many bytes; -1 is null. When b is not whole,
// fewer bytes will do.
func field(b []byte, whole bool) (value []byte, null bool, rest []byte, ok bool) {
	n, k := varint(b)
	if k <= 0 {
		return nil, false, nil, !whole
	}
	b = b[k:]
	if n < 0 {
		return nil, true, b, n == -1
	}
	if n > int64(len(b)) {
		return b, false, nil, !whole
	}
	return b[:n:n], false, b[n:], true
}

// varint reads a zigzag number; n <= 0 says that it is not whole or too long.
// Nearly all of them have one or two bytes: small enough to be inlined.
func varint(b []byte) (v int64, n int) {
	if len(b) > 0 && b[0] < 0x80 {
		return int64(b[0]>>1) ^ -int64(b[0]&1), 1
	}
	return longVarint(b)
}

func longVarint(b []byte) (v int64, n int) {
	if len(b) > 1 && b[1] < 0x80 {
		u := uint64(b[0]&0x7f) | uint64(b[1])<<7
		return int64(u>>1) ^ -int64(u&1), 2
	}
	var u uint64
	for i, c := range b {
		if i == 10 {
			return 0, -1
		}
		u |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return int64(u>>1) ^ -int64(u&1), i + 1
		}
	}
	return 0, 0
}
