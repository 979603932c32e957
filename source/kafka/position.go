package kafka

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/hivesink/hivesink/internal/fault"
)

// position is where a partition goes on, and of what it is a partition. Its
// JSON text is in ledgers: fields may be added, never renamed.
type position struct {
	Offset  int64  `json:"o"`           // of the next message
	Epoch   int32  `json:"e"`           // leader epoch of the message before it; -1: not known
	Topic   string `json:"t,omitempty"` // id of the topic
	Cluster string `json:"c,omitempty"`
	// Shift is what a row number has more than its offset. It is 0 but where an
	// operator chose to go on at lower offsets than were read before.
	Shift int64 `json:"s,omitempty"`
	// Decided is how many partitions the topic had when source.kafka.start
	// decided where they start: one of them without a position had not come into
	// a checkpoint when the process ended, and was not added later (K6). 0: not
	// known, in positions of before.
	Decided int32 `json:"n,omitempty"`
}

func (p position) String() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic("kafka: position: " + err.Error()) // plain fields only
	}
	return string(text)
}

func parsePosition(split, text string) (position, error) {
	p := position{Epoch: -1}
	if err := json.Unmarshal([]byte(text), &p); err != nil || p.Offset < 0 {
		return p, fault.New(fault.Halt, "was the table written by another version or another kind of source?",
			"resume %s: the ledger's position %q is not one of Kafka's", split, text)
	}
	return p, nil
}

// splitPrefix begins the ID of every partition: kafka:clicks/3.
const splitPrefix = "kafka:"

func splitID(topic string, partition int32) string {
	return splitPrefix + topic + "/" + strconv.Itoa(int(partition))
}

// parseSplitID is the reverse of splitID.
func parseSplitID(id string) (topic string, partition int32, ok bool) {
	rest, ok := strings.CutPrefix(id, splitPrefix)
	i := strings.LastIndexByte(rest, '/')
	if !ok || i < 0 {
		return "", 0, false
	}
	n, err := strconv.ParseInt(rest[i+1:], 10, 32)
	return rest[:i], int32(n), err == nil
}
