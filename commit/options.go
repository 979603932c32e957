package commit

import (
	"math"
	"slices"
	"time"

	"github.com/hivesink/hivesink/ledger"
)

// Triggers.
const (
	ProcessTime   = "process-time"   // some time after the first publication
	PartitionTime = "partition-time" // when event time has passed the partition's period
)

// Names of policies.
const (
	PolicyMetastore   = "metastore"
	PolicySuccessFile = "success-file"
)

// Options say when partitions are announced.
type Options struct {
	Trigger string        // ProcessTime (default) or PartitionTime
	Delay   time.Duration // added to the trigger; microseconds count
	Late    string        // append, drop or side: the writer's business, here for completeness
	// RegisterFirstFile: the catalogue learns of a partition with its first
	// file, the other policies when it is complete.
	RegisterFirstFile bool
	Policies          []string // names, in the order they run
	// Closes is when a partition's time is complete, where its parts do not say so
	// (recorded, which is ledger.Partition.Closes, is 0) and the configuration of
	// now does. nil: it never does.
	Closes func(path string, recorded int64) int64
}

// IsLate says whether a row of a partition whose period ends at closes comes
// after the partition's trigger, under watermark (both microseconds since
// 1970). A partition without a known period (closes 0) is never late, nor is
// anything with the trigger process-time.
func (o Options) IsLate(closes, watermark int64) bool {
	return o.Trigger == PartitionTime && o.reached(closes, watermark)
}

// reached says whether watermark is at or past closes plus delay.
func (o Options) reached(closes, watermark int64) bool {
	if closes == 0 || watermark == ledger.NoWatermark {
		return false
	}
	return watermark >= plus(closes, o.Delay.Microseconds())
}

// closes is when p's time is complete.
func (o *Options) closes(p *ledger.Partition) int64 {
	if o.Closes == nil {
		return p.Closes
	}
	return o.Closes(p.Path, p.Closes)
}

// registers says whether partitions are registered before they are complete.
func (o Options) registers() bool {
	return o.RegisterFirstFile && slices.Contains(o.Policies, PolicyMetastore)
}

// plus adds a delay (≥ 0) without running over.
func plus(t, delay int64) int64 {
	if t > math.MaxInt64-delay {
		return math.MaxInt64
	}
	return t + delay
}
