package jsonrow

import (
	"fmt"
	"testing"
	"time"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/record"
)

// schema is that of columns written "name type" or "name type not null".
func schema(t testing.TB, columns ...string) *record.Schema {
	t.Helper()
	var fields []hivetype.Field
	for _, c := range columns {
		var name, text string
		if _, err := fmt.Sscan(c, &name); err != nil {
			t.Fatal(err)
		}
		text = c[len(name)+1:]
		notNull := false
		const suffix = " not null"
		if len(text) > len(suffix) && text[len(text)-len(suffix):] == suffix {
			notNull, text = true, text[:len(text)-len(suffix)]
		}
		typ, err := hivetype.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		fields = append(fields, hivetype.Field{Name: name, Type: typ, NotNull: notNull})
	}
	s, err := record.NewSchema(fields, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// clicks are lines of a click stream.
func clicks(n int) [][]byte {
	countries := []string{"AT", "CH", "DE", "FR", "IT"}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	lines := make([][]byte, n)
	for i := range lines {
		at := start.Add(time.Duration(i) * 37 * time.Millisecond)
		lines[i] = fmt.Appendf(nil, `{"id":%d,"ts":"%s","user_name":"user-%06d","country":"%s0%02d","amount":%d.%02d,"url":"/shop/category-%02d/item-%05d","ok":%t}`,
			i, at.Format("2006-01-02T15:04:05.000Z"), i*7919%1000000, countries[i%5], i%97, i*31%900, i%100, i%40, i%99991, i%3 != 0)
	}
	return lines
}

func clickSchema(t testing.TB) *record.Schema {
	return schema(t, "id bigint", "ts timestamp", "user_name string", "country string",
		"amount double", "url string", "ok boolean")
}

// BenchmarkClicks decodes batches of 8192 rows. One op is a row.
func BenchmarkClicks(b *testing.B) {
	d, err := New(clickSchema(b), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Release()
	lines := clicks(8192)
	size := 0
	for _, l := range lines {
		size += len(l) + 1
	}
	b.SetBytes(int64(size / len(lines)))
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		if err := d.Append(lines[i%len(lines)]); err != nil {
			b.Fatal(err)
		}
		if d.Len() == len(lines) {
			d.NewBatch().Release()
		}
	}
}
