package hive

import (
	"fmt"
	"slices"
	"strings"

	hms "github.com/beltran/gohive/hive_metastore"

	"github.com/hivesink/hivesink/hivetype"
)

// reconcile makes the columns a table should have of those it has and those
// that are written. Columns that only the metastore has are kept: readers see
// nulls. changes say what differs; a change that readers could not follow is an
// error.
func reconcile(have []*hms.FieldSchema, want []hivetype.Field) (next []*hms.FieldSchema, changes []string, err error) {
	next = slices.Clone(have)
	for _, w := range want {
		i := slices.IndexFunc(next, func(f *hms.FieldSchema) bool { return strings.EqualFold(f.Name, w.Name) })
		if i < 0 {
			next = append(next, field(w))
			changes = append(changes, fmt.Sprintf("add column %s %s", w.Name, w.Type))
			continue
		}
		h, err := hivetype.Parse(next[i].Type)
		if err != nil {
			return nil, nil, fmt.Errorf("column %s: the metastore has type %s, table.columns %s", w.Name, next[i].Type, w.Type)
		}
		wide, ok := widened(h, w.Type)
		if !ok {
			return nil, nil, fmt.Errorf("column %s: the metastore has type %s, table.columns %s: what is there could not be read as that, or the other way round", w.Name, h, w.Type)
		}
		if wide.String() != h.String() {
			f := *next[i]
			f.Type = wide.String()
			next[i] = &f
			changes = append(changes, fmt.Sprintf("change column %s from %s to %s", w.Name, h, wide))
		}
	}
	return next, changes, nil
}

func field(f hivetype.Field) *hms.FieldSchema {
	return &hms.FieldSchema{Name: f.Name, Type: f.Type.String()}
}

func fields(fs []hivetype.Field) []*hms.FieldSchema {
	out := make([]*hms.FieldSchema, len(fs))
	for i, f := range fs {
		out[i] = field(f)
	}
	return out
}

// widened is the type that reads both what was written as h and what is written
// as w; ok is false when h would have to become narrower, or other.
func widened(h, w *hivetype.Type) (wide *hivetype.Type, ok bool) {
	if h.String() == w.String() {
		return h, true
	}
	switch {
	case h.Kind == hivetype.Array && w.Kind == hivetype.Array:
		elem, ok := widened(h.Elem, w.Elem)
		return &hivetype.Type{Kind: hivetype.Array, Elem: elem}, ok
	case h.Kind == hivetype.Map && w.Kind == hivetype.Map:
		elem, ok := widened(h.Elem, w.Elem)
		return &hivetype.Type{Kind: hivetype.Map, Key: h.Key, Elem: elem}, ok && h.Key.String() == w.Key.String()
	case h.Kind == hivetype.Struct && w.Kind == hivetype.Struct:
		return widenedStruct(h, w)
	}
	return w, widens(h, w)
}

// widens says whether type w holds every value of the primitive type h.
func widens(h, w *hivetype.Type) bool {
	switch h.Kind {
	case hivetype.TinyInt, hivetype.SmallInt, hivetype.Int:
		return w.Kind > h.Kind && w.Kind <= hivetype.BigInt
	case hivetype.Float:
		return w.Kind == hivetype.Double
	case hivetype.Decimal:
		return w.Kind == hivetype.Decimal && w.Scale == h.Scale && w.Precision > h.Precision
	case hivetype.Varchar, hivetype.Char:
		return w.Kind == hivetype.String || w.Kind == h.Kind && w.Length > h.Length
	}
	return false
}

func widenedStruct(h, w *hivetype.Type) (*hivetype.Type, bool) {
	out := &hivetype.Type{Kind: hivetype.Struct, Fields: slices.Clone(h.Fields)}
	for _, f := range w.Fields {
		i := slices.IndexFunc(out.Fields, func(g hivetype.Field) bool { return g.Name == f.Name })
		if i < 0 {
			out.Fields = append(out.Fields, f)
			continue
		}
		t, ok := widened(out.Fields[i].Type, f.Type)
		if !ok {
			return nil, false
		}
		out.Fields[i].Type = t
	}
	return out, true
}

// sameColumns compares names and types.
func sameColumns(a, b []*hms.FieldSchema) bool {
	return slices.EqualFunc(a, b, func(x, y *hms.FieldSchema) bool {
		return strings.EqualFold(x.Name, y.Name) && strings.EqualFold(x.Type, y.Type)
	})
}
