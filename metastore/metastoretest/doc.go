// Package metastoretest is the conformance suite of catalogues: what the
// committer and the readers of a table may expect of any metastore.Catalog.
package metastoretest
