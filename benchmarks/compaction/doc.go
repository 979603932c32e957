// Command compaction measures what making few files of many costs: copying
// column chunks, merging row groups without decoding values, and rewriting,
// beside a plain copy of the same bytes, parquet-go's rows, and DuckDB.
//
//	go run ./benchmarks/compaction [-short] [-scenario REGEXP] [-rounds N] [-check]
//
// Each measurement is a child process of its own (of this binary, or Python for
// DuckDB), so that CPU and peak memory are its own. What is timed is the work:
// opening the inputs, making the outputs, syncing them; not the start of the
// process, which is shown apart. Rounds are interleaved, medians are kept.
//
// After the last round DuckDB counts what came out: rows, a checksum of every
// column and the order of the rows must be those of the inputs, and it times
// scans of the output beside those of a fresh encode.
package main
