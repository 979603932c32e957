package storage

// Limits are those of the names of an FS.
type Limits struct {
	Bytes int // of a whole name
	// XML: names are listed in XML 1.0, which has no U+FFFE and U+FFFF.
	XML bool
}

// Limited is an FS that knows its limits. What is over them it refuses late, when
// the rows of a file are durable already, so that who makes names up from data asks.
type Limited interface{ Limits() Limits }
