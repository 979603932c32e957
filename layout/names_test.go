package layout

import (
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		PartFile(7, 0xabc):         "part-7-0000000000000abc.parquet",
		StagedPart("00ff"):         "00ff.part",
		StagedBundle("00ff"):       "00ff.bundle",
		StagedTarget("00ff", 3):    "00ff-3.target",
		LogFile(42):                "000000000042",
		SnapshotFile(40):           "000000000040.snapshot",
		EpochDir(7):                "epoch-7",
		FencedDir(5):               "fenced-5",
		FencedDirAgain(5, 2):       "fenced-5-2",
		LogFile(1_000_000_000_000): "1000000000000",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	// L4.
	for _, name := range []string{StagedPart("a"), StagedTarget("a", 0), LogFile(1), SnapshotFile(1), EpochDir(1), FencedDir(1), LogDir, LockFile, MetaDir} {
		if strings.HasSuffix(name, PartExt) {
			t.Errorf("%q looks like a data file", name)
		}
	}
	if !Hidden(MetaDir) {
		t.Errorf("%s is not hidden", MetaDir)
	}
}

// again parses a name and writes it again; "" when it is refused.
func again(kind, name string) string {
	switch kind {
	case "part":
		if e, b, ok := ParsePartFile(name); ok {
			return PartFile(e, b)
		}
	case "staged-part":
		if id, ok := ParseStagedPart(name); ok {
			return StagedPart(id)
		}
	case "staged-bundle":
		if id, ok := ParseStagedBundle(name); ok {
			return StagedBundle(id)
		}
	case "staged-target":
		if u, n, ok := ParseStagedTarget(name); ok {
			return StagedTarget(u, n)
		}
	case "log":
		if n, ok := ParseLogFile(name); ok {
			return LogFile(n)
		}
	case "snapshot":
		if n, ok := ParseSnapshotFile(name); ok {
			return SnapshotFile(n)
		}
	case "epoch":
		if n, ok := ParseEpochDir(name); ok {
			return EpochDir(n)
		}
	}
	return ""
}

// L3.
func TestParsersAreStrict(t *testing.T) {
	for kind, c := range map[string]struct{ good, bad []string }{
		"part": {[]string{"part-7-0000000000000abc.parquet", "part-0-ffffffffffffffff.parquet", "part-18446744073709551615-0000000000000000.parquet"},
			[]string{"", "part-7-abc.parquet", "part-07-0000000000000abc.parquet", "part-7-0000000000000ABC.parquet", "part-7-0000000000000abc.parquet.tmp",
				"part-7.parquet", "part--1-0000000000000abc.parquet", "part-+7-0000000000000abc.parquet", "part-7-0000000000000abc", "part-18446744073709551616-0000000000000000.parquet"}},
		"staged-part":   {[]string{"00ff.part"}, []string{"", ".part", "00ff", "00ff.parquet"}},
		"staged-bundle": {[]string{"00ff.bundle"}, []string{"", ".bundle", "00ff", "00ff.part"}},
		"staged-target": {[]string{"00ff-0.target", "00ff-12.target", "a-b-1.target"}, []string{"", "00ff.target", "-1.target", "00ff-01.target", "00ff-+1.target", "00ff--1.target-", "00ff-1.part"}},
		"log":           {[]string{"000000000042", "1000000000000"}, []string{"", "42", "+00000000042", "0000000000042", "000000000042.snapshot", "00000000004x"}},
		"snapshot":      {[]string{"000000000040.snapshot"}, []string{"", "000000000040", "40.snapshot", ".snapshot"}},
		"epoch":         {[]string{"epoch-7", "epoch-0"}, []string{"", "epoch-", "epoch-07", "epoch-+7", "epoch--7", "epoch-7-1", "fenced-7"}},
	} {
		for _, name := range c.good {
			if got := again(kind, name); got != name {
				t.Errorf("%s: %q came back as %q", kind, name, got)
			}
		}
		for _, name := range c.bad {
			if got := again(kind, name); got != "" {
				t.Errorf("%s: %q was taken for %q", kind, name, got)
			}
		}
	}
	for name, want := range map[string]int{"fenced-5": 5, "fenced-5-1": 5, "fenced-5-12": 5, "fenced-5-0": -1, "fenced-5-01": -1, "fenced-": -1,
		"fenced-5-": -1, "fenced-05": -1, "fenced-5-1-1": -1, "epoch-5": -1, "fenced--5": -1} {
		if n, ok := ParseFencedDir(name); ok != (want >= 0) || ok && n != uint64(want) {
			t.Errorf("ParseFencedDir(%q) = %d, %v, want %d", name, n, ok, want)
		}
	}
}

// L3, on anything.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"part-7-0000000000000abc.parquet", "000000000042", "000000000040.snapshot", "epoch-7", "a-1.target", "a.part", "fenced-5-2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, kind := range []string{"part", "staged-part", "staged-bundle", "staged-target", "log", "snapshot", "epoch"} {
			if got := again(kind, name); got != "" && got != name {
				t.Errorf("%s: %q came back as %q", kind, name, got)
			}
		}
	})
}
