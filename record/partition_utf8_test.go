package record

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// P3: text that is not UTF-8, as a program may hand it over, has no directory:
// the table log would write another name down and halt at the checkpoint.
func TestPartitionTextIsUTF8(t *testing.T) {
	s := testSchema(t, "k string", "id bigint")
	rec := testBatch(t, s, []string{"ok", "1"}, []string{"caf\xe9", "2"}, []string{"ok\xff", "3"}, []string{"é", "4"})
	for spec, want := range map[string][]string{
		"k":                 {"k=ok", "!", "!", "k=é"},
		"p: truncate(2, k)": {"p=ok", "p=ca", "p=ok", "p=é"},
	} {
		p := newPartitioner(t, s, nil, spec)
		out := make([]int32, rec.NumRows())
		bad := p.Assign(rec, out)
		for _, e := range bad {
			if e.Class != ClassType || !strings.Contains(e.Reason, "UTF-8") || !utf8.ValidString(e.Reason) || out[e.Row] != -1 {
				t.Errorf("%s: %+v", spec, e)
			}
		}
		refused := 0
		for i, w := range want {
			if w == "!" {
				refused++
			} else if out[i] < 0 || p.Partition(out[i]).Path != w {
				t.Errorf("%s: row %d has number %d, want %s", spec, i, out[i], w)
			}
		}
		if len(bad) != refused {
			t.Errorf("%s: %d rows are refused, want %d", spec, len(bad), refused)
		}
	}
}
