// Package hivetest is a Hive Metastore in the process of a test: it keeps tables
// and partitions in memory and speaks the real protocol over TCP, as far as
// hivesink uses it. It can be stopped and started, hang, refuse what a test
// likes, and ask for a password. What real servers do beyond that is for the
// integration tests.
package hivetest
