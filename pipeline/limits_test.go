package pipeline

import (
	"path"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/memfs"
)

type limited struct{ storage.FS }

func (limited) Limits() storage.Limits { return storage.Limits{Bytes: 1025, XML: true} }

// TestPathLimits: what is left for the path of a partition is enough for every
// name that is made below it.
func TestPathLimits(t *testing.T) {
	cfg := new(config.Config)
	cfg.Table.Location = config.Location{Scheme: "s3", Host: "lake", Path: "/web/clicks"}
	cfg.Commit.SuccessFile = "_SUCCESS"
	if l := pathLimits(memfs.New(), cfg); l != (layout.Limits{}) {
		t.Errorf("without limits there are %+v", l)
	}
	l := pathLimits(limited{}, cfg)
	if !l.XML || l.Path < 900 {
		t.Fatalf("%+v", l)
	}
	p := strings.Repeat("p", l.Path)
	for _, name := range []string{
		path.Join("/web/clicks_late", p, layout.PartFile(1<<64-1, 1<<64-1)),
		path.Join("/web/clicks", p, cfg.Commit.SuccessFile),
	} {
		if len(name) > 1025 {
			t.Errorf("a name has %d bytes: ...%s", len(name), name[len(name)-60:])
		}
	}
	cfg.Table.Location.Path = "/" + strings.Repeat("r", 1020)
	if l := pathLimits(limited{}, cfg); l.Path != 1 {
		t.Errorf("below a root that is too long there is room for %d bytes", l.Path)
	}
}
