package rolling

import "time"

// Policy is when part files are closed. A limit of zero or less is off.
type Policy struct {
	Bytes      int64         // close a file that is larger (O1: strictly)
	Rows       int64         // close a file that has as many rows, or more
	Age        time.Duration // since it was opened
	Inactivity time.Duration // since the last row was written to it
}

// File is what the writer counts of an open part file.
type File struct {
	Bytes     int64
	Rows      int64
	Opened    int64 // microseconds, of any clock that Due and Next share
	LastWrite int64 // microseconds
}

// Reasons for closing a part file.
const (
	ReasonBytes      = "file_size"
	ReasonRows       = "rows"
	ReasonAge        = "rollover_interval"
	ReasonInactivity = "inactivity_interval"
)

// Due says whether a file must be closed at the time now (microseconds), and
// which limit it has passed.
func (p Policy) Due(f File, now int64) (reason string, ok bool) {
	switch {
	case f.Rows <= 0: // O2
		return "", false
	case p.Bytes > 0 && f.Bytes > p.Bytes:
		return ReasonBytes, true
	case p.Rows > 0 && f.Rows >= p.Rows:
		return ReasonRows, true
	case reached(p.Age, f.Opened, now):
		return ReasonAge, true
	case reached(p.Inactivity, f.LastWrite, now):
		return ReasonInactivity, true
	}
	return "", false
}

// Next is the time (microseconds) at which a file becomes due by age or
// inactivity if nothing more is written to it; 0: never.
func (p Policy) Next(f File) int64 {
	if f.Rows <= 0 {
		return 0
	}
	next := int64(0)
	if limit := micros(p.Age); limit > 0 {
		next = f.Opened + limit
	}
	if limit := micros(p.Inactivity); limit > 0 && (next == 0 || f.LastWrite+limit < next) {
		next = f.LastWrite + limit
	}
	return next
}

func reached(limit time.Duration, since, now int64) bool {
	l := micros(limit)
	return l > 0 && now-since >= l
}

// micros rounds up, so that a limit below a microsecond is not off.
func micros(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return (int64(d) + 999) / 1000
}
