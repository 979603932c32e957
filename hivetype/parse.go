package hivetype

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a type.
const maxDepth = 32

var names = map[string]Kind{
	"boolean": Boolean, "tinyint": TinyInt, "smallint": SmallInt, "int": Int, "integer": Int, "bigint": BigInt,
	"float": Float, "double": Double, "decimal": Decimal, "string": String, "varchar": Varchar, "char": Char,
	"binary": Binary, "date": Date, "timestamp": Timestamp, "array": Array, "map": Map, "struct": Struct,
}

const known = "boolean, tinyint, smallint, int, bigint, float, double, decimal, string, varchar, char, binary, date, timestamp, array, map, struct"

// refused are the types that Hive has and hivesink does not write, and what to
// do instead.
var refused = map[string]string{
	"interval":         "Hive cannot store an interval; use bigint",
	"uniontype":        "uniontype is not written: Parquet has no such type; use a struct with one field for each type",
	"timestamplocaltz": localTimestamp,
}

const localTimestamp = "timestamp with local time zone is not written: Hive's Parquet has no such type; use timestamp, which holds instants in UTC"

// String prints the type as Hive does; Parse reads it back.
func (t *Type) String() string {
	switch t.Kind {
	case Decimal:
		return fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale)
	case Varchar:
		return fmt.Sprintf("varchar(%d)", t.Length)
	case Char:
		return fmt.Sprintf("char(%d)", t.Length)
	case Array:
		return "array<" + t.Elem.String() + ">"
	case Map:
		return "map<" + t.Key.String() + "," + t.Elem.String() + ">"
	case Struct:
		fields := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			fields[i] = f.Name + ":" + f.Type.String()
		}
		return "struct<" + strings.Join(fields, ",") + ">"
	}
	for _, n := range []string{"boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date", "timestamp"} {
		if names[n] == t.Kind {
			return n
		}
	}
	return "invalid"
}

// Parse reads a Hive type.
func Parse(s string) (*Type, error) {
	p := &parser{in: s}
	t, err := p.typ(0)
	if err == nil {
		err = p.end()
	}
	if err != nil {
		return nil, fmt.Errorf("type %q: %w", s, err)
	}
	return t, nil
}

// ParseColumn reads a column: its name, its type, and perhaps "not null".
func ParseColumn(s string) (Field, error) {
	p := &parser{in: s}
	f, err := p.column()
	if err != nil {
		return Field{}, fmt.Errorf("column %q: %w", s, err)
	}
	return f, nil
}

type parser struct {
	in string
	at int
}

func (p *parser) column() (Field, error) {
	name, err := p.name("a column name", wordEnd)
	if err != nil {
		return Field{}, err
	}
	t, err := p.typ(0)
	if err != nil {
		return Field{}, err
	}
	f := Field{Name: name, Type: t}
	if p.space(); p.at < len(p.in) {
		rest := strings.ToLower(strings.Join(strings.Fields(p.in[p.at:]), " "))
		if rest != "not null" {
			return Field{}, p.errorf("want the end or \"not null\", not %q", p.in[p.at:])
		}
		f.NotNull = true
	}
	return f, nil
}

func (p *parser) typ(depth int) (*Type, error) {
	if depth > maxDepth {
		return nil, p.errorf("nested deeper than %d", maxDepth)
	}
	p.space()
	start := p.at
	word := strings.ToLower(p.word())
	kind, ok := names[word]
	if !ok {
		p.at = start
		if word == "" {
			return nil, p.errorf("want a type")
		}
		if why, ok := refused[word]; ok {
			return nil, p.errorf("%s", why)
		}
		return nil, p.errorf("%q is not a type hivesink writes; want one of Hive's: %s", word, known)
	}
	t := &Type{Kind: kind}
	var err error
	switch kind {
	case Timestamp:
		err = p.noTimeZone()
	case Decimal:
		err = p.decimal(t)
	case Varchar:
		err = p.length(t, 65535)
	case Char:
		err = p.length(t, 255)
	case Array:
		if err = p.want('<'); err == nil {
			if t.Elem, err = p.typ(depth + 1); err == nil {
				err = p.want('>')
			}
		}
	case Map:
		err = p.mapTypes(t, depth)
	case Struct:
		err = p.fields(t, depth)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// noTimeZone refuses the longer type that begins with timestamp.
func (p *parser) noTimeZone() error {
	p.space()
	start := p.at
	word := strings.ToLower(p.word())
	p.at = start
	if word == "with" {
		return p.errorf("%s", localTimestamp)
	}
	return nil
}

func (p *parser) decimal(t *Type) error {
	t.Precision = 10
	if !p.have('(') {
		return nil
	}
	var err error
	if t.Precision, err = p.number(1, 38, "a precision"); err != nil {
		return err
	}
	if p.have(',') {
		if t.Scale, err = p.number(0, t.Precision, "a scale"); err != nil {
			return err
		}
	}
	return p.want(')')
}

func (p *parser) length(t *Type, most int) (err error) {
	if err = p.want('('); err != nil {
		return err
	}
	if t.Length, err = p.number(1, most, "a length"); err != nil {
		return err
	}
	return p.want(')')
}

func (p *parser) mapTypes(t *Type, depth int) (err error) {
	if err = p.want('<'); err != nil {
		return err
	}
	if t.Key, err = p.typ(depth + 1); err != nil {
		return err
	}
	if t.Key.Kind >= Array {
		return p.errorf("a map key must be a primitive type, not %s", t.Key)
	}
	if err = p.want(','); err != nil {
		return err
	}
	if t.Elem, err = p.typ(depth + 1); err != nil {
		return err
	}
	return p.want('>')
}

func (p *parser) fields(t *Type, depth int) error {
	if err := p.want('<'); err != nil {
		return err
	}
	if p.have('>') {
		return p.errorf("a struct needs at least one field: Parquet has no empty groups")
	}
	seen := make(map[string]bool)
	for {
		name, err := p.name("a field name", fieldEnd)
		if err != nil {
			return err
		}
		if seen[name] {
			return p.errorf("field %q twice (Hive does not tell upper from lower case)", name)
		}
		seen[name] = true
		if err := p.want(':'); err != nil {
			return err
		}
		ft, err := p.typ(depth + 1)
		if err != nil {
			return err
		}
		t.Fields = append(t.Fields, Field{Name: name, Type: ft})
		if p.have(',') {
			continue
		}
		return p.want('>')
	}
}

// name reads an identifier, perhaps in backticks, and lower-cases it. Names
// within a type may have blanks without backticks, because Hive prints types
// so.
func (p *parser) name(what, ends string) (string, error) {
	p.space()
	start := p.at
	var s string
	if p.at < len(p.in) && p.in[p.at] == '`' {
		end := strings.IndexByte(p.in[p.at+1:], '`')
		if end < 0 {
			return "", p.errorf("a backtick is not closed")
		}
		s = p.in[p.at+1 : p.at+1+end]
		p.at += end + 2
	} else if s = p.until(ends); ends == fieldEnd {
		s = strings.TrimRight(s, blanks)
	}
	end := p.at
	p.at = start // where an error is
	if strings.Trim(s, blanks) == "" {
		return "", p.errorf("want %s", what)
	}
	if s != strings.Trim(s, blanks) {
		return "", p.errorf("name %q: a blank at an end of a name would be lost; name the column otherwise", s)
	}
	if i := strings.IndexFunc(s, unicode.IsControl); i >= 0 || !utf8.ValidString(s) {
		return "", p.errorf("name %q: a control character or bad UTF-8; name the column otherwise", s)
	}
	if strings.ContainsAny(s, ".:,<>`") {
		return "", p.errorf("name %q: a dot, colon, comma or angle bracket cannot be told from a path; name the column otherwise", s)
	}
	if ends == fieldEnd && strings.ContainsAny(s, "()") {
		return "", p.errorf("name %q: Hive cannot read a parenthesis in the name of a field; name it otherwise", s)
	}
	p.at = end
	return strings.ToLower(s), nil
}

// What ends a word, and the name of a field.
const (
	blanks   = " \t\r\n"
	fieldEnd = "<>(),:`"
	wordEnd  = blanks + fieldEnd
)

// word reads up to a blank or one of the signs of the grammar.
func (p *parser) word() string { return p.until(wordEnd) }

func (p *parser) until(ends string) string {
	start := p.at
	for p.at < len(p.in) && strings.IndexByte(ends, p.in[p.at]) < 0 {
		p.at++
	}
	return p.in[start:p.at]
}

func (p *parser) number(least, most int, what string) (int, error) {
	p.space()
	start := p.at
	n, err := strconv.Atoi(p.word())
	if err != nil || n < least || n > most {
		p.at = start
		return 0, p.errorf("want %s from %d to %d", what, least, most)
	}
	return n, nil
}

func (p *parser) space() {
	for p.at < len(p.in) && strings.IndexByte(blanks, p.in[p.at]) >= 0 {
		p.at++
	}
}

func (p *parser) have(c byte) bool {
	p.space()
	if p.at < len(p.in) && p.in[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *parser) want(c byte) error {
	if !p.have(c) {
		return p.errorf("want %q", string(c))
	}
	return nil
}

func (p *parser) end() error {
	if p.space(); p.at < len(p.in) {
		return p.errorf("%q after the type", p.in[p.at:])
	}
	return nil
}

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("at character %d: %s", p.at+1, fmt.Sprintf(format, args...))
}
