package config

import (
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/layout"
)

// columns decodes table.columns. A column that cannot be parsed is kept under
// its name with an invalid type, so that what refers to it is not reported as
// well (G1).
func (d *decoder) columns(n *yaml.Node, p *[]hivetype.Field, path string) {
	if n.Kind != yaml.SequenceNode {
		d.problem(n, path, "- id bigint", "wants a list of columns, not %s", describe(n))
		return
	}
	out := make([]hivetype.Field, 0, len(n.Content))
	d.columnText = nil
	for i, raw := range n.Content {
		at, item := index(path, i), target(raw)
		d.where[at] = d.at(raw)
		text, ok := columnText(item)
		if !ok {
			hint := "a name and a Hive type, such as - id bigint"
			if item != nil && item.Kind == yaml.MappingNode {
				hint = `as text, such as - id bigint; with a colon and a space in it, in quotes: - "o struct<a: int>"`
			}
			d.problem(raw, at, hint, "wants a column, not %s", describe(item))
			text = ""
		}
		f := hivetype.Field{Name: guessName(text), Type: &hivetype.Type{}}
		if ok {
			got, err := hivetype.ParseColumn(text)
			if err != nil {
				hint := ""
				if n.Style&yaml.FlowStyle != 0 && (strings.Count(text, "(") != strings.Count(text, ")") ||
					strings.Count(text, "<") != strings.Count(text, ">")) {
					hint = "in a list in [brackets], quote a column that has a comma in it"
				}
				d.problem(raw, at, hint, "%s", err)
			} else {
				f = got
			}
		}
		out = append(out, f)
		d.columnText = append(d.columnText, text)
	}
	*p = out
}

func columnText(n *yaml.Node) (string, bool) {
	if n == nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return "", false
	}
	return n.Value, true
}

// guessName is the name a broken column was probably meant to have.
func guessName(text string) string {
	if words := strings.Fields(text); len(words) > 0 {
		return strings.ToLower(strings.Trim(words[0], "`"))
	}
	return ""
}

// transforms decodes table.partitioned_by: each item is the name of a column,
// or one key with a transform. An item that cannot be parsed is kept without a
// Func and judged no further (G1).
func (d *decoder) transforms(n *yaml.Node, p *[]layout.Transform, path string) {
	if n.Kind != yaml.SequenceNode {
		hint := "start each item with a hyphen: - dt: date(ts)"
		if n.Kind == yaml.ScalarNode && !strings.Contains(n.Value, "(") {
			hint = "write [" + n.Value + "]"
		}
		d.problem(n, path, hint, "wants a list, not %s", describe(n))
		return
	}
	out := make([]layout.Transform, 0, len(n.Content))
	for i, raw := range n.Content {
		at := index(path, i)
		d.where[at] = d.at(raw)
		out = append(out, d.transform(raw, at))
	}
	*p = out
}

func (d *decoder) transform(raw *yaml.Node, path string) layout.Transform {
	n := target(raw)
	switch {
	case n != nil && n.Kind == yaml.ScalarNode && n.Tag != "!!null":
		name := strings.ToLower(strings.Trim(strings.TrimSpace(n.Value), "`"))
		if strings.ContainsAny(name, "()") {
			d.problem(raw, path, "- NAME: "+n.Value, "the transform %s has no name for its partition column", n.Value)
			return layout.Transform{}
		}
		return layout.Transform{Name: name, Func: layout.Identity, Column: name}
	case n != nil && n.Kind == yaml.MappingNode && len(n.Content) == 2:
		name, expr := target(n.Content[0]), target(n.Content[1])
		if name == nil || expr == nil || name.Kind != yaml.ScalarNode || expr.Kind != yaml.ScalarNode || expr.Tag == "!!null" {
			d.problem(raw, path, "- dt: date(ts)", "wants a name and a transform")
			return layout.Transform{}
		}
		lower := strings.ToLower(name.Value)
		t, err := layout.ParseTransform(lower, expr.Value)
		if err != nil {
			d.problem(raw, path, "", "%s", err)
			return layout.Transform{Name: lower}
		}
		return t
	case n != nil && n.Kind == yaml.MappingNode:
		d.problem(raw, path, "give each partition column its own list item", "wants one partition column, not %d", len(n.Content)/2)
	default:
		d.problem(raw, path, "- country, or - dt: date(ts)", "wants a column or a transform, not %s", describe(n))
	}
	return layout.Transform{}
}

// columnSource prints a column as table.columns has it.
func columnSource(f hivetype.Field) string {
	text := quoteName(f.Name) + " " + typeSource(f.Type)
	if f.NotNull {
		text += " not null"
	}
	return text
}

// typeSource is the text of a type, with backticks where a field needs them.
func typeSource(t *hivetype.Type) string {
	switch t.Kind {
	case hivetype.Array:
		return "array<" + typeSource(t.Elem) + ">"
	case hivetype.Map:
		return "map<" + typeSource(t.Key) + "," + typeSource(t.Elem) + ">"
	case hivetype.Struct:
		fields := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			fields[i] = quoteName(f.Name) + ":" + typeSource(f.Type)
		}
		return "struct<" + strings.Join(fields, ",") + ">"
	}
	return t.String()
}

func quoteName(name string) string {
	if strings.ContainsAny(name, " \t\r\n()") {
		return "`" + name + "`"
	}
	return name
}
