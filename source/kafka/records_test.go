package kafka

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// rec is a message of a test.
type rec struct {
	delta      int64
	key, value []byte // nil: null
}

func (r rec) encode() []byte {
	b := []byte{0}
	b = binary.AppendVarint(b, 5)
	b = binary.AppendVarint(b, r.delta)
	for _, f := range [][]byte{r.key, r.value} {
		if f == nil {
			b = binary.AppendVarint(b, -1)
			continue
		}
		b = append(binary.AppendVarint(b, int64(len(f))), f...)
	}
	b = binary.AppendVarint(b, 0)
	return append(binary.AppendVarint(nil, int64(len(b))), b...)
}

// encode makes a batch.
func encode(base int64, attributes int16, producer int64, lastDelta int32, recs ...rec) []byte {
	var body []byte
	for _, r := range recs {
		body = append(body, r.encode()...)
	}
	return frame(base, attributes, producer, lastDelta, len(recs), compress(attributes&attrCodec, body))
}

func frame(base int64, attributes int16, producer int64, lastDelta int32, count int, body []byte) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(base))
	b = binary.BigEndian.AppendUint32(b, uint32(headBytes-prefixBytes+len(body)))
	b = binary.BigEndian.AppendUint32(b, 3) // leader epoch
	b = append(b, 2, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(attributes))
	b = binary.BigEndian.AppendUint32(b, uint32(lastDelta))
	b = binary.BigEndian.AppendUint64(b, 1000)
	b = binary.BigEndian.AppendUint64(b, 2000)
	b = binary.BigEndian.AppendUint64(b, uint64(producer))
	b = append(b, 0, 0, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(count))
	b = append(b, body...)
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[crcFrom:], castagnoli))
	return b
}

func compress(codec int16, body []byte) []byte {
	var out bytes.Buffer
	switch codec {
	case codecGzip:
		w := gzip.NewWriter(&out)
		w.Write(body)
		w.Close()
	case codecSnappy:
		return snappy.Encode(nil, body)
	case codecLZ4:
		w := lz4.NewWriter(&out)
		w.Write(body)
		w.Close()
	case codecZstd:
		w, _ := zstd.NewWriter(&out)
		w.Write(body)
		w.Close()
	default:
		return body
	}
	return out.Bytes()
}

// javaSnappy is the framing that Java's library writes.
func javaSnappy(body []byte) []byte {
	out := append([]byte("\x82SNAPPY\x00"), 0, 0, 0, 1, 0, 0, 0, 1)
	for len(body) > 0 {
		n := min(len(body), 100)
		block := snappy.Encode(nil, body[:n])
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(block))), block...)
		body = body[n:]
	}
	return out
}

// read is what a batch has, as text.
func read(t *testing.T, s *records, b []byte) string {
	t.Helper()
	var h head
	size, err := parseHead(b, &h)
	if err != nil || size != len(b) {
		t.Fatalf("parseHead: %d, %v", size, err)
	}
	if err := s.begin(h); err != nil {
		return err.Error()
	}
	var out strings.Builder
	for {
		var m message
		more, err := s.next(&m)
		if err != nil {
			return out.String() + err.Error()
		}
		if !more {
			return out.String()
		}
		value := string(m.value)
		if len(value) > 20 {
			value = fmt.Sprintf("%d bytes of %c", len(value), value[0])
		}
		fmt.Fprintf(&out, "%d@%d %s=%s key null %v, null %v, long %v\n", m.offset, m.time, m.key, value, m.noKey, m.noValue, m.long)
	}
}

// Every codec says the same, also of messages larger than the window and of
// those that are too long.
func TestCodecs(t *testing.T) {
	recs := []rec{{0, []byte("a"), []byte("one")}, {2, nil, []byte{}}, {3, []byte{}, nil},
		{4, []byte("k"), bytes.Repeat([]byte("x"), 100_000)}, // larger than the first window
		{5, []byte("k"), bytes.Repeat([]byte("y"), 200_001)}, // too long, but in the window
		{6, []byte("k"), bytes.Repeat([]byte("z"), 900_000)}, // and far too long
		{9, nil, []byte("last")}}
	want := "100@1005 a=one key null false, null false, long false\n" +
		"102@1005 = key null true, null false, long false\n" +
		"103@1005 = key null false, null true, long false\n" +
		"104@1005 k=100000 bytes of x key null false, null false, long false\n" +
		"105@1005 k=4096 bytes of y key null false, null false, long true\n" +
		"106@1005 k=4096 bytes of z key null false, null false, long true\n" +
		"109@1005 =last key null true, null false, long false\n"
	s := &records{limit: 200_000}
	defer s.codec.close()
	for range 2 { // decompressors are used again
		for codec := int16(0); codec <= codecZstd; codec++ {
			if got := read(t, s, encode(100, codec, -1, 9, recs...)); got != want {
				t.Errorf("codec %d:\n%s", codec, got)
			}
		}
		var body []byte
		for _, r := range recs {
			body = append(body, r.encode()...)
		}
		if got := read(t, s, frame(100, codecSnappy, -1, 9, len(recs), javaSnappy(body))); got != want {
			t.Errorf("Java's snappy:\n%s", got)
		}
	}
	if got := read(t, s, encode(0, attrAppendTime, -1, 0, rec{0, nil, []byte("v")})); !strings.Contains(got, "0@2000 ") {
		t.Errorf("append time: %s", got)
	}
}

// Memory follows the longest record, not what a batch decompresses to (K4).
func TestWindowIsBounded(t *testing.T) {
	const n, size = 2000, 100_000 // 200 MB
	recs := make([]rec, n)
	value := bytes.Repeat([]byte("x"), size)
	for i := range recs {
		recs[i] = rec{int64(i), nil, value}
	}
	b := encode(0, codecZstd, -1, n-1, recs...)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := &records{limit: 200_000}
	defer s.codec.close()
	var h head
	if _, err := parseHead(b, &h); err != nil {
		t.Fatal(err)
	}
	if err := s.begin(h); err != nil {
		t.Fatal(err)
	}
	var m message
	count := 0
	for {
		more, err := s.next(&m)
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		count++
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 32<<20 || count != n {
		t.Errorf("%d messages took %d bytes", count, took)
	}
}

// Whatever the bytes are, the end is an error or the end.
func TestDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := &records{limit: 1000}
	defer s.codec.close()
	for codec := int16(0); codec <= codecZstd; codec++ {
		whole := encode(7, codec, -1, 3, rec{0, []byte("k"), []byte("v")}, rec{3, nil, bytes.Repeat([]byte("w"), 300)})
		for range 2000 {
			b := bytes.Clone(whole)
			for range 1 + r.IntN(3) {
				b[headBytes+r.IntN(len(b)-headBytes)] = byte(r.Uint32())
			}
			var h head
			if _, err := parseHead(b, &h); err != nil {
				t.Fatal(err)
			}
			if s.begin(h) != nil {
				continue
			}
			var m message
			for i := 0; ; i++ {
				more, err := s.next(&m)
				if err != nil || !more {
					break
				}
				if i > 10 {
					t.Fatal("it does not end")
				}
			}
			if _, _, _, err := scan(b, 7); err == nil && !bytes.Equal(b, whole) {
				t.Fatal("the checksum does not see the damage")
			}
		}
		for n := range len(whole) {
			w, next, _, err := scan(whole[:n], 7)
			if err != nil || w != 0 || next != 7 {
				t.Fatalf("%d bytes of a batch: %d, %d, %v", n, w, next, err)
			}
		}
	}
	old := encode(7, 0, -1, 0, rec{0, nil, nil})
	old[16] = 1
	if _, _, _, err := scan(old, 7); err == nil || !strings.Contains(err.Error(), "message format 1") {
		t.Errorf("an old format: %v", err)
	}
}

// scan finds the end of the log behind markers and what compaction removed.
func TestScan(t *testing.T) {
	b := append(encode(10, 0, -1, 4, rec{0, nil, []byte("a")}, rec{4, nil, []byte("b")}), encode(20, attrTransaction|attrControl, 1, 0, rec{0, []byte{0, 0, 0, 1}, []byte{}})...)
	whole, next, epoch, err := scan(append(b, 1, 2, 3), 12)
	if err != nil || whole != len(b) || next != 21 || epoch != 3 {
		t.Errorf("%d, %d, %d, %v", whole, next, epoch, err)
	}
}

// Aborted transactions are passed over, also when their messages lie among
// those of others, and one that a producer aborts after one it commits (K3).
func TestTransactionsAreToldApart(t *testing.T) {
	data := func(base, producer int64) []byte {
		return encode(base, attrTransaction, producer, 0, rec{0, nil, []byte("v")})
	}
	marker := func(base, producer int64, commit byte) []byte {
		return encode(base, attrTransaction|attrControl, producer, 0, rec{0, []byte{0, 0, 0, commit}, []byte{}})
	}
	log := [][]byte{data(0, 1), data(1, 2), marker(2, 1, 1), data(3, 1), encode(4, 0, -1, 0, rec{0, nil, []byte("plain")}),
		marker(5, 2, 0), data(6, 2), marker(7, 1, 0), marker(8, 2, 1), data(9, 1), marker(10, 1, 1)}
	tx := newTransactions([]kmsg.FetchResponseTopicPartitionAbortedTransaction{{ProducerID: 1, FirstOffset: 3}, {ProducerID: 2, FirstOffset: 1}})
	var seen []int64
	for _, b := range log {
		var h head
		if _, err := parseHead(b, &h); err != nil {
			t.Fatal(err)
		}
		if tx.visible(&h) {
			seen = append(seen, h.base)
		}
	}
	if fmt.Sprint(seen) != "[0 4 6 9]" {
		t.Errorf("seen %v", seen)
	}
}

// The path from a fetch to messages allocates nothing per message.
func TestMessagesAllocateNothing(t *testing.T) {
	recs := make([]rec, 1000)
	for i := range recs {
		recs[i] = rec{int64(i), []byte("key"), []byte(`{"id":1,"name":"x"}`)}
	}
	s := &records{limit: 1 << 20}
	defer s.codec.close()
	for codec := int16(0); codec <= codecZstd; codec++ {
		b := encode(0, codec, -1, 999, recs...)
		var m message
		per := testing.AllocsPerRun(20, func() {
			var h head
			if _, err := parseHead(b, &h); err != nil {
				t.Fatal(err)
			}
			if err := s.begin(h); err != nil {
				t.Fatal(err)
			}
			for {
				more, err := s.next(&m)
				if err != nil {
					t.Fatal(err)
				}
				if !more {
					return
				}
			}
		})
		if per > 20 {
			t.Errorf("codec %d: %.0f allocations for 1000 messages", codec, per)
		}
	}
}

// Of what was a producer's last batch compaction keeps the head, without a
// message; whatever it says of compression, there is nothing to decompress.
func TestBatchWithoutMessages(t *testing.T) {
	for codec := range int16(8) {
		p := &partition{split: &split{id: firstSplit, topic: "t"}}
		r := &reader{rest: frame(0, codec, -1, 9, 0, nil), cur: &fetched{p: p}}
		if more, err := r.nextBatch(p); more || err != nil {
			t.Errorf("codec %d: %v, %v", codec, more, err)
		}
	}
}
