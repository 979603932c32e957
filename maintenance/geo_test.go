package maintenance

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/storage/memfs"
)

// TestGeometriesKeepTheirCoordinates: files of geometries are joined where they
// say the same of them but for bounds and kinds, and the target says it, too;
// others stay apart (MT11).
func TestGeometriesKeepTheirCoordinates(t *testing.T) {
	geo := func(crs, bounds, kinds string) map[string]string {
		text := fmt.Sprintf(`{"version":"1.1.0", "primary_column":"name", "columns":{"name":{"encoding":"WKB","crs":%s,"geometry_types":%s`, crs, kinds)
		if bounds != "" {
			text += `,"bbox":` + bounds
		}
		return map[string]string{geoKey: text + "}}}"}
	}
	const lonLat, other = `{"id":{"code":4326,"authority":"EPSG"},"area":1.50}`, `{"id":{"code":3857,"authority":"EPSG"}}`
	for _, c := range []struct {
		name string
		a, b map[string]string
		want string // kinds; "": they stay apart
	}{
		{"other bounds", geo(lonLat, "[0,0,1,1]", `["Point"]`), geo(lonLat, "[5,5,6,6]", `["Point"]`), `["Point"]`},
		{"other kinds", geo(lonLat, "[0,0,1,1]", `["Polygon","Point"]`), geo(lonLat, "", `["Polygon","LineString"]`), `["LineString","Point","Polygon"]`},
		{"kinds that are not known", geo(lonLat, "[0,0,1,1]", `[]`), geo(lonLat, "[5,5,6,6]", `["Point"]`), `[]`},
		{"other coordinates", geo(lonLat, "[0,0,1,1]", `["Point"]`), geo(other, "[0,0,1,1]", `["Point"]`), ""},
		{"nothing said of one", geo(lonLat, "[0,0,1,1]", `["Point"]`), nil, ""},
		{"no JSON", map[string]string{geoKey: "{"}, map[string]string{geoKey: "}"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := memfs.New()
			put(t, fsys, root+"/dt=0/a.parquet", fileOf(t, 0, 10, c.a))
			put(t, fsys, root+"/dt=0/b.parquet", fileOf(t, 10, 20, c.b))
			if c.want == "" {
				if p := outcome(t, run(t, options(fsys)), "dt=0", AsItWas); !strings.Contains(p.Reason, "geo") {
					t.Errorf("it says: %s", p.Reason)
				}
				return
			}
			outcome(t, run(t, options(fsys)), "dt=0", Compacted)
			var got, want any
			check(t, json.Unmarshal([]byte(only(t, fsys).Meta()[geoKey]), &got))
			check(t, json.Unmarshal([]byte(geo(lonLat, "", c.want)[geoKey]), &want))
			if !reflect.DeepEqual(got, want) {
				t.Errorf("it says %v, want %v", got, want)
			}
		})
	}
}
