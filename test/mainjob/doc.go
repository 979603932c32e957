// Package mainjob runs the program itself, a datagen pipeline, on any storage,
// and does to it what happens to processes: kill -9 with the state directory
// kept, lost or old; a stop of one owner, its take-over by another, and its
// waking up; faults of the servers while it works. A reader looks at the table
// all the while. In the end every row must be there once.
//
// The suites of test/hdfs and test/s3 say where the table lies and what breaks.
package mainjob
