package audit

import (
	"fmt"
	"io"
)

// Kinds of faults.
const (
	Vanished  = "vanished"   // a published file is gone
	Unknown   = "unknown"    // a file that hivesink did not write here
	Damaged   = "damaged"    // cannot be read as Parquet, or its footer contradicts itself
	Misplaced = "misplaced"  // lies in another partition or table than it was written for
	Doubled   = "doubled"    // its rows are in another file too
	Replaced  = "replaced"   // not the file that was published under this name
	RowsShort = "rows-short" // rows of a source partition are missing
	RowsOver  = "rows-over"  // rows of a source partition are there that were not accepted, or twice
	Partition = "partition"  // a partition's files differ from the log's totals
	Catalog   = "catalog"    // the metastore does not know what the log says was announced
)

// Fault is one thing that is wrong.
type Fault struct {
	Kind    string `json:"kind"`
	File    string `json:"file,omitempty"`
	Source  string `json:"source,omitempty"`
	Rows    int64  `json:"rows,omitempty"`
	Message string `json:"message"`
}

// Report is what fsck found.
type Report struct {
	Table        string `json:"table"`
	Checkpoint   uint64 `json:"checkpoint"`
	Files        int    `json:"files"`         // published, side tables included
	Rows         int64  `json:"rows"`          // published, of the table itself
	DeadRows     int64  `json:"dead_rows"`     // in the dead-letter table
	LateRows     int64  `json:"late_rows"`     // in the late table
	Accepted     int64  `json:"accepted"`      // by the log
	Sources      int    `json:"sources"`       // source partitions
	PendingParts int    `json:"pending_parts"` // durable, still hidden
	PendingRows  int64  `json:"pending_rows"`
	// Metastore: `agrees`, `differs`, or `not asked` and why; empty without one.
	Metastore string   `json:"metastore,omitempty"`
	Faults    []Fault  `json:"faults"`
	Notes     []string `json:"notes"`
}

func (r *Report) fault(kind, file, source string, rows int64, format string, args ...any) {
	r.Faults = append(r.Faults, Fault{kind, file, source, rows, fmt.Sprintf(format, args...)})
}

func (r *Report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// Print writes the report for people.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "table       %s, checkpoint %d\n", r.Table, r.Checkpoint)
	fmt.Fprintf(w, "accepted    %d rows of %d source partitions\n", r.Accepted, r.Sources)
	fmt.Fprintf(w, "published   %d rows in %d files (%d dead-letter rows, %d late rows)\n", r.Rows, r.Files, r.DeadRows, r.LateRows)
	if r.PendingParts > 0 {
		fmt.Fprintf(w, "hidden      %d rows in %d part files, durable and not yet published\n", r.PendingRows, r.PendingParts)
	}
	if r.Metastore != "" {
		fmt.Fprintf(w, "metastore   %s\n", r.Metastore)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note        %s\n", n)
	}
	for _, f := range r.Faults {
		fmt.Fprintf(w, "FAULT       %s: %s\n", f.Kind, f.Message)
	}
	if len(r.Faults) == 0 {
		fmt.Fprintln(w, "clean       every accepted row is there once")
	}
}
