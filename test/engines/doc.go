// Package engines reads a finished table with the engines that its users have:
// Spark SQL through the Hive Metastore, DuckDB and PyArrow, and fails a test
// unless they agree in the columns, their types, the partitions, the nulls and
// every row.
package engines
