package hive

import (
	"math/big"
	"strconv"
	"strings"
	"time"

	hms "github.com/beltran/gohive/hive_metastore"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
)

// canonical are a partition's values as readers compare them, by the types
// that the metastore has for the partition columns (HM7).
func canonical(keys []*hms.FieldSchema, values []string) ([]string, error) {
	if len(keys) != len(values) {
		return nil, fault.New(fault.Retry, "table.partitioned_by and the table in the metastore differ",
			"%d partition values for %d partition columns in the metastore", len(values), len(keys))
	}
	out := make([]string, len(values))
	for i, v := range values {
		c, ok := canonicalValue(strings.ToLower(keys[i].Type), v)
		if !ok {
			return nil, fault.New(fault.Retry, "the partition column in the metastore needs type string",
				"%q is no value of the partition column %s %s", v, keys[i].Name, keys[i].Type)
		}
		out[i] = c
	}
	return out, nil
}

func canonicalValue(typ, v string) (string, bool) {
	if v == layout.DefaultPartition {
		return v, true
	}
	base, _, _ := strings.Cut(typ, "(")
	switch base {
	case "tinyint", "smallint", "int", "bigint":
		bits := map[string]int{"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}[base]
		n, err := strconv.ParseInt(v, 10, bits)
		return strconv.FormatInt(n, 10), err == nil
	case "boolean":
		b := strings.ToLower(v)
		return b, b == "true" || b == "false"
	case "date":
		d, err := time.Parse("2006-1-2", v)
		if err != nil {
			return "", false
		}
		return d.Format(time.DateOnly), true
	case "decimal":
		_, ok := new(big.Rat).SetString(v)
		return v, ok && !strings.ContainsAny(v, "/eE")
	}
	return v, true
}
