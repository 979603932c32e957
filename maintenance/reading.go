package maintenance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hivesink/hivesink/format/parquet"
)

// reading is what a footer says of how its values are to be read: by which
// calendar dates and times were counted, in which zone, and in which coordinates
// geometries are. Files that say other
// things, or of which one says nothing, never become one: the same bytes are
// another day there (MT11).
type reading struct {
	keys   [len(readingKeys)]string
	reader string // who wrote INT96, which readers shift by that
	geo    string // which columns are geometries, and in which coordinates
}

const (
	sparkVersion = "org.apache.spark.version"
	proleptic    = "writer.date.proleptic" // Hive's
)

var readingKeys = [...]string{
	sparkVersion, "org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96", "org.apache.spark.timeZone",
	"writer.time.zone", proleptic, "writer.zone.conversion.legacy",
}

func readingOf(f *parquetfile.File) (r reading) {
	meta := f.Meta()
	for i, key := range readingKeys {
		v, ok := meta[key]
		switch {
		case !ok && key == proleptic && (application(f.CreatedBy()) == "hivesink" || !f.OldDates()):
			r.keys[i] = fmt.Sprintf("%q", "true") // as it was meant, or as good
		case !ok: // Spark then goes by its settings, Hive by its
		case key == sparkVersion:
			r.keys[i] = sparkAge(v)
		default:
			r.keys[i] = fmt.Sprintf("%q", v)
		}
	}
	if f.HasInt96() {
		r.reader = application(f.CreatedBy())
	}
	r.geo = geoOf(f)
	return r
}

// sparkAge is what Spark derives from the version that wrote a file; it compares
// versions as texts.
func sparkAge(version string) string {
	switch {
	case version < "3.0.0":
		return "before 3.0"
	case version < "3.1.0":
		return "3.0"
	}
	return "3.1 or later"
}

// application is the program that a created_by names.
func application(createdBy string) string {
	name, _, _ := strings.Cut(createdBy, " version")
	return strings.TrimSpace(name)
}

// legacy: the values mean what they mean only together with the footer's keys,
// and in the physical types they have.
func (r *reading) legacy() bool {
	for i, v := range r.keys {
		switch readingKeys[i] {
		case sparkVersion:
			if v != "" && v != sparkAge("3.1.0") {
				return true
			}
		case "writer.time.zone":
		case proleptic:
			if v != `"true"` {
				return true
			}
		case "writer.zone.conversion.legacy":
			if v == `"true"` {
				return true
			}
		default:
			if v != "" {
				return true
			}
		}
	}
	return false
}

// differs says how two readings differ, "" when they do not.
func (r *reading) differs(o *reading) string {
	for i, key := range readingKeys {
		if r.keys[i] != o.keys[i] {
			return fmt.Sprintf("%s is %s in some and %s in others", key, said(r.keys[i]), said(o.keys[i]))
		}
	}
	if r.reader != o.reader {
		return fmt.Sprintf("INT96 was written by %s and by %s", said(r.reader), said(o.reader))
	}
	if r.geo != o.geo {
		return "what the key geo says of geometries differs"
	}
	return ""
}

func said(v string) string {
	if v == "" {
		return "not said"
	}
	return v
}

// apart says why files of a directory are not joined, "" when all may be.
func apart(readings []reading) string {
	if len(readings) < 2 {
		return ""
	}
	return "not all files are read alike, and those that are not stay apart: " + readings[0].differs(&readings[1])
}

// numberOf is the place of a reading among those that a directory has.
func numberOf(readings *[]reading, r reading) int {
	if i := slices.Index(*readings, r); i >= 0 {
		return i
	}
	*readings = append(*readings, r)
	return len(*readings) - 1
}

// keepReading puts back what files of one reading do not have in the same words.
func keepReading(files []*parquetfile.File, meta map[string]string) {
	lowest, ok := files[0].Meta()[sparkVersion]
	for _, f := range files[1:] {
		v, has := f.Meta()[sparkVersion]
		ok = ok && has
		lowest = min(lowest, v)
	}
	if ok {
		meta[sparkVersion] = lowest
	}
	for _, f := range files {
		if v, has := f.Meta()[proleptic]; has {
			meta[proleptic] = v
		}
	}
}

// createdBy is who a target says wrote it: of INT96 the program that did.
func (c *compaction) createdBy(files []*parquetfile.File) string {
	if !files[0].HasInt96() {
		return c.CreatedBy
	}
	lowest := files[0].CreatedBy()
	for _, f := range files[1:] {
		lowest = min(lowest, f.CreatedBy())
	}
	if lowest == "" {
		return c.CreatedBy
	}
	return lowest
}
