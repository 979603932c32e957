package maintenance

import (
	"encoding/json"
	"fmt"

	"github.com/hivesink/hivesink/format/parquet"
)

// pandasKey has the types of a data frame that Parquet has not, and which columns
// are its index: without it integers with nulls become floats. An index that only
// counts rows is no column, and says how many rows the file has; who wrote it, and
// how many categories a column has in the file, is true of one file, too.
const pandasKey = "pandas"

type pandasMeta struct {
	all     map[string]json.RawMessage
	index   []json.RawMessage
	columns []map[string]json.RawMessage
}

func decodePandas(text string) (*pandasMeta, error) {
	p := &pandasMeta{}
	if err := json.Unmarshal([]byte(text), &p.all); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(p.all["index_columns"], &p.index); err != nil {
		return nil, err
	}
	return p, json.Unmarshal(p.all["columns"], &p.columns)
}

// encode renders it for a file of so many rows, by nobody. Names are sorted.
func (p *pandasMeta) encode(rows int64) (string, error) {
	all := make(map[string]json.RawMessage, len(p.all))
	for k, v := range p.all {
		if k != "creator" && k != "pandas_version" {
			all[k] = v
		}
	}
	index := make([]json.RawMessage, len(p.index))
	for i, raw := range p.index {
		var count struct {
			Kind string `json:"kind"`
			Name any    `json:"name"`
		}
		if index[i] = raw; json.Unmarshal(raw, &count) != nil || count.Kind != "range" {
			continue
		}
		b, err := json.Marshal(map[string]any{"kind": "range", "name": count.Name, "start": 0, "stop": rows, "step": 1})
		if err != nil {
			return "", err
		}
		index[i] = b
	}
	columns := make([]map[string]json.RawMessage, len(p.columns))
	for i, c := range p.columns {
		columns[i] = make(map[string]json.RawMessage, len(c))
		for k, v := range c {
			columns[i][k] = v
		}
		var more map[string]json.RawMessage
		if json.Unmarshal(c["metadata"], &more) == nil && more["num_categories"] != nil {
			more["num_categories"] = json.RawMessage(fmt.Sprint(rows)) // at most
			b, err := json.Marshal(more)
			if err != nil {
				return "", err
			}
			columns[i]["metadata"] = b
		}
	}
	var err error
	if all["index_columns"], err = json.Marshal(index); err != nil {
		return "", err
	}
	if all["columns"], err = json.Marshal(columns); err != nil {
		return "", err
	}
	b, err := json.Marshal(all)
	return string(b), err
}

// keepPandas puts back what files say of their data frame that differs in what is
// true of one file only.
func keepPandas(files []*parquetfile.File, meta map[string]string) {
	if _, agreed := meta[pandasKey]; agreed {
		return
	}
	rows := int64(0)
	for _, f := range files {
		rows += f.Rows()
	}
	common := ""
	for i, f := range files {
		text, ok := f.Meta()[pandasKey]
		if !ok {
			return
		}
		p, err := decodePandas(text)
		if err != nil {
			return
		}
		own, err := p.encode(rows)
		if err != nil || i > 0 && own != common {
			return
		}
		common = own
	}
	meta[pandasKey] = common
}
