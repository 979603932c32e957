package parquetfile

import (
	"encoding/binary"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// TestDictionaryOfOneValue: places of no bits in a dictionary of one value are
// that value, in runs of either kind, whatever was read before.
func TestDictionaryOfOneValue(t *testing.T) {
	schema := parquet.NewSchema("t", parquet.Group{"x": parquet.Leaf(parquet.Int64Type)})
	s, err := fileSchema(kindFile(t, schema, 0, 10, 3, 1, "none"))
	if err != nil {
		t.Fatal(err)
	}
	const n = 2000
	runs := func(head uint64, more ...byte) []byte { return append(binary.AppendUvarint(nil, head), more...) }
	for name, page := range map[string][]byte{
		"a run":       append([]byte{0}, runs(n<<1)...),
		"packed":      append([]byte{0}, runs(n/8<<1|1)...),
		"a wider run": append([]byte{1}, runs(n<<1, 0)...),
		"packed bits": append([]byte{1}, runs(n/8<<1|1, make([]byte, n/8)...)...),
	} {
		var p pageReader
		p.column, p.known, p.left = kindFile(t, schema, 0, 10, 3, 1, "none").typ.leaves[0], -1, 4*n
		c := &columnReader{source: source{column: p.column, phys: physInt64, ours: sameLevels[:1], like: -1}}
		l := &leaf{leafType: s.leaves[0]}
		dict := func(values ...int64) {
			t.Helper()
			b := appendFixed(nil, values)
			if err := p.dictionary(&format.DictionaryPageHeader{NumValues: int32(len(values))}, len(b), b); err != nil {
				t.Fatal(err)
			}
		}
		data := func(b []byte) {
			t.Helper()
			c.at, c.levels, c.value, c.values = 0, 0, 0, pageValues{}
			h := thrift.New(format.DataPageHeader{NumValues: n, Encoding: format.RLEDictionary}).V
			if err := p.dataV1(c, &h, len(b), b); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := c.take(l, c.levels); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		dict(1, 2, 3)
		data(append([]byte{2}, runs(n<<1, 2)...))
		dict(7)
		data(page)
		for i, v := range l.i64[n:] {
			if v != 7 {
				t.Fatalf("%s: value %d is %d", name, i, v)
			}
		}
	}
}
