package source

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hivesink/hivesink/ledger"
)

// TestBatchEndsBeforeABadRecordTooMany: the records before it are a batch of
// their own, whose position is right before it, and the records are the same
// as without a budget.
func TestBatchEndsBeforeABadRecordTooMany(t *testing.T) {
	long := strings.Repeat("z", 300)
	for name, data := range map[string]string{
		"syntax":       "{\"s\":\"a\"}\n{\"s\":\"b\"}\nbad 1\nbad 2\n{\"s\":\"c\"}\n{\"s\":\"d\"}\nbad 3\n{\"s\":\"e\"}\n",
		"first":        "bad 1\nbad 2\n{\"s\":\"a\"}\nbad 3\n",
		"unterminated": "bad 1\n{\"s\":\"a\"}\nbad 2\n{\"s\":\"b\"}\nbad 3",
		"too long":     "{\"s\":\"a\"}\n" + long + "\n{\"s\":\"b\"}\n" + long + "\n{\"s\":\"c\"}\n" + long[:150],
	} {
		read := func(budget *atomic.Int64) []step {
			dir := t.TempDir()
			write(t, dir+"/a", []byte(data))
			s := fileSource(t, Options{Schema: schemaOf(t, "s string"), MaxRecord: 100, BadBudget: budget}, dir, "a")
			steps, err := readAll(t, s, only(t, s, nil), ledger.Source{})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return steps
		}
		text := func(steps []step) []string { // without the directory
			var b bytes.Buffer
			for _, row := range rowsOf(steps) {
				at := strings.Index(row, " at ")
				if at < 0 {
					at = len(row)
				}
				fmt.Fprintln(&b, row[:at])
			}
			return strings.Split(b.String(), "\n")
		}
		plain := read(nil)
		if len(plain) != 1 {
			t.Fatalf("%s: %d batches without a budget", name, len(plain))
		}
		for allowed := range int64(4) {
			budget := new(atomic.Int64)
			budget.Store(allowed)
			steps := read(budget)
			equalLines(t, fmt.Sprintf("%s, %d allowed", name, allowed), text(steps), text(plain))
			bad := int64(0)
			for _, s := range steps {
				for i, row := range s.rows {
					if !strings.Contains(row, "bad ") {
						continue
					}
					if bad++; bad > allowed && i > 0 {
						t.Errorf("%s, %d allowed: bad record %d is number %d of its batch, want the first", name, allowed, bad, i)
					}
				}
			}
			if left := budget.Load(); left != allowed-bad {
				t.Errorf("%s: %d of %d left after %d bad records", name, left, allowed, bad)
			}
		}
	}
}
