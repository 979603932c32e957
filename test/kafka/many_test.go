//go:build integration

package kafkatest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Thousands of partitions, of which few have messages, are read side by side
// with little memory, and none is left out or read twice.
func TestManyPartitions(t *testing.T) {
	const partitions, n = 1500, 20_000
	w := newWorld(t, partitions, map[string]*string{"segment.bytes": ptr("1048576")})
	w.source = []string{"  readers: 2"}
	w.extra = []string{"limits: {memory: 64MB}"}
	w.produce(numbered(0, n, partitions)...)
	p := w.start()
	all := func(want int64) {
		t.Helper()
		eventually(t, "all rows", func() error {
			got, err := w.allCommitted()
			if err == nil && got != want {
				err = fmt.Errorf("%d of %d", got, want)
			}
			return err
		})
	}
	all(n)
	p.Kill(w.t)
	w.produce(numbered(n, 50, 7)...) // few are written to
	p = w.start()
	all(n + 50)
	big := &kgo.Record{Partition: partitions - 1, Value: fmt.Appendf(nil, `{"id":%d,"name":%q}`, n+50, strings.Repeat("x", 900<<10))}
	w.produce(big)
	all(n + 51)
	p.stop()
	w.wantIDs(0, n+50)
	w.fsck()
}
