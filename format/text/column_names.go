package textval

// Column finds the column that a name in a header means, -1 when none does.
// exact: it is spelled as the column is, and so wins over another spelling.
func (r *Rows) Column(name string) (column int, exact bool) {
	field, rank := r.root.names.resolve([]byte(name))
	return int(field), rank == rankExact
}
