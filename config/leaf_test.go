package config

import (
	"testing"
	"time"
)

func TestBytes(t *testing.T) {
	for _, c := range []struct {
		text  string
		want  Bytes
		print string // "" is an error
	}{
		{"128MB", 128 << 20, "128MB"},
		{"1GB", 1 << 30, "1GB"},
		{"1024MB", 1 << 30, "1GB"},
		{"4096", 4096, "4KB"},
		{"4097", 4097, "4097B"},
		{"1.5 gb", 3 << 29, "1536MB"},
		{"16MiB", 16 << 20, "16MB"},
		{"7k", 7 << 10, "7KB"},
		{"3B", 3, "3B"},
		{"0", 0, "0"},
		{"2TB", 2 << 40, "2TB"},
		{"8388607TB", 8388607 << 40, "8388607TB"},
		{"8388608TB", 0, ""},
		{"0.1GB", 0, ""},
		{"12XB", 0, ""},
		{"-1", 0, ""},
		{"", 0, ""},
		{"MB", 0, ""},
		{"1.MB", 0, ""},
		{"1e3", 0, ""},
		{"1/2MB", 0, ""},
		{"0x10", 0, ""},
	} {
		got, err := ParseBytes(c.text)
		if (err != nil) != (c.print == "") || got != c.want || err == nil && got.String() != c.print {
			t.Errorf("ParseBytes(%q) = %d (%s), %v; want %d (%s)", c.text, got, got, err, c.want, c.print)
		}
	}
}

func TestDuration(t *testing.T) {
	for _, c := range []struct {
		text  string
		want  time.Duration
		print string // "" is an error
	}{
		{"30s", 30 * time.Second, "30s"},
		{"5m", 5 * time.Minute, "5m"},
		{"1h", time.Hour, "1h"},
		{"1h30m", 90 * time.Minute, "1h30m"},
		{"90s", 90 * time.Second, "1m30s"},
		{"1h0m5s", time.Hour + 5*time.Second, "1h0m5s"},
		{"7d", 7 * day, "7d"},
		{"36h", 36 * time.Hour, "1d12h"},
		{"1d12h", 36 * time.Hour, "1d12h"},
		{"0.5d", 12 * time.Hour, "12h"},
		{"250ms", 250 * time.Millisecond, "250ms"},
		{"0", 0, "0s"},
		{"0s", 0, "0s"},
		{"10m0.5s", 10*time.Minute + 500*time.Millisecond, "10m0.5s"},
		{"20m10s", 20*time.Minute + 10*time.Second, "20m10s"},
		{"30", 0, ""},
		{"-1s", 0, ""},
		{"1d-1h", 0, ""},
		{"1d+1h", 0, ""},
		{"d", 0, ""},
		{"1d1d", 0, ""},
		{"1000000d", 0, ""},
		{"106751d24h", 0, ""},
		{"soon", 0, ""},
		{"", 0, ""},
	} {
		got, err := ParseDuration(c.text)
		if (err != nil) != (c.print == "") || got.Std() != c.want || err == nil && got.String() != c.print {
			t.Errorf("ParseDuration(%q) = %s, %v; want %s (%s)", c.text, got, err, c.want, c.print)
		}
		if again, err := ParseDuration(got.String()); err != nil || again != got {
			t.Errorf("ParseDuration(%q) = %s, %v", got, again, err)
		}
	}
}

func TestLocation(t *testing.T) {
	for _, c := range []struct {
		text  string
		want  Location
		print string // "" is an error
	}{
		{"file:///data/web.db/clicks", Location{"file", "", "/data/web.db/clicks"}, "file:///data/web.db/clicks"},
		{"file:/data//x/", Location{"file", "", "/data/x"}, "file:///data/x"},
		{"FILE:///x", Location{"file", "", "/x"}, "file:///x"},
		{"/data/x", Location{"file", "", "/data/x"}, "file:///data/x"},
		{"./out/t", Location{"file", "", "out/t"}, "out/t"},
		{"/a b%20/c", Location{"file", "", "/a b%20/c"}, "file:///a b%20/c"},
		{"hdfs://nn:8020/w/t", Location{"hdfs", "nn:8020", "/w/t"}, "hdfs://nn:8020/w/t"},
		{"s3://bucket/w/t/", Location{"s3", "bucket", "/w/t"}, "s3://bucket/w/t"},
		{"file://data/x", Location{}, ""},
		{"hdfs:///w/t", Location{}, ""},
		{"s3://bucket", Location{}, ""},
		{"s3://bucket/", Location{}, ""},
		{"file:///", Location{}, ""},
		{"file:", Location{}, ""},
		{"http://x/y", Location{}, ""},
		{"", Location{}, ""},
	} {
		got, err := ParseLocation(c.text)
		if (err != nil) != (c.print == "") || err == nil && (got != c.want || got.String() != c.print) {
			t.Errorf("ParseLocation(%q) = %+v (%s), %v; want %+v (%s)", c.text, got, got, err, c.want, c.print)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"file_size", "rows", "rollover_interval", "policy"}
	for name, want := range map[string]string{
		"file-size": "file_size", "filesize": "file_size", "FileSize": "file_size", "row": "rows", "polciy": "policy", "rollover_intervall": "rollover_interval",
		"parallelism": "", "x": "",
	} {
		if got := nearest(name, known); got != want {
			t.Errorf("nearest(%q) = %q, want %q", name, got, want)
		}
	}
}
