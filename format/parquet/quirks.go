package parquetfile

import (
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go/format"
)

// Readers know the mistakes of old writers by the footer's created_by, which is
// another one once pages have moved to another file. What needs such knowledge
// does not move.

// stays says why the pages of a row group are not copied, "" when they can be.
func (f *File) stays(g *rowGroup) string {
	if f.runsOn(g) {
		return "the values of one may go on in the next"
	}
	if f.hidesPacking() && !g.inCodec(format.Uncompressed) {
		return "they may be compressed where they say they are not"
	}
	return ""
}

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
	name, _, _ = strings.Cut(name, "(") // some builds say no version
	if name = strings.TrimSpace(name); name != "parquet-mr" {
		return name == ""
	}
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	return errA != nil || errB != nil || a < 1 || a == 1 && b < 8
}

// hidesPacking: data pages V2 say that they are not compressed and are, as
// Arrow's C++ wrote them before 3.0 (ARROW-10353), when it was called
// parquet-cpp. Every reader knows them by that name.
func (f *File) hidesPacking() bool {
	name, _, _ := strings.Cut(f.foot.createdBy, " version")
	return strings.TrimSpace(name) == "parquet-cpp"
}
