package ledger

// Announcement asks the policies to announce one partition. It is the value
// that the committer and the catalogues exchange; once done it becomes an
// Announced fact. A repeated announcement has the same partition and number.
type Announcement struct {
	Table     string
	Partition string   // path, "" when the table has no partition columns
	Values    []string // of the partition columns, unescaped
	Number    int64    // 1 for the first announcement, 0 with Register
	// Register: only the catalogue is to learn of the partition; its data is
	// not complete yet.
	Register bool
	Cut      uint64 // every file of checkpoints <= Cut is published; 0 with Register
	// Totals of what is published now, absolute. They may include files of
	// checkpoints after Cut.
	Files int64
	Rows  int64
	Bytes int64
}

// Fact is the fact that a was done at now (wall clock, microseconds).
func (a *Announcement) Fact(now int64) Announced {
	return Announced{Table: a.Table, Partition: a.Partition, Number: a.Number, Register: a.Register, Cut: a.Cut,
		Files: a.Files, Rows: a.Rows, Bytes: a.Bytes, Time: now}
}
