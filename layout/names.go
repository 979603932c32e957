package layout

import (
	"fmt"
	"strconv"
	"strings"
)

// Directories and fixed names below a table's root.
const (
	MetaDir    = ".hivesink" // everything that is not data
	LogDir     = "log"       // in MetaDir: the table log
	HistoryDir = "history"   // in MetaDir: older records, many to a file
	LockFile   = "lock"      // in MetaDir, on local file systems: the owner's lock

	// CompactDir is where compaction at rest works in a table without MetaDir.
	// It is there only meanwhile.
	CompactDir = ".hivesink-compact"
	// CompactMarker, in a directory that compaction at rest has made, says by
	// which unit.
	CompactMarker = ".hivesink-compact-unit"
)

// PartExt is how every data file's name ends.
const PartExt = ".parquet"

const (
	stagedPartExt   = ".part"
	stagedBundleExt = ".bundle"
	stagedTargetExt = ".target"
	uploadsExt      = ".uploads"
	snapshotExt     = ".snapshot"
	unitExt         = ".unit"
	historyExt      = ".records"
)

// PartFile is the name of a published data file: who wrote it, and 64 random
// bits drawn when it was planned.
func PartFile(epoch, bits uint64) string {
	return fmt.Sprintf("part-%d-%016x%s", epoch, bits, PartExt)
}

// ParsePartFile takes a PartFile name apart (L3).
func ParsePartFile(name string) (epoch, bits uint64, ok bool) {
	rest, ok := strings.CutPrefix(name, "part-")
	if !ok {
		return 0, 0, false
	}
	rest, ok = strings.CutSuffix(rest, PartExt)
	if !ok {
		return 0, 0, false
	}
	e, hex, ok := strings.Cut(rest, "-")
	if !ok {
		return 0, 0, false
	}
	epoch, err1 := strconv.ParseUint(e, 10, 64)
	bits, err2 := strconv.ParseUint(hex, 16, 64)
	if err1 != nil || err2 != nil || PartFile(epoch, bits) != name {
		return 0, 0, false
	}
	return epoch, bits, true
}

// ID is 64 random bits as a part or unit id: 16 hex digits.
func ID(bits uint64) string { return fmt.Sprintf("%016x", bits) }

// StagedPart is the name of a hidden part file, by its leaf id.
func StagedPart(id string) string { return id + stagedPartExt }

// ParseStagedPart is the leaf id in a StagedPart name.
func ParseStagedPart(name string) (id string, ok bool) {
	id, ok = strings.CutSuffix(name, stagedPartExt)
	return id, ok && id != ""
}

// StagedBundle is the name of a hidden file that holds many parts, by its id.
func StagedBundle(id string) string { return id + stagedBundleExt }

// ParseStagedBundle is the id in a StagedBundle name.
func ParseStagedBundle(name string) (id string, ok bool) {
	id, ok = strings.CutSuffix(name, stagedBundleExt)
	return id, ok && id != ""
}

// UploadsNote is the name of a note of uploads that are about to begin, by its
// id.
func UploadsNote(id string) string { return id + uploadsExt }

// ParseUploadsNote is the id in an UploadsNote name.
func ParseUploadsNote(name string) (id string, ok bool) {
	id, ok = strings.CutSuffix(name, uploadsExt)
	return id, ok && id != ""
}

// StagedTarget is the name under which attempt number attempt writes the
// target of a unit, before it is renamed to its final name.
func StagedTarget(unit string, attempt int) string {
	return unit + "-" + strconv.Itoa(attempt) + stagedTargetExt
}

// ParseStagedTarget takes a StagedTarget name apart.
func ParseStagedTarget(name string) (unit string, attempt int, ok bool) {
	rest, ok := strings.CutSuffix(name, stagedTargetExt)
	if !ok {
		return "", 0, false
	}
	i := strings.LastIndexByte(rest, '-')
	if i <= 0 {
		return "", 0, false
	}
	attempt, err := strconv.Atoi(rest[i+1:])
	if err != nil || attempt < 0 || StagedTarget(rest[:i], attempt) != name {
		return "", 0, false
	}
	return rest[:i], attempt, true
}

// UnitFile is the name of the description of a compaction at rest, beside the
// unit's directory.
func UnitFile(id string) string { return id + unitExt }

// ParseUnitFile is the unit in a UnitFile name.
func ParseUnitFile(name string) (id string, ok bool) {
	id, ok = strings.CutSuffix(name, unitExt)
	return id, ok && id != ""
}

// LogFile is the name of a log record: its sequence number with 12 digits, so
// that names sort as numbers do.
func LogFile(seq uint64) string { return fmt.Sprintf("%012d", seq) }

// ParseLogFile is the sequence number of a LogFile name.
func ParseLogFile(name string) (seq uint64, ok bool) {
	seq, err := strconv.ParseUint(name, 10, 64)
	return seq, err == nil && LogFile(seq) == name
}

// SnapshotFile is the name of the snapshot up to and including seq.
func SnapshotFile(seq uint64) string { return LogFile(seq) + snapshotExt }

// ParseSnapshotFile is the sequence number of a SnapshotFile name.
func ParseSnapshotFile(name string) (seq uint64, ok bool) {
	name, ok = strings.CutSuffix(name, snapshotExt)
	if !ok {
		return 0, false
	}
	return ParseLogFile(name)
}

// HistoryFile is the name of a file that holds the records from first to last.
func HistoryFile(first, last uint64) string {
	return LogFile(first) + "-" + LogFile(last) + historyExt
}

// ParseHistoryFile takes a HistoryFile name apart.
func ParseHistoryFile(name string) (first, last uint64, ok bool) {
	name, ok = strings.CutSuffix(name, historyExt)
	if !ok {
		return 0, 0, false
	}
	a, b, _ := strings.Cut(name, "-")
	first, ok1 := ParseLogFile(a)
	last, ok2 := ParseLogFile(b)
	return first, last, ok1 && ok2 && first <= last
}

// EpochDir is the directory, in MetaDir, of the owner of epoch n.
func EpochDir(n uint64) string { return "epoch-" + strconv.FormatUint(n, 10) }

// ParseEpochDir is the epoch of an EpochDir name.
func ParseEpochDir(name string) (n uint64, ok bool) {
	rest, ok := strings.CutPrefix(name, "epoch-")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(rest, 10, 64)
	return n, err == nil && EpochDir(n) == name
}

// FencedDir is what EpochDir(n) is renamed to once epoch n is over.
func FencedDir(n uint64) string { return "fenced-" + strconv.FormatUint(n, 10) }

// FencedDirAgain is what to use when FencedDir(n) is taken: suffix counts
// from 1.
func FencedDirAgain(n uint64, suffix int) string {
	return FencedDir(n) + "-" + strconv.Itoa(suffix)
}

// ParseFencedDir is the epoch of a FencedDir or FencedDirAgain name.
func ParseFencedDir(name string) (n uint64, ok bool) {
	rest, ok := strings.CutPrefix(name, "fenced-")
	if !ok {
		return 0, false
	}
	number, suffix, again := strings.Cut(rest, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0, false
	}
	if !again {
		return n, FencedDir(n) == name
	}
	s, err := strconv.Atoi(suffix)
	return n, err == nil && s > 0 && FencedDirAgain(n, s) == name
}
