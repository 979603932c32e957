package main

// Who writes the small files.
const (
	byParts   = "hivesink parts" // hidden parts: plain pages, no codec
	byTable   = "hivesink"       // files as a table has them
	byPyArrow = "PyArrow"
	byDuckDB  = "DuckDB"
)

// scenario is a set of small files and what is to be made of them.
type scenario struct {
	Name      string `json:"name"`
	Why       string `json:"why"`
	Shape     string `json:"shape"`
	Writer    string `json:"writer"`
	Files     int    `json:"files"`
	Groups    int    `json:"row_groups_per_file"`
	GroupRows int    `json:"rows_per_row_group"`
	Targets   int    `json:"targets"`
	From      string `json:"codec_in"`
	To        string `json:"codec_out"`

	class   string // whose target of merge holds: see targets.go
	command bool   // the target of the whole command holds
	growth  bool   // peak memory is compared with that of a quarter of the inputs
}

// Classes of targets.
const (
	mergeSixfold = "sixfold" // row groups of 50,000, or few different values
	mergeSmall   = "small"   // files of 5,000 rows, three columns nearly distinct
)

// scenarios are not the product of all dimensions: each value is covered at
// least once, and each scenario runs in a few seconds.
var scenarios = []scenario{
	{Name: "parts", Why: "what the compactor sees: hidden parts of a checkpoint each", Shape: "clicks",
		Writer: byParts, Files: 200, Groups: 1, GroupRows: 5000, Targets: 4, From: "none", To: "zstd"},
	{Name: "parts-low", Why: "hidden parts of few different values", Shape: "low",
		Writer: byParts, Files: 200, Groups: 1, GroupRows: 5000, Targets: 4, From: "none", To: "zstd"},
	{Name: "small", Why: "a table at rest, files of 5,000 rows", Shape: "clicks",
		Writer: byTable, Files: 200, Groups: 1, GroupRows: 5000, Targets: 4, From: "zstd", To: "zstd", class: mergeSmall},
	{Name: "medium", Why: "row groups of 50,000 rows", Shape: "clicks",
		Writer: byTable, Files: 24, Groups: 1, GroupRows: 50_000, Targets: 2, From: "zstd", To: "zstd", class: mergeSixfold},
	{Name: "low", Why: "few different values in every column but one", Shape: "low",
		Writer: byTable, Files: 300, Groups: 1, GroupRows: 5000, Targets: 4, From: "zstd", To: "zstd", class: mergeSixfold},
	{Name: "high", Why: "no value twice", Shape: "high",
		Writer: byTable, Files: 200, Groups: 1, GroupRows: 5000, Targets: 4, From: "zstd", To: "zstd"},
	{Name: "pyarrow", Why: "a thousand PyArrow files in ten partitions: dictionaries in every column", Shape: "clicks",
		Writer: byPyArrow, Files: 1000, Groups: 1, GroupRows: 5000, Targets: 10, From: "snappy", To: "snappy", class: mergeSmall, command: true},
	{Name: "pyarrow-medium", Why: "PyArrow, row groups of 50,000 rows", Shape: "clicks",
		Writer: byPyArrow, Files: 24, Groups: 1, GroupRows: 50_000, Targets: 2, From: "snappy", To: "snappy", class: mergeSixfold},
	{Name: "pyarrow-low", Why: "PyArrow, few different values", Shape: "low",
		Writer: byPyArrow, Files: 300, Groups: 1, GroupRows: 5000, Targets: 4, From: "snappy", To: "snappy", class: mergeSixfold},
	{Name: "pyarrow-recode", Why: "PyArrow, the codec changes", Shape: "clicks",
		Writer: byPyArrow, Files: 200, Groups: 1, GroupRows: 5000, Targets: 4, From: "snappy", To: "zstd"},
	{Name: "pyarrow-large", Why: "row groups of 8 MB and more: nothing to join", Shape: "clicks",
		Writer: byPyArrow, Files: 16, Groups: 1, GroupRows: 250_000, Targets: 2, From: "snappy", To: "snappy", growth: true},
	{Name: "duckdb", Why: "DuckDB, row groups of a few thousand rows", Shape: "clicks",
		Writer: byDuckDB, Files: 50, Groups: 4, GroupRows: 5000, Targets: 4, From: "snappy", To: "snappy", class: mergeSmall},
	{Name: "duckdb-large", Why: "DuckDB, row groups of its usual size", Shape: "clicks",
		Writer: byDuckDB, Files: 12, Groups: 1, GroupRows: 122_880, Targets: 2, From: "zstd", To: "zstd"},
	{Name: "wide", Why: "a hundred columns, hidden parts", Shape: "wide",
		Writer: byParts, Files: 40, Groups: 1, GroupRows: 2500, Targets: 1, From: "none", To: "zstd"},
	{Name: "wide-pyarrow", Why: "a hundred columns, PyArrow", Shape: "wide",
		Writer: byPyArrow, Files: 8, Groups: 1, GroupRows: 12_500, Targets: 1, From: "snappy", To: "snappy"},
	{Name: "nested", Why: "lists, structs and maps", Shape: "nested",
		Writer: byTable, Files: 100, Groups: 1, GroupRows: 5000, Targets: 4, From: "zstd", To: "zstd"},
	{Name: "nested-pyarrow", Why: "lists, structs and maps of PyArrow", Shape: "nested",
		Writer: byPyArrow, Files: 100, Groups: 1, GroupRows: 5000, Targets: 4, From: "snappy", To: "snappy"},
	{Name: "tiny-groups", Why: "row groups of 8 KB, fifty in a file", Shape: "narrow",
		Writer: byPyArrow, Files: 100, Groups: 50, GroupRows: 400, Targets: 4, From: "snappy", To: "snappy"},
	{Name: "ten-thousand", Why: "ten thousand files of 8 KB into one", Shape: "narrow",
		Writer: byTable, Files: 10_000, Groups: 1, GroupRows: 1000, Targets: 1, From: "zstd", To: "zstd", growth: true},
}

// rows is the number of all rows.
func (s scenario) rows() int { return s.Files * s.Groups * s.GroupRows }

// scaled is the scenario of a quick pass: an eighth of the files.
func (s scenario) scaled() scenario {
	s.Files = max(s.Files/8, s.Targets, 4)
	return s
}
