package parquetfile

import (
	"fmt"
	"strings"

	"github.com/parquet-go/parquet-go/format"
)

// text prints an element with all in which it may differ from another one.
func (t *fileType) text(i int) string {
	e := &t.elements[i]
	text := elementText(e)
	if e.ConvertedType.Valid && e.LogicalType.Value == nil {
		text += fmt.Sprintf(" (converted type %d)", e.ConvertedType.V)
	}
	if e.FieldID != 0 {
		text += fmt.Sprintf(" = %d", e.FieldID)
	}
	if e.NumChildren.Valid {
		text += fmt.Sprintf(" of %d", e.NumChildren.V)
	}
	if t.passed[i] != "" {
		text += " with" + t.passed[i]
	}
	return text
}

// elementText prints a schema element as schemas are usually written.
func elementText(e *format.SchemaElement) string {
	text := "required"
	if e.RepetitionType.Valid {
		text = strings.ToLower(e.RepetitionType.V.String())
	}
	kind := "group"
	if e.Type.Valid {
		kind = e.Type.V.String()
		if e.TypeLength.Valid {
			kind += fmt.Sprintf("(%d)", e.TypeLength.V)
		}
	}
	text += " " + kind + " " + e.Name
	if e.LogicalType.Value != nil {
		text += " (" + e.LogicalType.String() + ")"
	}
	return text
}
