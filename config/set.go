package config

import (
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// set applies one --set flag, KEY=VALUE, to the tree: VALUE is YAML and takes
// the place of all that was at KEY. The nodes it brings remember the flag, so
// that what is wrong with them is reported under its name (G2).
func (d *decoder) set(root *yaml.Node, flag string, ordinal int) {
	at := place{file: "--set " + flagText(flag), flag: ordinal}
	fail := func(path, message, hint string) {
		d.problems = append(d.problems, at.problem(path, message, hint))
	}
	key, text, ok := strings.Cut(flag, "=")
	key = strings.TrimSpace(key)
	if !ok || key == "" {
		fail("", "wants KEY=VALUE", "such as --set checkpoint.interval=10s")
		return
	}
	if strings.ContainsAny(key, "[]") {
		fail(key, "names an item of a list", "lists are replaced whole: --set KEY='[a, b]'")
		return
	}
	inner := newDecoder(at.file)
	value := inner.document([]byte(text))
	if value == nil {
		for _, p := range inner.problems {
			fail(key, p.Message, p.Hint)
		}
		if len(inner.problems) > 0 {
			return
		}
		value = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
	}
	d.mark(value, at)
	steps := strings.Split(key, ".")
	for _, step := range steps[:len(steps)-1] {
		root = d.descend(root, step, at)
	}
	d.put(root, steps[len(steps)-1], value, at)
}

// flagText is a flag as problems show it: without the value where that is, or
// may be meant to be, a secret (G7).
func flagText(flag string) string {
	key, _, ok := strings.Cut(flag, "=")
	if !ok {
		return flag
	}
	t := reflect.TypeFor[Config]()
	for step := range strings.SplitSeq(strings.TrimSpace(key), ".") {
		inner, isSection := section(t)
		if !isSection {
			break
		}
		i := slices.IndexFunc(options(inner), func(o option) bool { return o.name == step })
		if i < 0 {
			break
		}
		t = options(inner)[i].field.Type
	}
	if hasSecret(t) {
		return key + "=" + hidden
	}
	return flag
}

// mark notes for n and all below it that a flag brought them.
func (d *decoder) mark(n *yaml.Node, at place) {
	if _, seen := d.flags[n]; seen {
		return
	}
	d.flags[n] = at
	for _, c := range n.Content {
		d.mark(c, at)
	}
	if n.Alias != nil {
		d.mark(n.Alias, at)
	}
}

// descend finds the mapping below key, and makes one when there is none. A
// mapping shared by an alias is copied first, for the flag means this place
// only.
func (d *decoder) descend(n *yaml.Node, key string, at place) *yaml.Node {
	i := find(n, key)
	if i < 0 {
		m := d.newMapping(at)
		d.put(n, key, m, at)
		return m
	}
	child := target(n.Content[i])
	if child == nil || child.Kind != yaml.MappingNode {
		child = d.newMapping(at)
	} else if child.Anchor != "" || child != n.Content[i] {
		shared := *child
		shared.Anchor = ""
		shared.Content = append([]*yaml.Node(nil), child.Content...)
		child = &shared
	}
	n.Content[i] = child
	return child
}

func (d *decoder) newMapping(at place) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	d.flags[m] = at
	return m
}

func (d *decoder) put(n *yaml.Node, key string, value *yaml.Node, at place) {
	k := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}
	d.flags[k] = at
	if i := find(n, key); i >= 0 {
		n.Content[i-1], n.Content[i] = k, value
		return
	}
	n.Content = append(n.Content, k, value)
}

// find returns the index of the value of key in a mapping, or -1.
func find(n *yaml.Node, key string) int {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if k := target(n.Content[i]); k != nil && k.Kind == yaml.ScalarNode && k.Value == key {
			return i + 1
		}
	}
	return -1
}
