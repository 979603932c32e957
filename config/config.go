package config

import (
	"os"
	"reflect"
	"slices"

	// The zones of table.time_zone are part of the program (G6).
	_ "time/tzdata"

	"go.yaml.in/yaml/v4"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
)

// maxFileBytes is the largest config that is read; a larger file is something
// else.
const maxFileBytes = 4 * MB

// Default is a config in which every option that has a default has it. What is
// required is still missing: pipeline, table.name, table.location.
func Default() *Config {
	c := &Config{filled: true}
	setDefaults(reflect.ValueOf(c).Elem())
	return c
}

// Load reads the config file path and applies sets, the arguments of --set
// flags (KEY=VALUE), in their order. The error is a *Problems, or says that
// the file cannot be read; its class is fault.Config.
func Load(path string, sets []string) (*Config, error) { return load(path, sets, false) }

// LoadAtRest is Load for a command that takes the table as it is, which may
// have been written by anybody: table.columns may be missing.
func LoadAtRest(path string, sets []string) (*Config, error) { return load(path, sets, true) }

func load(path string, sets []string, atRest bool) (*Config, error) {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return nil, fault.New(fault.Config, "name the file in it", "read config %s: it is a directory", path)
	}
	if err == nil && info.Size() > int64(maxFileBytes) {
		return nil, fault.New(fault.Config, "is it the right file?", "read config %s: it is larger than %s", path, maxFileBytes)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		hint := ""
		if os.IsNotExist(err) {
			hint = "paths start at the working directory"
		}
		return nil, fault.New(fault.Config, hint, "read config: %w", err)
	}
	return parse(path, data, sets, atRest)
}

// Parse is Load of text that was already read; name stands for the file in
// problems. The error is a *Problems.
func Parse(name string, data []byte, sets []string) (*Config, error) {
	return parse(name, data, sets, false)
}

func parse(name string, data []byte, sets []string, atRest bool) (*Config, error) {
	d := newDecoder(name)
	root := d.document(data)
	broken := len(d.problems) > 0
	if root == nil || root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		root = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: 1, Column: 1}
	}
	if root.Kind == yaml.MappingNode {
		for i, flag := range sets {
			d.set(root, flag, i+1)
		}
	}
	c := Default()
	d.value(root, reflect.ValueOf(c).Elem(), "")
	if broken || root.Kind != yaml.MappingNode {
		// What is missing cannot be told from what could not be read.
		return nil, (&Problems{List: d.problems}).err()
	}
	c.where = d.where
	c.where[""] = place{file: name, line: 1, col: 1}
	c.Table.ColumnText = d.columnText
	v := &validator{c: c, bad: d.bad, problems: d.problems, atRest: atRest}
	if err := v.validate(); err != nil {
		return nil, err
	}
	return c, nil
}

// Validate fills in defaults where the struct was made without Default, brings
// names to their canonical form (lower case, policy off for enabled false) and
// checks everything. The error is a *Problems. Load and Parse have called it.
func (c *Config) Validate() error {
	c.fill()
	v := &validator{c: c, bad: map[string]bool{}}
	return v.validate()
}

// fill puts defaults in place of zeros, once: after that a zero is what the
// user wants.
func (c *Config) fill() {
	if !c.filled {
		fillZero(reflect.ValueOf(c).Elem())
		c.filled = true
	}
	if m := c.Metastore.SASL; m != nil {
		fillZero(reflect.ValueOf(m).Elem())
	}
	s := c.Source
	if s == nil {
		return
	}
	if !s.filled {
		fillZero(reflect.ValueOf(s).Elem())
		s.filled = true
	}
	if s.Kafka != nil && !s.Kafka.filled {
		fillZero(reflect.ValueOf(s.Kafka).Elem())
		s.Kafka.filled = true
	}
	if s.Kafka != nil && s.Kafka.SASL != nil {
		fillZero(reflect.ValueOf(s.Kafka.SASL).Elem())
	}
	if s.Datagen != nil && !s.Datagen.filled {
		fillZero(reflect.ValueOf(s.Datagen).Elem())
		s.Datagen.filled = true
	}
}

// Given says whether an option, such as table.compression, was given in the file
// or by a flag, or has its default.
func (c *Config) Given(option string) bool {
	_, given := c.where[option]
	return given
}

// NeedSource says that the config has no source, for a command that reads one.
// The error is a *Problems.
func (c *Config) NeedSource() error {
	if c.Source != nil {
		return nil
	}
	v := &validator{c: c, bad: map[string]bool{}}
	v.add("source", "add source.kafka, source.files, source.stdin or source.datagen", "is missing")
	return (&Problems{List: v.problems}).err()
}

// IdentityColumns lists the partition columns that are columns of the table,
// in the order of the partition path.
func (c *Config) IdentityColumns() []string {
	var out []string
	for _, t := range c.Table.PartitionedBy {
		if t.Func == layout.Identity {
			out = append(out, t.Column)
		}
	}
	return out
}

// Announces says whether policy is one of commit.policies.
func (c *Config) Announces(policy string) bool { return slices.Contains(c.Commit.Policies, policy) }
