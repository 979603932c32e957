// Package storagetest states the rules of storage.FS as tests. Every backend
// runs them; one that cannot pass cannot hold a table.
//
// The rules cite the invariants of package storage (S1 …). They cannot show
// what a power cut leaves behind; memfs is for that.
package storagetest
