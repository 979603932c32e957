package avrorow

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestReportedLogicalTypes: RI-03. Logical types are what the column says, and so
// is one that stands beside the type instead of in it: a long like any other,
// never half a timestamp.
func TestReportedLogicalTypes(t *testing.T) {
	schema, err := os.ReadFile("testdata/RI-03.avsc")
	if err != nil {
		t.Fatal(err)
	}
	var row []byte
	for _, n := range []int64{1, 19737, 1 /* of the union */, 1705321800123, 1705321800123456, 1 /* byte */} {
		row = binary.AppendVarint(row, n)
	}
	row = append(row, 0xfb) // -5
	row = binary.AppendVarint(row, 1)
	for _, c := range []struct {
		sib, timestamps, want string
	}{
		{"bigint", "", "1705321800123456"},
		{"timestamp", "", "!"}, // nobody says what the number is
		{"timestamp", "us", `"2024-01-15T12:30:00.123456Z"`},
	} {
		d := newDecoder(t, Options{Timestamps: c.timestamps}, "id int", "d date", "ts timestamp", "sib "+c.sib, "amt decimal(9,2)", "e string")
		s, err := d.Compile(string(schema))
		if err != nil {
			t.Fatal(err)
		}
		err = d.Append(s, row)
		if c.want == "!" {
			if err == nil || !strings.Contains(err.Error(), "column sib") {
				t.Errorf("sib %s, timestamps %q: %v", c.sib, c.timestamps, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("sib %s, timestamps %q: %v", c.sib, c.timestamps, err)
			continue
		}
		b := d.NewBatch()
		want := []string{"1", `"2024-01-15"`, `"2024-01-15T12:30:00.123Z"`, c.want, `"-0.05"`, `"BLUE"`}
		for i, w := range want {
			text, err := json.Marshal(b.Column(i))
			if err != nil || string(text) != "["+w+"]" {
				t.Errorf("sib %s, timestamps %q: column %s: %s, want %s, %v", c.sib, c.timestamps, b.ColumnName(i), text, w, err)
			}
		}
		b.Release()
	}
}
