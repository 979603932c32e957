package maintenance

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/hivesink/hivesink/format/parquet"
)

// geoKey says which columns are geometries, in which encoding and coordinates
// (GeoParquet): numbers mean nothing without. It also has bounds of the file,
// which every file has others of.
const geoKey = "geo"

// Of one file, in what is said of a column: its bounds, which may be left out, and
// the kinds of geometries it has, of which none says that they are not known.
const (
	geoBounds = "bbox"
	geoKinds  = "geometry_types"
)

type geoMeta struct {
	all     map[string]json.RawMessage
	columns map[string]map[string]json.RawMessage
}

func decodeGeo(text string) (*geoMeta, error) {
	g := &geoMeta{}
	if err := json.Unmarshal([]byte(text), &g.all); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(g.all["columns"], &g.columns); err != nil {
		return nil, err
	}
	if g.columns == nil {
		return nil, errors.New("no columns")
	}
	return g, nil
}

// encode renders it with the kinds of geometries that there are, without bounds.
// Names are sorted.
func (g *geoMeta) encode(kinds map[string][]string) (string, error) {
	columns := make(map[string]map[string]json.RawMessage, len(g.columns))
	for name, c := range g.columns {
		columns[name] = make(map[string]json.RawMessage, len(c))
		for k, v := range c {
			if k != geoBounds && k != geoKinds {
				columns[name][k] = v
			}
		}
		b, err := json.Marshal(append([]string{}, kinds[name]...))
		if err != nil {
			return "", err
		}
		columns[name][geoKinds] = b
	}
	all := make(map[string]json.RawMessage, len(g.all))
	for k, v := range g.all {
		all[k] = v
	}
	var err error
	if all["columns"], err = json.Marshal(columns); err != nil {
		return "", err
	}
	b, err := json.Marshal(all)
	return string(b), err
}

// geoOf is what files that become one have to agree on; "" when one says nothing.
func geoOf(f *parquetfile.File) string {
	text, ok := f.Meta()[geoKey]
	if !ok {
		return ""
	}
	if g, err := decodeGeo(text); err == nil {
		if same, err := g.encode(nil); err == nil {
			return same
		}
	}
	return text
}

// keepGeo puts back what files of one reading say of geometries.
func keepGeo(files []*parquetfile.File, meta map[string]string) {
	if _, agreed := meta[geoKey]; agreed {
		return
	}
	var first *geoMeta
	kinds := map[string][]string{}
	unknown := map[string]bool{}
	for _, f := range files {
		text, ok := f.Meta()[geoKey]
		if !ok {
			return
		}
		g, err := decodeGeo(text)
		if err != nil {
			return
		}
		if first == nil {
			first = g
		}
		for name, c := range g.columns {
			var own []string
			if raw := bytes.TrimSpace(c[geoKinds]); json.Unmarshal(raw, &own) != nil || len(own) == 0 {
				unknown[name] = true
			}
			kinds[name] = append(kinds[name], own...)
		}
	}
	for name := range kinds {
		if slices.Sort(kinds[name]); unknown[name] {
			kinds[name] = nil
		}
		kinds[name] = slices.Compact(kinds[name])
	}
	if text, err := first.encode(kinds); err == nil {
		meta[geoKey] = text
	}
}
