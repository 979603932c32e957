package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A table at rest needs no source and no columns; everything else is checked.
func TestLoadAtRest(t *testing.T) {
	name := filepath.Join(t.TempDir(), "c.yaml")
	write := func(text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("pipeline: p\ntable: {name: t, location: /t, partitioned_by: [dt, {hr: hour(ts)}]}\n")
	c, err := LoadAtRest(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Given("table.compression") || !c.Given("table.location") {
		t.Errorf("given: compression %v, location %v", c.Given("table.compression"), c.Given("table.location"))
	}
	if c, err = LoadAtRest(name, []string{"table.compression=snappy"}); err != nil || !c.Given("table.compression") {
		t.Errorf("a flag gives the codec: %v", err)
	}
	if _, err := Load(name, nil); err == nil || !strings.Contains(err.Error(), "table.columns") {
		t.Errorf("Load without columns: %v", err)
	}
	write("pipeline: p\ntable: {name: t, location: /t, compression: best}\ncompaction: {file_size: 0}\n")
	_, err = LoadAtRest(name, nil)
	if err == nil || !strings.Contains(err.Error(), "table.compression") || !strings.Contains(err.Error(), "compaction.file_size") {
		t.Errorf("problems: %v", err)
	}
}
