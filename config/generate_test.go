package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestGenerated compares what is generated from tree.go with what is in the
// tree; -rewrite writes it anew (G5).
func TestGenerated(t *testing.T) {
	compare := func(file string, want []byte) {
		t.Helper()
		if flag.Lookup("rewrite").Value.String() == "true" {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what tree.go says: run go generate, twice when comments changed", file)
		}
	}
	compare("fielddocs.go", generateFieldDocs(t))
	compare("testdata/reference.md", []byte(Docs()))
	compare("testdata/schema.json", JSONSchema())
}

// generateFieldDocs turns the comments of the fields in tree.go into Go.
func generateFieldDocs(t *testing.T) []byte {
	file, err := parser.ParseFile(token.NewFileSet(), "tree.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	b.WriteString("// Code generated from tree.go by generate_test.go. DO NOT EDIT.\n\npackage config\n\n")
	b.WriteString("// fieldDocs has the comment of each option, by struct and field.\nvar fieldDocs = map[string]string{\n")
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		s, ok := spec.Type.(*ast.StructType)
		if !ok {
			return true
		}
		for _, f := range s.Fields.List {
			if f.Tag == nil || strings.Contains(f.Tag.Value, `yaml:"-"`) {
				continue
			}
			doc := strings.Join(strings.Fields(f.Doc.Text()), " ")
			if doc == "" {
				t.Errorf("%s.%s has no comment", spec.Name.Name, f.Names[0].Name)
			}
			fmt.Fprintf(&b, "%q: %q,\n", spec.Name.Name+"."+f.Names[0].Name, doc)
		}
		return false
	})
	b.WriteString("}\n")
	out, err := format.Source(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Every option is in the reference and in the schema, and has a comment; the
// schema is JSON (G5).
func TestReferenceIsWhole(t *testing.T) {
	docs := Docs()
	var root map[string]any
	if err := json.Unmarshal(JSONSchema(), &root); err != nil {
		t.Fatal(err)
	}
	seen := 0
	walk(reflect.TypeFor[Config](), "", func(path string, owner reflect.Type, o option) {
		seen++
		if docOf(owner, o) == "" {
			t.Errorf("%s has no comment", path)
		}
		_, isSection := section(o.field.Type)
		if !strings.Contains(docs, "`"+path+"`") && !(isSection && strings.Contains(docs, "\n## "+path+"\n")) {
			t.Errorf("%s is not in the reference", path)
		}
		at := any(root)
		for step := range strings.SplitSeq(path, ".") {
			object, _ := at.(map[string]any)
			if step == "NAME" {
				at = object["additionalProperties"]
				continue
			}
			properties, _ := object["properties"].(map[string]any)
			at = properties[step]
		}
		if at == nil {
			t.Errorf("%s is not in the schema", path)
		}
	})
	if seen < 70 {
		t.Errorf("only %d options: walk misses some", seen)
	}
}

// Every tag is one the program understands.
func TestTags(t *testing.T) {
	walk(reflect.TypeFor[Config](), "", func(path string, _ reflect.Type, o option) {
		tag := o.field.Tag
		if o.name == "" {
			t.Errorf("%s.%s has no yaml tag", path, o.field.Name)
		}
		def, hasDefault := tag.Lookup("default")
		if enum, ok := tag.Lookup("enum"); ok && hasDefault && !strings.Contains("|"+enum+"|", "|"+def+"|") {
			t.Errorf("%s: default %q is not one of %s", path, def, enum)
		}
		v := reflect.New(o.field.Type).Elem()
		if hasDefault {
			decodeDefault(def, v, path) // panics when it is wrong
			if v.IsZero() {
				t.Errorf("%s: default %q is zero: leave it out", path, def)
			}
		}
		for _, name := range []string{"min", "max"} {
			if limit, ok := tag.Lookup(name); ok && limit != ">0" {
				limitOf(limit, o.field.Type)
			}
		}
	})
}
