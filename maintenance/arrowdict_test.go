package maintenance

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

func TestWidenIndexes(t *testing.T) {
	of := func(index arrow.DataType) string {
		d := &arrow.DictionaryType{IndexType: index, ValueType: arrow.BinaryTypes.String}
		text, err := encodeArrow(arrow.NewSchema([]arrow.Field{{Name: "c", Type: d, Nullable: true}, {Name: "l", Type: arrow.ListOf(arrow.StructOf(arrow.Field{Name: "d", Type: d}))}}, nil))
		check(t, err)
		return text
	}
	for _, narrow := range []arrow.DataType{arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Uint16} {
		meta := map[string]string{arrowSchemaKey: of(narrow)}
		widenIndexes(meta)
		got, err := decodeArrow(meta[arrowSchemaKey])
		check(t, err)
		want, err := decodeArrow(of(arrow.PrimitiveTypes.Int32))
		check(t, err)
		if !got.Equal(want) {
			t.Errorf("%s became %s", narrow, got)
		}
	}
}
