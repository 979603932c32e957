// Package kv is a small key-value store for the ledger's index: Badger on disk,
// or a map in memory for tests. What it holds can always be rebuilt.
//
// # Invariants
//
//	K1  An update is all or nothing, and durable when Update returns nil.
//	K2  Badger maps its files and dies by SIGBUS on a full disk, so nothing is
//	    opened or written with less than 64 MB free; that is an error of class
//	    Retry, and the same store works again once there is space.
//	K3  A store that cannot be opened is thrown away and begun anew; Warning
//	    says so. It is never a reason not to start.
//	K4  A directory that another process uses is left alone (class Fenced).
//
// # Crash story
//
// Die inside Update: all of it or nothing. A file cut short loses the last
// updates (Badger truncates by itself) or the whole store (K3); the ledger
// notices both, since the head it wrote last does not match the table log.
package kv
