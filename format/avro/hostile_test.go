package avrorow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/format"
	"github.com/hivesink/hivesink/record"
)

// A record that has itself as a field has no end: its schema is refused. Behind
// an array, a map or a union it is a tree.
func TestRecordsWithoutEnd(t *testing.T) {
	d := newDecoder(t, Options{}, "id bigint", "r struct<r:struct<x:int>>")
	const self = `{"type":"record","name":"S","fields":[{"name":"r","type":"S"}]}`
	for _, field := range []string{
		`{"name":"a","type":{"type":"array","items":` + self + `}}`,
		`{"name":"a","type":{"type":"map","values":` + self + `}}`,
		`{"name":"a","type":["null",` + self + `]}`,
		`{"name":"a","type":` + self + `}`,
		`{"name":"r","type":` + self + `}`,
		`{"name":"a","type":{"type":"array","items":{"type":"record","name":"P","fields":[{"name":"q","type":{"type":"record","name":"Q","fields":[{"name":"p","type":"P"}]}}]}}}`,
	} {
		_, err := d.Compile(recordOf(`{"name":"id","type":"long"}`, field))
		if err == nil || !strings.Contains(err.Error(), "has itself as a field") {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, field := range []string{
		`{"name":"a","type":{"type":"record","name":"T","fields":[{"name":"t","type":{"type":"array","items":"T"}}]}}`,
		`{"name":"a","type":{"type":"record","name":"T","fields":[{"name":"t","type":["null","T"]}]}}`,
		`{"name":"a","type":{"type":"record","name":"T","fields":[{"name":"t","type":{"type":"map","values":"T"}}]}}`,
	} {
		s, err := d.Compile(recordOf(`{"name":"id","type":"long"}`, field))
		if err != nil {
			t.Errorf("%s: %v", field, err)
			continue
		}
		if err := d.Append(s, []byte{2, 0}); err != nil {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// doubling is a schema of records each of which has the one before twice; the
// first has a field of a type.
func doubling(n int, first string) string {
	fields := []string{`{"name":"f0","type":{"type":"record","name":"R0","fields":[{"name":"x","type":` + first + `}]}}`}
	for i := 1; i <= n; i++ {
		fields = append(fields, fmt.Sprintf(`{"name":"f%d","type":{"type":"record","name":"R%d","fields":[{"name":"a","type":"R%d"},{"name":"b","type":"R%d"}]}}`, i, i, i-1, i-1))
	}
	return `{"type":"record","name":"Top","fields":[` + strings.Join(fields, ",") + `]}`
}

// What takes no bytes takes no time, however often it is there (V4).
func TestNothingTimesMuch(t *testing.T) {
	for _, column := range []string{"id bigint", "f60 string", "f60 array<int>", "f60 struct<z:int>"} {
		d := newDecoder(t, Options{}, column)
		s, err := d.Compile(doubling(60, `"null"`))
		if err != nil {
			t.Fatal(err)
		}
		err = d.Append(s, nil)
		if refused := strings.HasPrefix(column, "f60 string") || strings.HasPrefix(column, "f60 array"); (err != nil) != refused {
			t.Errorf("%s: %v", column, err)
		}
		// With a byte in each the record is too short, and that is found at once.
		if s, err = d.Compile(doubling(50, `"boolean"`)); err != nil {
			t.Fatal(err)
		}
		var e *format.Error
		if err := d.Append(s, make([]byte, 1000)); !errors.As(err, &e) || e.Class != record.ClassSyntax {
			t.Errorf("%s: %v", column, err)
		}
	}
	// Items that take no bytes, in an array that no column wants.
	d := newDecoder(t, Options{}, "id bigint")
	s, err := d.Compile(recordOf(`{"name":"a","type":{"type":"array","items":`+strings.Replace(doubling(60, `"null"`), `"Top"`, `"Z"`, 1)+`}}`, `{"name":"id","type":"long"}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Append(s, append(binary.AppendVarint(nil, 1<<62), 0, 2)); err != nil {
		t.Error(err)
	}
}

// A type that is there in many ways is compiled once for a column (V4).
func TestCompilingEnds(t *testing.T) {
	column := "int"
	for range 30 {
		column = "struct<a:" + column + ">"
	}
	d := newDecoder(t, Options{}, "a "+column)
	for name, field := range map[string]string{
		"cases":  `{"type":"record","name":"R%d","fields":[{"name":"a","type":"R%[2]d"},{"name":"A","type":"R%[2]d"}]}`,
		"unions": `{"type":"record","name":"R%d","fields":[{"name":"a","type":["R%[2]d","S%[2]d"]}]}`,
	} {
		var fields []string
		add := func(def string) {
			fields = append(fields, fmt.Sprintf(`{"name":"f%d","type":%s}`, len(fields), def))
		}
		add(`{"type":"record","name":"R0","fields":[{"name":"a","type":"int"}]}`)
		add(`{"type":"record","name":"S0","fields":[{"name":"a","type":"int"}]}`)
		for i := 1; i < 30; i++ {
			def := fmt.Sprintf(field, i, i-1)
			add(def)
			add(strings.Replace(def, fmt.Sprintf(`"R%d"`, i), fmt.Sprintf(`"S%d"`, i), 1))
		}
		fields = append(fields, `{"name":"a","type":"R29"}`)
		if _, err := d.Compile(recordOf(fields...)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// And a long chain is no deep stack.
	fields := []string{`{"name":"f0","type":{"type":"record","name":"C0","fields":[{"name":"x","type":"null"}]}}`}
	for i := 1; i < 10_000; i++ {
		fields = append(fields, fmt.Sprintf(`{"name":"f%d","type":{"type":"record","name":"C%d","fields":[{"name":"c","type":"C%d"}]}}`, i, i, i-1))
	}
	s, err := d.Compile(recordOf(fields...))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Append(s, nil); err != nil {
		t.Error(err)
	}
}

// Items that take no bytes are bounded for the record as a whole, and with what
// they take in memory (V4).
func TestItemsWithoutBytes(t *testing.T) {
	block := binary.AppendVarint(nil, 60_000)
	inner := append(block, 0)
	var nested []byte
	nested = binary.AppendVarint(nested, 50_000)
	for range 50_000 {
		nested = append(nested, inner...)
	}
	nested = append(nested, 0)
	for _, c := range []struct {
		name, column, items string
		rec                 []byte
		bad                 bool
	}{
		{"one", "array<int>", `"null"`, inner, false},
		{"two blocks", "array<int>", `"null"`, append(append([]byte{}, block...), inner...), true},
		{"nested", "array<array<int>>", `{"type":"array","items":"null"}`, nested, true},
		{"wide", "array<struct<a:int,b:int,c:int>>", `{"type":"record","name":"W","fields":[{"name":"a","type":"null"}]}`, inner, true},
		{"wide, few", "array<struct<a:int,b:int,c:int>>", `{"type":"record","name":"W","fields":[{"name":"a","type":"null"}]}`, []byte{20, 0}, false},
	} {
		d := newDecoder(t, Options{}, "x "+c.column)
		s, err := d.Compile(recordOf(`{"name":"x","type":{"type":"array","items":` + c.items + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // each record has its own bound
			if err := d.Append(s, c.rec); (err != nil) != c.bad || err != nil && !strings.Contains(err.Error(), "take no bytes") {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}

// FuzzDecode: whatever a schema and the bytes are, there is an end and no panic,
// and a row is whole or not there (V1, V4).
func FuzzDecode(f *testing.F) {
	d, _, good := wideDecoder(f)
	f.Add(wide, good)
	f.Add(doubling(5, `"null"`), []byte{})
	f.Add(doubling(3, `"boolean"`), make([]byte, 15))
	f.Add(recordOf(`{"name":"dec","type":{"type":"bytes","logicalType":"decimal","precision":50,"scale":45}}`), []byte{2, 0x80})
	f.Add(recordOf(`{"name":"dec","type":"long"}`, `{"name":"l","type":{"type":"array","items":["null","int"]}}`), []byte{2, 4, 0, 2, 6, 0})
	f.Add(recordOf(`{"name":"l","type":{"type":"array","items":"null"}}`), append(binary.AppendVarint(nil, 1<<40), 0))
	f.Add(recordOf(`{"name":"r","type":{"type":"record","name":"N","fields":[{"name":"a","type":["null","N"]}]}}`), []byte{2, 2, 2, 0})
	f.Add(recordOf(`{"name":"s","type":{"type":"enum","name":"E","symbols":["A"]}}`, `{"name":"u","type":{"type":"fixed","name":"U","size":16,"logicalType":"uuid"}}`), make([]byte, 17))
	f.Fuzz(func(t *testing.T, schema string, rec []byte) {
		s, err := d.Compile(schema)
		if err != nil {
			return
		}
		rows := d.Len()
		err = d.Append(s, rec)
		if err == nil {
			rows++
		}
		if d.Len() != rows {
			t.Fatalf("%d rows, want %d: %v", d.Len(), rows, err)
		}
		b := d.NewBatch()
		if rows == 0 {
			if b != nil {
				t.Fatal("a batch without rows")
			}
			return
		}
		defer b.Release()
		if b.NumRows() != int64(rows) {
			t.Fatalf("a batch of %d rows, want %d", b.NumRows(), rows)
		}
	})
}
