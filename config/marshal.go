package config

import (
	"fmt"
	"reflect"
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/layout"
)

// Marshal prints the effective config as YAML, defaults included, in the order
// of the reference. Options that are empty and have no default are left out.
// Parse reads it back as the same config (G4).
func (c *Config) Marshal() ([]byte, error) {
	text, err := yaml.Dump(node(reflect.ValueOf(c).Elem()), yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err != nil {
		return nil, fmt.Errorf("print config: %w", err)
	}
	return text, nil
}

// node turns a struct into a YAML mapping.
func node(v reflect.Value) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, o := range options(v.Type()) {
		f := v.Field(o.index)
		_, hasDefault := o.field.Tag.Lookup("default")
		if n := valueNode(f, hasDefault); n != nil {
			m.Content = append(m.Content, text(o.name), n)
		}
	}
	if len(m.Content) == 0 {
		m.Style = yaml.FlowStyle // {}
	}
	return m
}

// valueNode is nil for what is left out.
func valueNode(v reflect.Value, hasDefault bool) *yaml.Node {
	switch x := v.Interface().(type) {
	case Bytes:
		if x == 0 {
			return plainNode("!!int", "0")
		}
		return text(x.String())
	case Duration:
		return text(x.String())
	case Location:
		if x.Path == "" {
			return nil
		}
		return text(x.String())
	case Secret:
		return secretNode(x)
	case []hivetype.Field:
		return list(len(x), hasDefault, func(i int) *yaml.Node { return text(columnSource(x[i])) })
	case []layout.Transform:
		return list(len(x), hasDefault, func(i int) *yaml.Node { return transformNode(x[i]) })
	case []string:
		return list(len(x), hasDefault, func(i int) *yaml.Node { return text(x[i]) })
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return node(v.Elem())
	case reflect.Struct:
		n := node(v)
		if len(n.Content) == 0 {
			return nil
		}
		return n
	case reflect.Map:
		m := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, key := range sortedKeys(v) {
			m.Content = append(m.Content, text(key), node(v.MapIndex(reflect.ValueOf(key))))
		}
		if len(m.Content) == 0 {
			return nil
		}
		return m
	case reflect.String:
		if v.String() == "" && !hasDefault {
			return nil
		}
		return text(v.String())
	case reflect.Bool:
		return plainNode("!!bool", strconv.FormatBool(v.Bool()))
	case reflect.Float64:
		return plainNode("!!float", strconv.FormatFloat(v.Float(), 'g', -1, 64))
	}
	return plainNode("!!int", strconv.FormatInt(v.Int(), 10))
}

func list(n int, hasDefault bool, item func(int) *yaml.Node) *yaml.Node {
	if n == 0 && !hasDefault {
		return nil
	}
	l := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for i := range n {
		l.Content = append(l.Content, item(i))
	}
	if n == 0 {
		l.Style = yaml.FlowStyle // []
	}
	return l
}

func transformNode(t layout.Transform) *yaml.Node {
	if t.Func == layout.Identity && t.Name == t.Column {
		return text(t.Name)
	}
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{text(t.Name), text(t.String())}}
}

// text is a string; the library quotes it where it must.
func text(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }

func plainNode(tag, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
}
