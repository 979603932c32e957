package layout

import (
	"bufio"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/quick"
)

// L1: exactly Hive's set, in upper-case hex.
func TestEscapeEveryByte(t *testing.T) {
	const special = "\"#%'*/:=?\\{[]^"
	for b := range 256 {
		s := string([]byte{byte(b)})
		got := Escape(s)
		want := s
		if b < 0x20 || b == 0x7f || b < 0x80 && strings.Contains(special, s) {
			want = "%" + string("0123456789ABCDEF"[b>>4]) + string("0123456789ABCDEF"[b&15])
		}
		if got != want {
			t.Errorf("Escape(%q) = %q, want %q", s, got, want)
		}
	}
	for _, s := range []string{"a b}<>|&+,;~.-_", "東京", "café", ""} {
		if Escape(s) != s {
			t.Errorf("Escape(%q) = %q", s, Escape(s))
		}
	}
}

// L1: whatever Escape writes, Unescape takes back, and it is one component.
func TestEscapeRoundTrip(t *testing.T) {
	property := func(b []byte, s string) bool {
		for _, s := range []string{string(b), s, s + "%41", "%" + s} {
			e := Escape(s)
			if Unescape(e) != s || strings.ContainsAny(e, "/=:") {
				return false
			}
		}
		return true
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 5000}); err != nil {
		t.Error(err)
	}
}

func TestUnescape(t *testing.T) {
	for _, c := range [][2]string{
		{"", ""}, {"%", "%"}, {"%4", "%4"}, {"%41", "A"}, {"%4g", "%4g"}, {"%%41", "%A"}, {"%2541", "%41"},
		{"%+1", "%+1"}, // Hive's parser takes a sign; a name hivesink writes never has this
		{"%-1", "%-1"}, {"%3a", ":"}, {"%E9", "é"}, {"x%00y", "x\x00y"}, {"%4", "%4"}, {"a%", "a%"}, {"東%2F", "東/"},
	} {
		if got := Unescape(c[0]); got != c[1] {
			t.Errorf("Unescape(%q) = %q, want %q", c[0], got, c[1])
		}
	}
}

// L1: PE-01, PE-02: the reported values.
func TestCaseValues(t *testing.T) {
	var expect struct {
		Partitions []struct {
			Dir       string
			HMSValues []string `json:"hms_values"`
		}
	}
	data, err := os.ReadFile("testdata/PE-01.expect.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &expect); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open("testdata/PE-01.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for in := bufio.NewScanner(f); in.Scan(); n++ {
		var row struct{ K string }
		if err := json.Unmarshal(in.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		want := expect.Partitions[n]
		if got := PartitionPath([]string{"k"}, []string{row.K}); got != want.Dir {
			t.Errorf("value %q: %q, want %q", row.K, got, want.Dir)
		}
		if _, values, err := ParsePath(want.Dir); err != nil || !reflect.DeepEqual(values, want.HMSValues) {
			t.Errorf("path %q: %q, %v, want %q", want.Dir, values, err, want.HMSValues)
		}
	}
	if n != 25 || len(expect.Partitions) != n {
		t.Errorf("%d rows", n)
	}
	if got := PartitionPath([]string{"dt"}, []string{"2031-05-06 07:08"}); got != "dt=2031-05-06 07%3A08" {
		t.Error(got)
	}
}

func TestPartitionPath(t *testing.T) {
	for _, c := range []struct {
		names, values []string
		want          string
	}{
		{nil, nil, ""},
		{[]string{"Country", "dt"}, []string{"DE", ""}, "country=DE/dt=__HIVE_DEFAULT_PARTITION__"},
		{[]string{"a/b", "c=d"}, []string{"e/f", "g=h"}, "a%2Fb=e%2Ff/c%3Dd=g%3Dh"},
	} {
		got := PartitionPath(c.names, c.values)
		if got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
		names, values, err := ParsePath(got)
		if err != nil || PartitionPath(names, values) != got {
			t.Errorf("%q does not come back: %q %q %v", got, names, values, err)
		}
	}
	for _, bad := range []string{"/", "k", "k=", "=v", "k=v/", "/k=v", "k=v//l=w", "k=v/file.parquet"} {
		if names, values, err := ParsePath(bad); err == nil {
			t.Errorf("ParsePath(%q) = %q %q", bad, names, values)
		}
	}
}

// PE-05: the limit is on bytes after escaping, of each component.
func TestCheckPath(t *testing.T) {
	for _, c := range []struct {
		path string
		ok   bool
	}{
		{PartitionPath([]string{"k"}, []string{strings.Repeat("a", 253)}), true},
		{PartitionPath([]string{"k"}, []string{strings.Repeat("a", 254)}), false},
		{PartitionPath([]string{"k"}, []string{strings.Repeat("/", 84)}), true},
		{PartitionPath([]string{"k"}, []string{strings.Repeat("/", 85)}), false},
		{strings.Repeat("k=v/", 200) + "k=v", true},
		{"a=b/k=" + strings.Repeat("東", 85), false},
		{"", true},
	} {
		if err := CheckPath(c.path); (err == nil) != c.ok {
			t.Errorf("%d bytes: %v", len(c.path), err)
		}
	}
}

func TestHidden(t *testing.T) {
	for name, want := range map[string]bool{"": false, ".hivesink": true, "_SUCCESS": true, "_year=2020": true, "a_b": false, "part-1-0.parquet": false} {
		if Hidden(name) != want {
			t.Errorf("Hidden(%q) = %v", name, !want)
		}
	}
}

func FuzzUnescape(f *testing.F) {
	for _, s := range []string{"", "%", "%41", "%4", "%%41", "a%2Fb", "東%", "%ZZ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := Unescape(Escape(s)); got != s {
			t.Errorf("%q came back as %q", s, got)
		}
		if !strings.Contains(s, "%") && Unescape(s) != s {
			t.Errorf("Unescape(%q) = %q", s, Unescape(s))
		}
		Unescape(s)
	})
}

func FuzzParsePath(f *testing.F) {
	for _, s := range []string{"", "k=v", "k=v/l=w", "k=%2F", "k", "=", "k=v/", "K=v", "k==v"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		names, values, err := ParsePath(path)
		if err != nil {
			return
		}
		// L2: what hivesink writes for these values is read back as them.
		for i := range names {
			names[i] = strings.ToLower(names[i])
		}
		again, values2, err := ParsePath(PartitionPath(names, values))
		if err != nil || len(again) != len(names) || len(names) > 0 && (!reflect.DeepEqual(values2, values) || !reflect.DeepEqual(again, names)) {
			t.Errorf("%q: %q %q, then %q %q %v", path, names, values, again, values2, err)
		}
	})
}
