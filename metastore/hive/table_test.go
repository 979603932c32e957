package hive

import (
	"strings"
	"testing"

	hms "github.com/beltran/gohive/hive_metastore"
)

// TestOtherTables: a table in which readers would not find our files, or would
// read them wrongly, is refused.
func TestOtherTables(t *testing.T) {
	make := func() *hms.Table {
		return &hms.Table{Parameters: map[string]string{}, Sd: &hms.StorageDescriptor{InputFormat: inputFormat, Location: "hdfs://nn/t", NumBuckets: -1}}
	}
	spec := &Table{Name: "t", Location: "hdfs://nn:8020/t"}
	if err := check(make(), spec, "web"); err != nil {
		t.Error(err)
	}
	for says, change := range map[string]func(*hms.Table){
		"a table of Hudi": func(t *hms.Table) {
			t.Sd.InputFormat = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
			t.Parameters["spark.sql.sources.provider"] = "hudi"
		},
		"a table of Iceberg": func(t *hms.Table) { t.Parameters["table_type"] = "ICEBERG" },
		"a table of Delta":   func(t *hms.Table) { t.Parameters["spark.sql.sources.provider"] = "delta" },
		"is bucketed":        func(t *hms.Table) { t.Sd.NumBuckets, t.Sd.BucketCols = 8, []string{"id"} },
		"is bucketed: where": func(t *hms.Table) { t.Parameters["spark.sql.sources.schema.numBuckets"] = "8" },
		"is a view":          func(t *hms.Table) { t.TableType = "VIRTUAL_VIEW" },
		"is transactional":   func(t *hms.Table) { t.Parameters["transactional"] = "TRUE" },
		"not stored as":      func(t *hms.Table) { t.Sd.InputFormat = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat" },
	} {
		other := make()
		change(other)
		if err := check(other, spec, "web"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}
