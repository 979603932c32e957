package avrorow

import (
	"fmt"
	"strings"
	"testing"
)

// Names without a namespace are of the nearest one around them, as Java prints
// schemas; the same name may be in several.
func TestNamespaces(t *testing.T) {
	for name, c := range map[string]struct {
		schema string
		rec    []byte
		want   []string
	}{
		"short": {`{"type":"record","name":"R","namespace":"geo","fields":[{"name":"a","type":{"type":"record","name":"P","fields":[{"name":"x","type":"int"}]}},
			{"name":"b","type":["null","P"]}]}`, []byte{2, 2, 4}, []string{"{[1]}", "{[2]}"}},
		"dotted": {`{"type":"record","name":"geo.R","fields":[{"name":"a","type":{"type":"record","name":"P","fields":[{"name":"x","type":"int"}]}},
			{"name":"b","type":["null","geo.P"]}]}`, []byte{2, 2, 4}, []string{"{[1]}", "{[2]}"}},
		"two": {`{"type":"record","name":"R","namespace":"m","fields":[
			{"name":"z","type":{"type":"record","name":"P","fields":[{"name":"y","type":"string"}]}},
			{"name":"a","type":{"type":"record","name":"P","namespace":"n","fields":[{"name":"x","type":"int"},
				{"name":"more","type":["null","P"]}]}},
			{"name":"b","type":"n.P"}, {"name":"w","type":"P"}]}`,
			[]byte{2, 'q', 2, 2, 6, 0, 4, 0, 2, 'q'}, []string{"{[1]}", "{[2]}"}},
		"none": {`{"type":"record","name":"R","namespace":"m","fields":[
			{"name":"a","type":{"type":"record","name":"P","namespace":"","fields":[{"name":"x","type":"int"}]}},
			{"name":"w","type":["null",{"type":"record","name":"P","fields":[{"name":"y","type":"string"}]}]},
			{"name":"b","type":{"type":"array","items":"P"}}]}`,
			[]byte{2, 0, 2, 2, 'q', 0}, []string{"{[1]}"}},
	} {
		d := newDecoder(t, Options{}, "a struct<x:int>", "b struct<x:int>")
		if name == "none" {
			d = newDecoder(t, Options{}, "a struct<x:int>")
		}
		s, err := d.Compile(c.schema)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := d.Append(s, c.rec); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		b := d.NewBatch()
		for _, want := range c.want {
			if got := fmt.Sprint(b); !strings.Contains(got, want) {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
		b.Release()
	}
}
