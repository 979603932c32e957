package parquetfile

import (
	"strconv"
	"strings"
)

// Readers know the mistakes of old writers by the footer's created_by, which is
// another one once pages have moved to another file. What needs such knowledge
// does not move.

// runsOn: in this row group the first value of a DELTA_BYTE_ARRAY page may begin
// with the last one of the page before, as parquet-mr had it before 1.8.0
// (PARQUET-246). Read as a page by itself it is another value, or damaged.
func (f *File) runsOn(g *rowGroup) bool {
	for i := range g.columns {
		if g.columns[i].deltaBytes {
			return f.runsOnByWriter()
		}
	}
	return false
}

// runsOnByWriter: so its writer does, or it does not say who that is.
func (f *File) runsOnByWriter() bool {
	name, version, _ := strings.Cut(f.foot.createdBy, " version ")
	if name = strings.TrimSpace(name); name != "parquet-mr" {
		return name == ""
	}
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	return errA != nil || errB != nil || a < 1 || a == 1 && b < 8
}
