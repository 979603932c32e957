package maintenance

import (
	"sync/atomic"

	"github.com/hivesink/hivesink/format/parquet"
)

// What became of a partition.
const (
	Compacted = "compacted"  // or, in a dry run, would be
	AsItWas   = "nothing"    // there is nothing to do
	LeftAlone = "left-alone" // something speaks against it
	Failed    = "failed"     // damaged, unreadable, or an error on the way
	NotDone   = "not-done"   // the command was stopped before
)

// Partition is what is planned for one partition, or became of it.
type Partition struct {
	Path    string `json:"partition"`
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
	// Of the data files; Bytes and Rows as they were, or are to be.
	FilesBefore int64    `json:"files_before"`
	BytesBefore int64    `json:"bytes_before"`
	FilesAfter  int64    `json:"files_after"`
	BytesAfter  int64    `json:"bytes_after"` // in a dry run, not known of what is merged
	Rows        int64    `json:"rows"`
	Kept        int64    `json:"files_kept"` // taken as they are
	Targets     []Target `json:"targets,omitempty"`
	Window      bool     `json:"window,omitempty"` // not exchanged in one step, or left alone because it cannot be
	Seconds     float64  `json:"seconds,omitempty"`
}

// Target is one new file.
type Target struct {
	Inputs   int    `json:"inputs"`
	Rows     int64  `json:"rows"`
	BytesIn  int64  `json:"bytes_in"`
	BytesOut int64  `json:"bytes_out,omitempty"`
	Mode     string `json:"mode"`
	Why      string `json:"why"`
	File     string `json:"file,omitempty"`
}

// Modes of a target.
const (
	ModeCopy    = parquetfile.ModeCopy  // column chunks byte for byte
	ModeMerge   = parquetfile.ModeMerge // small row groups joined, values not decoded
	ModeRewrite = "rewrite"             // decoded and encoded
)

// Report is what Run did, or in a dry run would do.
type Report struct {
	Table       string         `json:"table"`
	DryRun      bool           `json:"dry_run"`
	Stopped     bool           `json:"stopped"`
	Settled     int            `json:"settled"` // units of former processes, finished or undone
	Compacted   int            `json:"partitions_compacted"`
	AsItWas     int            `json:"partitions_as_they_were"`
	LeftAlone   int            `json:"partitions_left_alone"`
	Failed      int            `json:"partitions_failed"`
	NeedWindow  int            `json:"partitions_need_window"` // left alone for want of AllowWindow
	FilesBefore int64          `json:"files_before"`
	FilesAfter  int64          `json:"files_after"`
	BytesBefore int64          `json:"bytes_before"`
	BytesAfter  int64          `json:"bytes_after"`
	Rows        int64          `json:"rows"`
	Modes       map[string]int `json:"targets_by_mode"`
	Partitions  []Partition    `json:"partitions"`
}

func (r *Report) add(p Partition) {
	switch p.Outcome {
	case Compacted:
		r.Compacted++
	case AsItWas:
		r.AsItWas++
	case LeftAlone:
		r.LeftAlone++
		if p.Window {
			r.NeedWindow++
		}
	case Failed:
		r.Failed++
	}
	r.FilesBefore += p.FilesBefore
	r.BytesBefore += p.BytesBefore
	r.FilesAfter += p.FilesAfter
	r.BytesAfter += p.BytesAfter
	r.Rows += p.Rows
	for _, t := range p.Targets {
		if p.Outcome == Compacted {
			r.Modes[t.Mode]++
		}
	}
	r.Partitions = append(r.Partitions, p)
}

// Stats say how a run goes, for whoever shows it.
type Stats struct {
	Partitions atomic.Int64 // found
	Done       atomic.Int64
	Files      atomic.Int64 // inputs that became part of a target
	BytesRead  atomic.Int64
	Rows       atomic.Int64 // written
}
