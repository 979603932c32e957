package maintenance

import "github.com/apache/arrow-go/v18/arrow"

// widenIndexes gives dictionaries of an Arrow schema places of 32 bits: files that
// become one have more different values together, and Arrow does not read a column
// of more than 127 as one whose places have 8.
func widenIndexes(meta map[string]string) {
	text, ok := meta[arrowSchemaKey]
	if !ok {
		return
	}
	s, err := decodeArrow(text)
	if err != nil {
		return
	}
	fields, changed := widerFields(s.Fields())
	if !changed {
		return
	}
	m := s.Metadata()
	wide := arrow.NewSchema(fields, &m)
	if text, err := encodeArrow(wide); err == nil {
		if back, err := decodeArrow(text); err == nil && back.Equal(wide) {
			meta[arrowSchemaKey] = text
		}
	}
}

func widerFields(in []arrow.Field) (out []arrow.Field, changed bool) {
	out = append(out, in...)
	for i := range out {
		t, is := wider(out[i].Type)
		out[i].Type, changed = t, changed || is
	}
	return out, changed
}

func wider(t arrow.DataType) (arrow.DataType, bool) {
	switch t := t.(type) {
	case *arrow.DictionaryType:
		if t.IndexType.(arrow.FixedWidthDataType).BitWidth() >= 32 {
			return t, false
		}
		return &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: t.ValueType, Ordered: t.Ordered}, true
	case *arrow.StructType:
		if fields, is := widerFields(t.Fields()); is {
			return arrow.StructOf(fields...), true
		}
	case *arrow.ListType:
		if fields, is := widerFields([]arrow.Field{t.ElemField()}); is {
			return arrow.ListOfField(fields[0]), true
		}
	case *arrow.LargeListType:
		if fields, is := widerFields([]arrow.Field{t.ElemField()}); is {
			return arrow.LargeListOfField(fields[0]), true
		}
	}
	return t, false
}
