package kafka

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Layout of a record batch of format 2:
//
//	base offset 8 │ length 4 │ leader epoch 4 │ magic 1 │ crc 4 │ attributes 2 │
//	last offset delta 4 │ base time 8 │ max time 8 │ producer 8+2 │ sequence 4 │ count 4 │ records
//
// length counts from the leader epoch on, crc from the attributes on.
const (
	prefixBytes = 12
	headBytes   = 61
	crcFrom     = 21
)

const (
	attrCodec       = 0x07
	attrAppendTime  = 0x08 // every record has the batch's max time
	attrTransaction = 0x10
	attrControl     = 0x20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// head is the header of a record batch.
type head struct {
	base       int64
	epoch      int32
	attributes int16
	lastDelta  int32
	baseTime   int64 // milliseconds
	maxTime    int64
	producer   int64
	count      int32
	records    []byte // as they are stored, compressed or not
}

func (h *head) last() int64 { return h.base + int64(h.lastDelta) }

// parseHead reads the batch at the start of b; size 0 says that it is not
// whole: the end of a fetch may cut one.
func parseHead(b []byte, h *head) (size int, err error) {
	if len(b) < prefixBytes {
		return 0, nil
	}
	h.base = int64(binary.BigEndian.Uint64(b))
	length := int(int32(binary.BigEndian.Uint32(b[8:])))
	if length < 0 {
		return 0, fmt.Errorf("batch at offset %d: length %d", h.base, length)
	}
	size = prefixBytes + length
	if len(b) > prefixBytes+4 && b[prefixBytes+4] != 2 {
		return 0, fmt.Errorf("batch at offset %d has message format %d, only 2 (Kafka 0.11, 2017) is read", h.base, b[prefixBytes+4])
	}
	if len(b) < size {
		return 0, nil
	}
	if size < headBytes {
		return 0, fmt.Errorf("batch at offset %d: length %d", h.base, length)
	}
	h.epoch = int32(binary.BigEndian.Uint32(b[12:]))
	h.attributes = int16(binary.BigEndian.Uint16(b[21:]))
	h.lastDelta = int32(binary.BigEndian.Uint32(b[23:]))
	h.baseTime = int64(binary.BigEndian.Uint64(b[27:]))
	h.maxTime = int64(binary.BigEndian.Uint64(b[35:]))
	h.producer = int64(binary.BigEndian.Uint64(b[43:]))
	h.count = int32(binary.BigEndian.Uint32(b[57:]))
	h.records = b[headBytes:size]
	if h.lastDelta < 0 || h.count < 0 {
		return 0, fmt.Errorf("batch at offset %d: %d records, last offset delta %d", h.base, h.count, h.lastDelta)
	}
	return size, nil
}

// checkSum compares the batch's checksum with its bytes.
func checkSum(b []byte) error {
	if want, got := binary.BigEndian.Uint32(b[17:]), crc32.Checksum(b[crcFrom:], castagnoli); want != got {
		return fmt.Errorf("batch at offset %d: checksum %08x, its bytes have %08x", binary.BigEndian.Uint64(b), want, got)
	}
	return nil
}

// scan checks the whole batches at the start of b. It returns their length, the
// offset after them and the leader epoch of the last one (-1: there is none).
func scan(b []byte, from int64) (whole int, next int64, epoch int32, err error) {
	var h head
	next, epoch = from, -1
	for {
		size, err := parseHead(b[whole:], &h)
		if err != nil || size == 0 {
			return whole, next, epoch, err
		}
		if err := checkSum(b[whole : whole+size]); err != nil {
			return whole, next, epoch, err
		}
		whole += size
		if h.last()+1 > next {
			next, epoch = h.last()+1, h.epoch
		}
	}
}

// transactions tells the batches of aborted transactions from the others, going
// through a fetch in order.
type transactions struct {
	aborted []kmsg.FetchResponseTopicPartitionAbortedTransaction // not begun yet
	open    map[int64]bool                                       // producers in the middle of one
}

func newTransactions(aborted []kmsg.FetchResponseTopicPartitionAbortedTransaction) transactions {
	slices.SortFunc(aborted, func(a, b kmsg.FetchResponseTopicPartitionAbortedTransaction) int {
		if a.FirstOffset < b.FirstOffset {
			return -1
		}
		return 1
	})
	return transactions{aborted: aborted}
}

// visible says whether the records of the next batch are to be read.
func (t *transactions) visible(h *head) bool {
	for len(t.aborted) > 0 && t.aborted[0].FirstOffset <= h.last() {
		if t.open == nil {
			t.open = make(map[int64]bool)
		}
		t.open[t.aborted[0].ProducerID] = true
		t.aborted = t.aborted[1:]
	}
	if h.attributes&attrControl != 0 {
		// A commit ends a transaction that was not aborted; so any marker of an
		// aborting producer is the end of its abort.
		delete(t.open, h.producer)
		return false
	}
	return h.attributes&attrTransaction == 0 || !t.open[h.producer]
}
