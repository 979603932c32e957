package hivetype

import (
	"reflect"
	"strings"
	"testing"
)

// H1, H2: what is accepted, and how it prints.
func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		"int": "int", "integer": "int", " BIGINT ": "bigint", "tinyint": "tinyint", "SmallInt": "smallint",
		"boolean": "boolean", "float": "float", "double": "double", "string": "string", "binary": "binary",
		"date": "date", "timestamp": "timestamp",
		"decimal": "decimal(10,0)", "decimal(5)": "decimal(5,0)", "decimal ( 38 , 38 )": "decimal(38,38)",
		"varchar(65535)": "varchar(65535)", "char(255)": "char(255)", "char(1)": "char(1)",
		"array<int>":                             "array<int>",
		"ARRAY < Array<STRING> >":                "array<array<string>>",
		"map<string, bigint>":                    "map<string,bigint>",
		"map<decimal(3,1),map<date,int>>":        "map<decimal(3,1),map<date,int>>",
		"struct<A:int, b : struct<C:string>>":    "struct<a:int,b:struct<c:string>>",
		"struct<`User`:int>":                     "struct<user:int>",
		"struct<`a b`:int,struct:int>":           "struct<a b:int,struct:int>",
		"struct<a b :int>":                       "struct<a b:int>",
		"struct<größe:array<struct<_1:double>>>": "struct<größe:array<struct<_1:double>>>",
	} {
		typ, err := Parse(in)
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		if got := typ.String(); got != want {
			t.Errorf("%q prints %q, want %q", in, got, want)
		}
		again, err := Parse(typ.String())
		if err != nil || !reflect.DeepEqual(typ, again) {
			t.Errorf("%q: reading %q back gives %v, %v", in, typ, again, err)
		}
	}
}

// H3, H4: what is refused, at which character, and why.
func TestParseRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"":                                      "character 1: want a type",
		"text":                                  `character 1: "text" is not a type`,
		"int x":                                 `character 5: "x" after the type`,
		"int>":                                  `character 4: ">" after the type`,
		"decimal(39)":                           "character 9: want a precision from 1 to 38",
		"decimal(0)":                            "a precision from 1 to 38",
		"decimal(5,6)":                          "character 11: want a scale from 0 to 5",
		"decimal(5,-1)":                         "want a scale",
		"decimal(5":                             `character 10: want ")"`,
		"varchar":                               `character 8: want "("`,
		"varchar(0)":                            "want a length from 1 to 65535",
		"varchar(65536)":                        "want a length from 1 to 65535",
		"char(256)":                             "character 6: want a length from 1 to 255",
		"array":                                 `character 6: want "<"`,
		"array<>":                               "character 7: want a type",
		"array<int":                             `character 10: want ">"`,
		"map<int>":                              `character 8: want ","`,
		"map<array<int>,int>":                   "a map key must be a primitive type, not array<int>",
		"map<struct<a:int>,int>":                "a map key must be a primitive type",
		"struct<>":                              "at least one field",
		"struct< >":                             "at least one field",
		"struct<a>":                             `character 9: want ":"`,
		"struct<a int>":                         `want ":"`,
		"struct<a:int,>":                        "want a field name",
		"struct<a:int,A:string>":                `field "a" twice`,
		"struct<a.b:int>":                       "a dot, colon, comma or angle bracket",
		"struct<`a:b`:int>":                     "a dot, colon",
		"struct<`a(1)`:int>":                    "parenthesis",
		"struct<` a`:int>":                      "blank at an end",
		"struct<`a\tb`:int>":                    "control character",
		"struct<`\xff`:int>":                    "bad UTF-8",
		"struct<`a:int>":                        "a backtick is not closed",
		"interval":                              "use bigint",
		"uniontype<int,string>":                 "use a struct",
		"timestamplocaltz":                      "use timestamp",
		"timestamp with local time zone":        "character 11: timestamp with local time zone is not written",
		"array<timestamp with local time zone>": "use timestamp",
		strings.Repeat("array<", 33) + "int" + strings.Repeat(">", 33): "nested deeper than 32",
	} {
		typ, err := Parse(in)
		if err == nil {
			t.Errorf("%q is accepted as %s, want an error with %q", in, typ, want)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
	deep := strings.Repeat("array<", 32) + "int" + strings.Repeat(">", 32)
	if _, err := Parse(deep); err != nil {
		t.Errorf("32 levels: %v", err)
	}
}

func TestParseColumn(t *testing.T) {
	for in, want := range map[string]string{
		"id bigint":                          "id|bigint|false",
		"Id  BIGINT  NOT  NULL ":             "id|bigint|true",
		"`user name` string not null":        "user name|string|true",
		"`timestamp` timestamp":              "timestamp|timestamp|false",
		"date date":                          "date|date|false",
		"user string":                        "user|string|false",
		"o struct<ZipCode:string>":           "o|struct<zipcode:string>|false",
		"m map<string,array<int>>not null":   "m|map<string,array<int>>|true",
		"amount decimal ( 10 , 2 ) not null": "amount|decimal(10,2)|true",
		"id\tint\r\n":                        "id|int|false",
	} {
		f, err := ParseColumn(in)
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		got := f.Name + "|" + f.Type.String() + "|false"
		if f.NotNull {
			got = f.Name + "|" + f.Type.String() + "|true"
		}
		if got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
	for in, want := range map[string]string{
		"":                                  "want a column name",
		"id":                                "want a type",
		"a.b int":                           `name "a.b": a dot`, // NM-02
		"`a.b` int":                         `name "a.b": a dot`,
		"id int null":                       `character 8: want the end or "not null"`,
		"id int not null x":                 "want the end",
		"o struct<>":                        `column "o struct<>"`, // NE-03: it names the column
		"id:int":                            "want a type",
		"ts timestamp with local time zone": "use timestamp",
	} {
		if f, err := ParseColumn(in); err == nil {
			t.Errorf("%q is accepted as %v", in, f)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
}

// H1, H2 for whatever is accepted, and no panic for what is not.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"int", "decimal(10,2)", "varchar(3)", "map<string,struct<A:array<int>,`b c`:date>>",
		"struct<a b :int>", "timestamp with local time zone", "struct<Ⱥ:int>", "array<", "`"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		typ, err := Parse(s)
		if err != nil {
			return
		}
		again, err := Parse(typ.String())
		if err != nil || !reflect.DeepEqual(typ, again) {
			t.Errorf("%q: reading %q back gives %v, %v", s, typ, again, err)
		}
	})
}
