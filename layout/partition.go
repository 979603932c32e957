package layout

import (
	"fmt"
	"strings"
)

// DefaultPartition is the directory value of null and of the empty string.
const DefaultPartition = "__HIVE_DEFAULT_PARTITION__"

// MaxComponent is how many bytes one name in a path may have, after escaping.
// It is the limit of every common file system.
const MaxComponent = 255

// Limits is what a storage takes of partition paths, beside MaxComponent. The zero
// Limits has no bounds.
type Limits struct {
	// Path is how many bytes a path below the table may have.
	Path int
	// XML: the storage says names in XML 1.0, which has no U+FFFE and U+FFFF: they
	// come back as other characters, or as an error.
	XML bool
}

// TakesText says whether a value may be in a path.
func (l *Limits) TakesText(value string) bool {
	return !l.XML || !strings.ContainsAny(value, "\ufffe\uffff")
}

// TakesPath says whether a path is short enough.
func (l *Limits) TakesPath(path string) bool { return l.Path == 0 || len(path) <= l.Path }

// escaped are the bytes Hive escapes in a path component, besides the control
// characters 0x00-0x1F and 0x7F.
const escaped = "\"#%'*/:=?\\{[]^"

// escapes[b] says whether byte b is escaped. Non-ASCII never is.
var escapes = func() (t [256]bool) {
	for b := range 0x20 {
		t[b] = true
	}
	t[0x7f] = true
	for _, b := range []byte(escaped) {
		t[b] = true
	}
	return t
}()

const upperHex = "0123456789ABCDEF"

// Escape writes a column name or a value as Hive writes it in a path (L1).
func Escape(s string) string {
	n := 0
	for i := range len(s) {
		if escapes[s[i]] {
			n++
		}
	}
	if n == 0 {
		return s
	}
	b := make([]byte, 0, len(s)+2*n)
	for i := range len(s) {
		if c := s[i]; escapes[c] {
			b = append(b, '%', upperHex[c>>4], upperHex[c&15])
		} else {
			b = append(b, c)
		}
	}
	return string(b)
}

// Unescape takes Escape back as Hive does: "%" and two hex digits are the
// character of that number, anything else stays as it is. (Java's number
// parser also takes a sign, so that Hive reads "%+1" as U+0001; that is not
// imitated.)
func Unescape(s string) string {
	i := strings.IndexByte(s, '%')
	if i < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	b.WriteString(s[:i])
	for ; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			hi, lo := hexDigit(s[i+1]), hexDigit(s[i+2])
			if hi >= 0 && lo >= 0 {
				// A character, not a byte: Hive decodes "%E9" to U+00E9.
				b.WriteRune(rune(hi<<4 | lo))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// PartitionPath is the path of a partition below its table: "k1=v1/k2=v2",
// without a slash at its end; "" without columns. Names are lower-cased, the
// empty value stands for null (L2). It panics when there are not as many
// values as names.
func PartitionPath(names, values []string) string {
	if len(names) != len(values) {
		panic(fmt.Sprintf("layout: %d partition columns, %d values", len(names), len(values)))
	}
	var b strings.Builder
	for i, n := range names {
		if i > 0 {
			b.WriteByte('/')
		}
		b.WriteString(Escape(strings.ToLower(n)))
		b.WriteByte('=')
		b.WriteString(Escape(ValueOrDefault(values[i])))
	}
	return b.String()
}

// ValueOrDefault is the value as the catalogue has it: DefaultPartition for
// null and the empty string.
func ValueOrDefault(value string) string {
	if value == "" {
		return DefaultPartition
	}
	return value
}

// ParsePath takes a partition's path apart and unescapes it. A value that was
// null comes back as DefaultPartition. The path is relative to its table; ""
// has no columns. Each component must be name=value.
func ParsePath(path string) (names, values []string, err error) {
	if path == "" {
		return nil, nil, nil
	}
	for component := range strings.SplitSeq(path, "/") {
		name, value, ok := strings.Cut(component, "=")
		if !ok || name == "" || value == "" {
			return nil, nil, fmt.Errorf("partition path %q: component %q is not name=value", path, component)
		}
		names = append(names, Unescape(name))
		values = append(values, Unescape(value))
	}
	return names, values, nil
}

// CheckPath says which component of a path is longer than MaxComponent bytes.
func CheckPath(path string) error {
	for component := range strings.SplitSeq(path, "/") {
		if n := len(component); n > MaxComponent {
			return fmt.Errorf("directory name %.40q… has %d bytes, at most %d are possible", component, n, MaxComponent)
		}
	}
	return nil
}

// Hidden says whether readers pass over a file or directory of this name: it
// starts with "." or "_". (Spark would read "_k=v"; Hive and Arrow do not, so
// a partition column must not have such a name.)
func Hidden(name string) bool {
	return name != "" && (name[0] == '.' || name[0] == '_')
}
