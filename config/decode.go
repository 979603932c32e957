package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/layout"
)

// decoder walks a YAML tree along the structs of the config. It does it by
// itself, since the library stops at the first thing it cannot convert (G1).
type decoder struct {
	file       string
	flags      map[*yaml.Node]place // nodes that came from a --set flag
	problems   []Problem
	where      map[string]place // place of each option given
	bad        map[string]bool  // options with a problem: not to be judged again
	columnText []string
}

func newDecoder(file string) *decoder {
	return &decoder{file: file, flags: map[*yaml.Node]place{}, where: map[string]place{}, bad: map[string]bool{}}
}

func (d *decoder) at(n *yaml.Node) place {
	if p, ok := d.flags[n]; ok {
		return p
	}
	return place{file: d.file, line: n.Line, col: n.Column}
}

// problem notes that the option path has no usable value.
func (d *decoder) problem(n *yaml.Node, path, hint, format string, args ...any) {
	d.note(n, path, hint, format, args...)
	d.bad[path] = true
}

// note notes a problem that leaves the option path usable.
func (d *decoder) note(n *yaml.Node, path, hint, format string, args ...any) {
	d.problems = append(d.problems, d.at(n).problem(path, fmt.Sprintf(format, args...), hint))
}

// document reads YAML text into a tree; nil when it is empty or broken.
func (d *decoder) document(data []byte) *yaml.Node {
	var doc yaml.Node
	err := yaml.Load(data, &doc)
	if err == nil {
		return doc.Content[0]
	}
	if doc.Kind == 0 && isEmptyStream(err) {
		return nil
	}
	at, message := place{file: d.file, line: 1}, err.Error()
	var le *yaml.LoadError
	if errors.As(err, &le) {
		message = strings.TrimPrefix(le.Message, "yaml: ")
		if le.Mark.Line > 0 {
			at.line, at.col = le.Mark.Line, le.Mark.Column
		}
	}
	hint := ""
	switch {
	case strings.Contains(message, "unknown anchor"):
		// The library's text has what follows the asterisk, which may be a secret (G7).
		message, hint = "a value begins with *, which refers to something that is not there", "quote values that start with a special character"
	case strings.Contains(message, "tab character"):
		hint = "indent with spaces"
	case strings.Contains(message, "cannot start any token"):
		hint = "indent with spaces, not tabs; quote values that start with a special character"
	case strings.Contains(message, "mapping values are not allowed"):
		hint = "quote values that contain a colon and a space"
	case strings.Contains(message, "found multiple"):
		hint = "a config is one document; remove the line ---"
	}
	d.problems = append(d.problems, at.problem("", "not YAML: "+message, hint))
	return nil
}

// isEmptyStream knows the library's error for text without a document.
func isEmptyStream(err error) bool { return strings.Contains(err.Error(), "no documents in stream") }

// value decodes n into v, which already holds its default.
func (d *decoder) value(n *yaml.Node, v reflect.Value, path string) {
	n = target(n)
	if n == nil || n.Tag == "!!null" && n.Kind == yaml.ScalarNode {
		if n != nil && n.Value != "" && path == "source.csv.null" {
			// The one option for which these words are likely to be meant.
			d.problem(n, path, `write "`+n.Value+`" in quotes, or leave it out`, "%s without quotes is YAML's word for no value", n.Value)
		}
		return // a key without a value is a key left out
	}
	switch p := v.Addr().Interface().(type) {
	case *Bytes:
		scalar(d, n, p, path, "a size such as 128MB", ParseBytes)
		return
	case *Duration:
		scalar(d, n, p, path, "a duration such as 30s, 5m, 1h30m, 7d", ParseDuration)
		return
	case *Location:
		scalar(d, n, p, path, "file:///path, hdfs://host:port/path or s3://bucket/path", ParseLocation)
		return
	case *Secret:
		d.secret(n, p, path)
		return
	case *[]hivetype.Field:
		d.columns(n, p, path)
		return
	case *[]layout.Transform:
		d.transforms(n, p, path)
		return
	case *[]string:
		d.strings(n, p, path)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(n, v, path)
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		setDefaults(p.Elem())
		if m, ok := p.Interface().(interface{ markFilled() }); ok {
			m.markFilled()
		}
		d.structure(n, p.Elem(), path)
		v.Set(p)
	case reflect.Map:
		d.mapping(n, v, path)
	default:
		d.plain(n, v, path)
	}
}

// target follows aliases.
func target(n *yaml.Node) *yaml.Node {
	for i := 0; n != nil && n.Kind == yaml.AliasNode; i++ {
		if i > 10 {
			return nil
		}
		n = n.Alias
	}
	return n
}

// scalar decodes text with a parser of its own.
func scalar[T any](d *decoder, n *yaml.Node, p *T, path, hint string, parse func(string) (T, error)) {
	if n.Kind != yaml.ScalarNode {
		d.problem(n, path, hint, "wants one value, not %s", describe(n))
		return
	}
	got, err := parse(n.Value)
	if err != nil {
		d.problem(n, path, hint, "%s", err)
		return
	}
	*p = got
}

func (d *decoder) plain(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.ScalarNode {
		d.problem(n, path, "", "wants %s, not %s", typeWords(v.Type()), describe(n))
		return
	}
	ok := true
	switch v.Kind() {
	case reflect.String:
		v.SetString(n.Value) // a number is text as written
	case reflect.Bool:
		var b bool
		b, ok = parseBool(n)
		v.SetBool(b)
	case reflect.Int, reflect.Int64:
		var i int64
		i, ok = parseInt(n)
		v.SetInt(i)
	case reflect.Float64:
		f, err := strconv.ParseFloat(n.Value, 64)
		ok = err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) && (n.Tag == "!!int" || n.Tag == "!!float")
		v.SetFloat(f)
	default:
		panic("config: no decoder for " + v.Type().String())
	}
	if !ok {
		d.problem(n, path, "", "%q is not %s", n.Value, typeWords(v.Type()))
	}
}

func parseBool(n *yaml.Node) (value, ok bool) {
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
		return false, false
	}
	switch strings.ToLower(n.Value) {
	case "true", "yes", "on":
		return true, true
	case "false", "no", "off":
		return false, true
	}
	return false, false
}

// parseInt takes 1000000, 1_000_000, 0x10 and 1e6.
func parseInt(n *yaml.Node) (int64, bool) {
	switch n.Tag {
	case "!!int":
		i, err := strconv.ParseInt(n.Value, 0, 64)
		return i, err == nil
	case "!!float":
		f, err := strconv.ParseFloat(n.Value, 64)
		return int64(f), err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53
	}
	return 0, false
}

func (d *decoder) strings(n *yaml.Node, p *[]string, path string) {
	if n.Kind != yaml.SequenceNode {
		hint := "start each item with a hyphen"
		if n.Kind == yaml.ScalarNode {
			hint = "write [" + n.Value + "]"
		}
		d.problem(n, path, hint, "wants a list, not %s", describe(n))
		return
	}
	out := make([]string, 0, len(n.Content))
	for i, item := range n.Content {
		at := index(path, i)
		item = target(item)
		if item == nil || item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
			d.problem(n.Content[i], at, "", "wants text, not %s", describe(item))
			out = append(out, "") // keeps the place of those that follow
			continue
		}
		d.where[at] = d.at(n.Content[i])
		out = append(out, item.Value)
	}
	*p = out
}

func (d *decoder) structure(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind == yaml.ScalarNode && path != "" && hasSecret(v.Type()) { // may be the secret itself (G7)
		d.problem(n, path, "", "wants keys and values, not one value")
		return
	}
	fields := options(v.Type())
	d.pairs(n, path, func(key string, keyNode, value *yaml.Node) {
		for _, f := range fields {
			if f.name == key {
				d.value(value, v.Field(f.index), join(path, key))
				return
			}
		}
		d.unknown(keyNode, path, key, fields)
	})
}

// mapping decodes a map whose keys are the names of columns, in lower case.
func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string) {
	m := reflect.MakeMap(v.Type())
	d.pairs(n, path, func(key string, keyNode, value *yaml.Node) {
		given := key
		key = strings.ToLower(key)
		if m.MapIndex(reflect.ValueOf(key)).IsValid() {
			d.note(keyNode, join(path, given), "Hive does not tell upper from lower case", "is given twice")
			return
		}
		d.where[join(path, key)] = d.where[join(path, given)]
		item := reflect.New(v.Type().Elem()).Elem()
		setDefaults(item)
		d.value(value, item, join(path, key))
		m.SetMapIndex(reflect.ValueOf(key), item)
	})
	v.Set(m)
}

// pairs calls each for every key of a mapping, and reports what is no mapping,
// no key, or a key given twice.
func (d *decoder) pairs(n *yaml.Node, path string, each func(key string, keyNode, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.problem(n, path, "", "wants keys and values, not %s", describe(n))
		return
	}
	seen := map[string]place{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, value := n.Content[i], n.Content[i+1]
		if key := target(k); key == nil || key.Kind != yaml.ScalarNode {
			d.note(k, path, "", "wants a name before the colon, not %s", describe(key))
			continue
		} else if k.Tag == "!!merge" {
			d.note(k, path, "write the keys out", "merge keys (<<) are not supported")
			continue
		}
		key := target(k).Value
		at := join(path, key)
		if first, twice := seen[key]; twice {
			d.note(k, at, "remove one", "is given twice, first on line %d", first.line)
			continue
		}
		seen[key] = d.at(k)
		d.where[at] = d.at(k)
		if v := target(value); v != nil && (v.Kind == yaml.ScalarNode || v.Style&yaml.FlowStyle != 0) {
			d.where[at] = d.at(value)
		}
		each(key, k, value)
	}
}

func (d *decoder) unknown(n *yaml.Node, path, key string, fields []option) {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	hint := ""
	if len(names) == 0 {
		hint = path + " has no options: " + path + ": {}"
	} else if near := nearest(key, names); near != "" {
		hint = "did you mean " + join(path, near) + "?"
	} else if elsewhere := pathsOf(key); len(elsewhere) > 0 {
		hint = "did you mean " + strings.Join(elsewhere, " or ") + "?"
	} else {
		hint = "known here: " + strings.Join(names, ", ")
	}
	d.note(n, join(path, key), hint, "is not an option")
}

// describe says in words what a node is.
func describe(n *yaml.Node) string {
	switch {
	case n == nil:
		return "nothing"
	case n.Kind == yaml.MappingNode:
		return "keys and values"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "a reference (*" + n.Value + ")"
	case n.Tag == "!!null":
		return "nothing"
	}
	return strconv.Quote(n.Value)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
