package textval

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// randomNumber is a JSON number, of the kinds that have edges: short, long,
// near the limits of int64, with zeros at either end, with exponents.
func randomNumber(r *rand.Rand) string {
	digits := func(most int) string {
		b := make([]byte, 1+r.IntN(most))
		for i := range b {
			b[i] = '0'
			if r.IntN(3) > 0 {
				b[i] += byte(r.IntN(10))
			}
		}
		return string(b)
	}
	s := ""
	switch r.IntN(4) {
	case 0:
		s = strconv.FormatUint(math.MaxInt64+uint64(r.IntN(5))-2, 10)
	case 1:
		s = strings.TrimLeft(digits(45), "0")
	default:
		s = strings.TrimLeft(digits(6), "0")
	}
	if s == "" {
		s = "0"
	}
	if r.IntN(2) == 0 {
		s += "." + digits(8)
	}
	if r.IntN(3) == 0 {
		s += []string{"e", "E", "e+", "e-"}[r.IntN(4)] + strconv.Itoa(r.IntN(45))
	}
	if r.IntN(3) == 0 {
		s = "-" + s
	}
	return s
}

// T2: integers, decimals and doubles are what exact arithmetic says, and a
// number is read alike from JSON and from text.
func TestNumbersAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	accepted := make(map[string]int)
	for range 200_000 {
		s := randomNumber(r)
		n, end := scanNumber([]byte(s), 0)
		if end != len(s) {
			t.Fatalf("%s: ends at %d", s, end)
		}
		if m, ok := parseNumber([]byte(s)); !ok || m != n {
			t.Fatalf("%s: %v from text, %v from JSON", s, m, n)
		}
		exact, ok := new(big.Rat).SetString(s)
		if !ok {
			t.Fatalf("%s: big.Rat does not take it", s)
		}
		for _, width := range []uint{8, 16, 32, 64} {
			got, st := n.integer([]byte(s), width)
			limit := new(big.Int).Lsh(big.NewInt(1), width-1)
			low := new(big.Int).Neg(limit)
			fits := exact.IsInt() && exact.Num().Cmp(limit) < 0 && exact.Num().Cmp(low) >= 0
			if fits != (st == good) || fits && got != exact.Num().Int64() {
				t.Fatalf("%s in %d bits: %d, state %d, fits: %v", s, width, got, st, fits)
			}
			if st == good {
				accepted["integer"]++
			}
		}
		precision := 1 + r.IntN(38)
		scale := r.IntN(precision + 1)
		hi, lo, st := n.decimal([]byte(s), precision, scale)
		if want, fits := exactDecimal(exact, precision, scale); fits != (st == good) {
			t.Fatalf("%s as decimal(%d,%d): state %d, fits: %v", s, precision, scale, st, fits)
		} else if got := int128(hi, lo); fits && got.Cmp(want) != 0 {
			t.Fatalf("%s as decimal(%d,%d): %s, want %s", s, precision, scale, got, want)
		} else if fits {
			accepted["decimal"]++
		}
		checkFloats(t, s, n)
	}
	for _, kind := range []string{"integer", "decimal"} {
		if accepted[kind] < 10_000 {
			t.Errorf("only %d values of type %s were accepted: this tests little", accepted[kind], kind)
		}
	}
}

func checkFloats(t *testing.T, s string, n number) {
	t.Helper()
	want, err := strconv.ParseFloat(s, 64)
	got, st := n.double([]byte(s))
	if (err == nil) != (st == good) || err == nil && math.Float64bits(got) != math.Float64bits(want) {
		t.Fatalf("%s as double: %v, state %d, want %v", s, got, st, want)
	}
	want, err = strconv.ParseFloat(s, 32)
	got, st = n.float([]byte(s))
	if (err == nil) != (st == good) || err == nil && math.Float32bits(float32(got)) != math.Float32bits(float32(want)) {
		t.Fatalf("%s as float: %v, state %d, want %v", s, got, st, want)
	}
}

// exactDecimal is the unscaled value, when it is whole and short enough.
func exactDecimal(v *big.Rat, precision, scale int) (*big.Int, bool) {
	ten := func(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }
	scaled := new(big.Rat).Mul(v, new(big.Rat).SetInt(ten(scale)))
	return scaled.Num(), scaled.IsInt() && new(big.Int).Abs(scaled.Num()).Cmp(ten(precision)) < 0
}

func int128(hi int64, lo uint64) *big.Int {
	v := new(big.Int).Lsh(big.NewInt(hi), 64)
	return v.Or(v, new(big.Int).SetUint64(lo))
}

// T2: numbers since 1970 in every unit, cut down to the microsecond.
func TestEpochsAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	good1, million := 0, new(big.Rat).SetInt64(1_000_000)
	for range 100_000 {
		s := randomNumber(r)
		for _, digits := range []int{0, 3, 6, 9} {
			n, _ := scanNumber([]byte(s), 0)
			got, st := n.epoch([]byte(s), digits)
			v, _ := new(big.Rat).SetString(s)
			v.Mul(v, million)
			v.Quo(v, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil)))
			micros := new(big.Int).Div(v.Num(), v.Denom()) // Euclidean: down, as the denominator is positive
			fits := micros.IsInt64() && micros.Int64() >= minMicros && micros.Int64() <= maxMicros
			if fits != (st == good) || fits && got != micros.Int64() {
				t.Fatalf("%s with %d digits: %d, state %d, want %s", s, digits, got, st, micros)
			}
			if fits {
				good1++
			}
		}
	}
	if good1 < 50_000 {
		t.Errorf("only %d times were accepted: this tests little", good1)
	}
}

// Every day of the years 1 to 9999 against the standard library.
func TestDays(t *testing.T) {
	count := 0
	for at := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() <= 9999; at = at.AddDate(0, 0, 1) {
		text := at.AppendFormat(nil, time.DateOnly)
		d, st := parseDate(text)
		if st != good || d.days()*86400 != at.Unix() {
			t.Fatalf("%s: day %d, state %d", text, d.days(), st)
		}
		count++
	}
	if count != 3652059 {
		t.Errorf("%d days", count)
	}
	for year := 1; year <= 9999; year++ { // and no day that is none
		for month, length := range [...]int{1: 31, 2: 29, 3: 31, 4: 30, 5: 31, 6: 30, 7: 31, 8: 31, 9: 30, 10: 31, 11: 30, 12: 31} {
			if month == 2 && (year%4 != 0 || year%100 == 0 && year%400 != 0) {
				length = 28
			}
			if text := fmt.Appendf(nil, "%04d-%02d-%02d", year, month, length+1); month > 0 {
				if _, st := parseDate(text); st != badRange {
					t.Fatalf("%s: state %d", text, st)
				}
			}
		}
	}
}

// Times with an offset against the standard library, before and after 1970.
func TestTimestampsAgreeWithTime(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	layouts := []string{time.RFC3339, "2006-01-02T15:04:05.000Z07:00", "2006-01-02 15:04:05.000000Z07:00", time.RFC3339Nano}
	for range 200_000 {
		zone := time.FixedZone("", (r.IntN(2*18*60)-18*60)*60)
		at := time.Unix(-62135500000+r.Int64N(253402200000+62135500000), r.Int64N(1e9)).In(zone)
		layout := layouts[r.IntN(len(layouts))]
		text := at.AppendFormat(nil, layout)
		want, err := time.Parse(layout, string(text))
		if err != nil {
			t.Fatal(err)
		}
		got, st := parseTimestamp(text, time.UTC)
		if st != good || got != want.UnixMicro() {
			t.Fatalf("%s: %d, state %d, want %d", text, got, st, want.UnixMicro())
		}
	}
}

// Local times of every zone kind: an instant comes back from its local time,
// and of two instants with one local time it is the first.
func TestLocalTimes(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Africa/Casablanca"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		first := make(map[string]int64)
		twice := 0
		for at := time.Date(2026, 1, 1, 0, 0, 0, 250_000_000, time.UTC); at.Year() == 2026; at = at.Add(10 * time.Minute) {
			text := at.In(zone).Format("2006-01-02T15:04:05.000")
			want, again := first[text]
			if !again {
				want = at.UnixMicro()
				first[text] = want
			} else {
				twice++
			}
			if got, st := parseTimestamp([]byte(text), zone); st != good || got != want {
				t.Fatalf("%s %s: %d, state %d, want %d", name, text, got, st, want)
			}
		}
		if name != "Asia/Kolkata" && twice == 0 {
			t.Errorf("%s: no local time came twice", name)
		}
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"2026-01-31":          "2026-01-30T23:00:00Z",
		"2026-03-29T02:30:00": "2026-03-29T01:30:00Z", // skipped: 03:30 summer time
		"2026-10-25T02:30:00": "2026-10-25T00:30:00Z", // twice: the first
	} {
		got, st := parseTimestamp([]byte(text), berlin)
		if shown := time.UnixMicro(got).UTC().Format(time.RFC3339); st != good || shown != want {
			t.Errorf("%s: %s, state %d, want %s", text, shown, st, want)
		}
	}
}

// What is no time, and what is a time that does not exist.
func TestBadTimestamps(t *testing.T) {
	for text, want := range map[string]state{
		"": badType, "2026": badType, "2026-1-01": badType, "2026-01-01T": badType, "2026-01-01T00:00": badType,
		"2026-01-01T00:00:00.": badType, "2026-01-01T00:00:00.Z": badType, "2026-01-01T00:00:00+0100": badType,
		"2026-01-01T00:00:00+01": badType, "2026-01-01T00:00:00 Z": badType, "2026-01-01_00:00:00": badType,
		"2026-01-01T00:00:00,5Z": badType, " 2026-01-01": badType, "20260101T000000Z": badType, "2026-0x-01": badType,
		"2026-01-01T00:00:0xZ": badType, "2026-01-01T00:00:00Zz": badType, "2026-01-01T00:00:00+0x:00": badType,
		"0000-01-01T00:00:00Z": badRange, "2026-13-01T00:00:00Z": badRange, "2026-00-01": badRange, "2026-04-31": badRange,
		"2026-01-01T24:00:00Z": badRange, "2026-01-01T00:60:00Z": badRange, "2026-06-30T23:59:60Z": badRange,
		"2026-01-01T00:00:00+24:00": badRange, "2026-01-01T00:00:00+00:60": badRange,
		"0001-01-01T00:00:00+00:01": badRange, "9999-12-31T23:59:59.9999999-00:01": badRange,
		"0001-01-01T00:00:00Z": good, "9999-12-31T23:59:59.999999999Z": good, "2026-01-01t00:00:00z": good,
		"2026-01-01T00:00:00.1234567890123456789012Z": good, "2026-01-01T00:00:00-23:59": good,
	} {
		if _, st := parseTimestamp([]byte(text), time.UTC); st != want {
			t.Errorf("%q: state %d, want %d", text, st, want)
		}
	}
}

// T5: whatever the bytes, what comes out is UTF-8, and good UTF-8 is kept.
func TestValidText(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 100_000 {
		b := make([]byte, r.IntN(12))
		for i := range b {
			b[i] = []byte{'a', 0, 0x7f, 0x80, 0xbf, 0xc3, 0xa4, 0xe2, 0x82, 0xac, 0xed, 0xa0, 0xf0, 0x9f, 0xff}[r.IntN(15)]
		}
		got := appendValid(nil, b)
		want := string([]rune(string(b))) // U+FFFD for each bad byte, as the language has it
		if !utf8.Valid(got) || string(got) != want {
			t.Fatalf("%x: %x, want %x", b, got, want)
		}
	}
}

// The eight-byte scan finds the first byte that is not plain, and only that.
func TestSpecial8(t *testing.T) {
	for c := range 256 {
		for at := range 8 {
			x := uint64(0x6161616161616161)
			for i := at; i < 8; i++ { // what is above the first must not matter
				x = x&^(0xff<<(8*i)) | uint64(c)<<(8*i)
			}
			plain := c >= 0x20 && c < 0x80 && c != '"' && c != '\\'
			m := special8(x)
			if plain != (m == 0) || !plain && m&-m != 0x80<<(8*at) {
				t.Fatalf("byte %#x at %d: mask %#x", c, at, m)
			}
		}
	}
}

// A value in an error is short, printable and one line.
func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"":                               `""`,
		"a\n\x00\x7f\xff":                `"a\n\x00\x7f\xff"`,
		strings.Repeat("x", 64):          `"` + strings.Repeat("x", 64) + `"`,
		strings.Repeat("x", 65):          `"` + strings.Repeat("x", 64) + `"…`,
		strings.Repeat("x", 63) + "€uro": `"` + strings.Repeat("x", 63) + `"…`,
		"\u2028\u202e":                   `"\u2028\u202e"`,
	} {
		if got := Quote([]byte(in)); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}
