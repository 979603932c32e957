package config_test

import (
	"fmt"

	"github.com/hivesink/hivesink/config"
)

// Everything that is wrong is said at once, each with its place and a remedy.
func ExampleParse() {
	_, err := config.Parse("sink.yaml", []byte(`
pipeline: clicks
table:
  name: clicks
  location: /data/clicks
  columns:
    - id bigint
    - ts timestamp
  partitioned_by:
    - dt: date(tss)
rolling: {filesize: 128MB}
`), []string{"history=1 week"})
	fmt.Println(err)
	// Output:
	// sink.yaml:10:7: table.partitioned_by[0]: "tss" is not a column of the table (did you mean ts?)
	// sink.yaml:11:11: rolling.filesize: is not an option (did you mean rolling.file_size?)
	// --set history=1 week: history: "1 week" is not a duration (a duration such as 30s, 5m, 1h30m, 7d)
}

// A library user may start from the defaults and fill the struct.
func ExampleDefault() {
	cfg := config.Default()
	cfg.Pipeline = "orders"
	cfg.Table.Name = "orders"
	fmt.Println(cfg.Validate())
	// Output:
	// table.location: is missing (such as file:///data/web.db/clicks)
	// table.columns: is missing (list them, such as - id bigint; only with metastore.type hive may they be left out)
}
