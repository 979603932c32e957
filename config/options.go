package config

import (
	"reflect"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/layout"
)

// option is one field of a struct that a config file may name.
type option struct {
	index int
	field reflect.StructField
	name  string
}

// options lists the options of a struct, in the order they are declared.
func options(t reflect.Type) []option {
	var out []option
	for i := range t.NumField() {
		f := t.Field(i)
		if name := f.Tag.Get("yaml"); f.IsExported() && name != "-" {
			out = append(out, option{index: i, field: f, name: name})
		}
	}
	return out
}

// section is the struct below an option, if it has options of its own.
func section(t reflect.Type) (reflect.Type, bool) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t, t.Kind() == reflect.Struct && !isLeaf(t)
}

// isLeaf knows the structs that are one value.
func isLeaf(t reflect.Type) bool {
	return t == reflect.TypeFor[Location]() || t == reflect.TypeFor[Secret]()
}

// hasSecret says whether t is a secret or has one in it.
func hasSecret(t reflect.Type) bool {
	if t == reflect.TypeFor[Secret]() {
		return true
	}
	inner, isSection := section(t)
	if !isSection {
		return false
	}
	found := false
	walk(inner, "", func(_ string, _ reflect.Type, o option) {
		found = found || o.field.Type == reflect.TypeFor[Secret]()
	})
	return found
}

// walk calls visit for every option below t, sections before what is in them.
func walk(t reflect.Type, path string, visit func(path string, owner reflect.Type, o option)) {
	for _, o := range options(t) {
		at := join(path, o.name)
		visit(at, t, o)
		if inner, ok := section(o.field.Type); ok {
			walk(inner, at, visit)
		} else if o.field.Type.Kind() == reflect.Map {
			walk(o.field.Type.Elem(), at+".NAME", visit)
		}
	}
}

// pathsOf finds the options called name, wherever they are.
func pathsOf(name string) []string {
	var out []string
	walk(reflect.TypeFor[Config](), "", func(path string, _ reflect.Type, o option) {
		if fold(o.name) == fold(name) && !strings.Contains(path, "NAME") {
			out = append(out, path)
		}
	})
	return out
}

// setDefaults sets every option of the struct v that has a default, also in
// the sections that are part of it.
func setDefaults(v reflect.Value) { fillDefaults(v, func(reflect.Value) bool { return true }) }

// fillZero sets those options only that are zero.
func fillZero(v reflect.Value) { fillDefaults(v, reflect.Value.IsZero) }

func fillDefaults(v reflect.Value, which func(reflect.Value) bool) {
	for _, o := range options(v.Type()) {
		f := v.Field(o.index)
		if text, ok := o.field.Tag.Lookup("default"); ok && which(f) {
			decodeDefault(text, f, o.name)
		}
		if f.Kind() == reflect.Struct && !isLeaf(f.Type()) {
			fillDefaults(f, which)
		}
	}
}

func decodeDefault(text string, v reflect.Value, name string) {
	d := newDecoder("default")
	var doc yaml.Node
	if err := yaml.Load([]byte(text), &doc); err != nil {
		panic("config: default of " + name + ": " + err.Error())
	}
	d.value(doc.Content[0], v, name)
	if len(d.problems) > 0 {
		panic("config: default of " + name + ": " + d.problems[0].String())
	}
}

// typeWords says in words what values of a type look like.
func typeWords(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[Bytes]():
		return "size"
	case reflect.TypeFor[Duration]():
		return "duration"
	case reflect.TypeFor[Location]():
		return "location"
	case reflect.TypeFor[Secret]():
		return "secret"
	case reflect.TypeFor[[]hivetype.Field]():
		return "list of columns"
	case reflect.TypeFor[[]layout.Transform]():
		return "list of partition columns"
	case reflect.TypeFor[[]string]():
		return "list of text"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "text"
	}
	return "section"
}
