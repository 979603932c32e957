package pipeline

import (
	"math"

	"github.com/hivesink/hivesink/compactor"
	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
)

// pathLimits is what is left for the path of a partition beside the root of the
// table, or of the longest side table, and the names of files.
func pathLimits(fs storage.FS, cfg *config.Config) layout.Limits {
	l, ok := fs.(storage.Limited)
	if !ok {
		return layout.Limits{}
	}
	limits := l.Limits()
	beside := len(compactor.SideLocation(TableRoot(cfg), ledger.LateTable)) + len("//") +
		max(len(layout.PartFile(math.MaxUint64, math.MaxUint64)), len(cfg.Commit.SuccessFile))
	return layout.Limits{Path: max(1, limits.Bytes-beside), XML: limits.XML}
}
