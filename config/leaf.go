package config

import (
	"fmt"
	"math"
	"math/big"
	"path"
	"strconv"
	"strings"
	"time"
)

// Bytes is an amount of data. As text it is a whole number of bytes or a
// number with a unit: B, KB, MB, GB, TB, where 1 MB is 2^20 bytes.
type Bytes int64

// Amounts of data.
const (
	KB Bytes = 1 << 10
	MB Bytes = 1 << 20
	GB Bytes = 1 << 30
	TB Bytes = 1 << 40
)

var byteUnits = []struct {
	name string
	size Bytes
}{{"TB", TB}, {"GB", GB}, {"MB", MB}, {"KB", KB}, {"B", 1}}

// ParseBytes reads an amount of data: "128MB", "1.5 GB", "4096". Units are not
// case sensitive; K, KiB and k are KB, and so on. It must be a whole number of
// bytes that fits an int64, and not negative.
func ParseBytes(text string) (Bytes, error) {
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	unit := strings.ToUpper(strings.TrimSpace(text[len(digits):]))
	if len(unit) == 3 && unit[1] == 'I' || len(unit) == 1 && unit != "B" {
		unit = unit[:1] + "B"
	}
	size := Bytes(0)
	if unit == "" {
		size = 1
	}
	for _, u := range byteUnits {
		if u.name == unit {
			size = u.size
		}
	}
	if size == 0 || !isDecimal(digits) {
		return 0, fmt.Errorf("%q is not a size", text)
	}
	// Exact arithmetic: 0.1GB is no whole number of bytes, and is refused
	// rather than rounded.
	n, _ := new(big.Rat).SetString(digits)
	n.Mul(n, new(big.Rat).SetInt64(int64(size)))
	if !n.IsInt() {
		return 0, fmt.Errorf("%q is not a whole number of bytes", text)
	}
	if !n.Num().IsInt64() {
		return 0, fmt.Errorf("%q is more than 2^63 bytes", text)
	}
	return Bytes(n.Num().Int64()), nil
}

// isDecimal says whether text is digits with at most one point between them.
func isDecimal(text string) bool {
	before, after, point := strings.Cut(text, ".")
	return isDigits(before) && (!point || isDigits(after))
}

func isDigits(text string) bool {
	return text != "" && len(text) <= 30 && strings.Trim(text, "0123456789") == ""
}

// String prints b with the largest unit that divides it.
func (b Bytes) String() string {
	for _, u := range byteUnits {
		if b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return "0"
}

// Duration is a span of time. As text it is Go's, and d for days of 24 hours:
// "30s", "1h30m", "7d", "1d12h".
type Duration time.Duration

const day = 24 * time.Hour

// ParseDuration reads a span of time. It may not be negative; 0 needs no unit.
func ParseDuration(text string) (Duration, error) {
	bad := fmt.Errorf("%q is not a duration", text)
	if strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+") {
		return 0, bad
	}
	days, rest, hasDays := strings.Cut(text, "d")
	if !hasDays {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, bad
		}
		return Duration(d), nil
	}
	if !isDecimal(days) || strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "+") {
		return 0, bad
	}
	n, _ := new(big.Rat).SetString(days)
	n.Mul(n, new(big.Rat).SetInt64(int64(day)))
	if !n.IsInt() || !n.Num().IsInt64() {
		return 0, bad
	}
	total := time.Duration(n.Num().Int64())
	if rest != "" {
		d, err := time.ParseDuration(rest)
		if err != nil || d > math.MaxInt64-total {
			return 0, bad
		}
		total += d
	}
	return Duration(total), nil
}

// Std is d as the standard library has it.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String prints d as ParseDuration reads it, without parts that are zero.
func (d Duration) String() string {
	t := time.Duration(d)
	if t == 0 {
		return "0s"
	}
	text := ""
	if t >= day {
		text = strconv.FormatInt(int64(t/day), 10) + "d"
		t %= day
	}
	if t == 0 {
		return text
	}
	clock := t.String()
	if strings.HasSuffix(clock, "m0s") {
		clock = strings.TrimSuffix(clock, "0s")
	}
	if strings.HasSuffix(clock, "h0m") {
		clock = strings.TrimSuffix(clock, "0m")
	}
	return text + clock
}

// Location is where a table lies.
type Location struct {
	Scheme string // file, hdfs or s3; "" is file
	Host   string // hdfs: name node, host:port or name service; s3: bucket; file: ""
	Path   string // cleaned; absolute, but for file also relative to the working directory
}

// ParseLocation reads a location: file:///a/b, file:/a/b, a/b, /a/b,
// hdfs://host:port/a/b, s3://bucket/a/b. Nothing in it is unescaped, as in
// Hadoop's paths.
func ParseLocation(text string) (Location, error) {
	scheme, rest, hasScheme := strings.Cut(text, "://")
	if !hasScheme {
		if after, ok := strings.CutPrefix(text, "file:"); ok {
			text = after
		}
		if text == "" {
			return Location{}, fmt.Errorf("is empty")
		}
		return Location{Scheme: "file", Path: path.Clean(text)}, nil
	}
	l := Location{Scheme: strings.ToLower(scheme)}
	switch l.Scheme {
	case "file", "hdfs", "s3":
	default:
		return Location{}, fmt.Errorf("scheme %q is not one of file, hdfs, s3", scheme)
	}
	host, p, hasPath := strings.Cut(rest, "/")
	l.Host, l.Path = host, path.Clean("/"+p)
	switch {
	case l.Scheme == "file" && host != "":
		return Location{}, fmt.Errorf("file://%s names the host %q; a local path has three slashes, file:///%s, "+
			"and a relative one no scheme, %s", rest, host, rest, rest)
	case l.Scheme != "file" && host == "":
		what := map[string]string{"hdfs": "name node", "s3": "bucket"}[l.Scheme]
		return Location{}, fmt.Errorf("%q names no %s (%s://%s/…)", text, what, l.Scheme, strings.ReplaceAll(what, " ", "-"))
	case !hasPath || l.Path == "/":
		return Location{}, fmt.Errorf("%q has no path: a table cannot be the root", text)
	}
	return l, nil
}

// String prints l as ParseLocation reads it.
func (l Location) String() string {
	switch {
	case l.Path == "":
		return ""
	case l.Scheme != "file" && l.Scheme != "":
		return l.Scheme + "://" + l.Host + l.Path
	case path.IsAbs(l.Path):
		return "file://" + l.Path
	}
	return l.Path
}

// IsLocal says whether l is on the local file system.
func (l Location) IsLocal() bool { return l.Scheme == "file" || l.Scheme == "" }
