package config

import (
	"slices"
	"strings"
	"time"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/layout"
)

func (v *validator) commit() {
	c := &v.c.Commit
	v.policies(c.Policies)
	switch f := c.SuccessFile; {
	case f == "":
		v.add("commit.success_file", "such as _SUCCESS", "is empty")
	case strings.ContainsAny(f, "/\x00") || len(f) > 255:
		v.add("commit.success_file", "a name without a slash, such as _SUCCESS", "%q is not a file name", f)
	case f == "." || f == ".." || f == ".hivesink":
		v.add("commit.success_file", "such as _SUCCESS", "%q is taken", f)
	case f[0] != '_' && f[0] != '.':
		v.add("commit.success_file", "start it with _ or .", "%q would be read as data: readers skip only names that start with _ or .", f)
	}
	if c.Trigger == TriggerPartitionTime {
		v.partitionTime()
	}
	if c.Trigger == TriggerProcessTime {
		if c.Late == LateDrop || c.Late == LateSide {
			v.add("commit.late", "add trigger: partition-time, or use append",
				"%s needs trigger partition-time: without it no row is late", c.Late)
		}
		if c.TimeExtractor != nil {
			v.add("commit.time_extractor", "add trigger: partition-time, or remove it", "is of no use with trigger process-time")
		}
	}
	if c.TimeExtractor != nil {
		v.timeExtractor(c.TimeExtractor)
	}
}

func (v *validator) policies(policies []string) {
	for i, p := range policies {
		at := index("commit.policies", i)
		switch {
		case slices.Contains(policies[:i], p):
			v.add(at, "remove one", "%q is listed twice", p)
		case p == "command" || p == "webhook":
			v.add(at, "use metastore and success-file", "%s is not in this build", p)
		default:
			v.oneOf(at, p, []string{CommitMetastore, CommitSuccessFile})
		}
	}
}

// partitionTime checks that the time of a partition can be told, and that
// there is a watermark to compare it with.
func (v *validator) partitionTime() {
	by := v.c.Table.PartitionedBy
	if len(by) == 0 {
		v.add("commit.trigger", "add table.partitioned_by, or use process-time", "partition-time needs a partitioned table")
	} else if v.c.Commit.TimeExtractor == nil {
		if why, hint := v.periodProblem(by); why != "" {
			v.add("commit.trigger", hint, "partition-time: %s", why)
		}
	}
	if s := v.c.Source; s != nil && s.EventTime.Column == "" {
		v.add("source.event_time.column", "name a timestamp column", "is missing: commit.trigger partition-time needs it")
	}
}

// periodProblem says why the partition columns do not tell which period a
// partition is.
func (v *validator) periodProblem(by []layout.Transform) (why, hint string) {
	hint = "add a date(…) partition column, or commit.time_extractor"
	for _, p := range by {
		if _, err := layout.ParseTransform(p.Name, p.String()); err != nil {
			return "", "" // a problem of its own
		}
	}
	if layout.NamesPeriod(by) {
		return "", ""
	}
	if by[0].Func == layout.Identity { // its text is read as a time
		return v.noTime(by[0]), "add commit.time_extractor, such as {formatter: yyyyMMdd}"
	}
	for _, p := range by {
		if p.Temporal() {
			return p.String() + " alone does not tell which day or year it is of", hint
		}
	}
	return "no partition column is a time", hint
}

// noTime says why the text of an identity column is never yyyy-MM-dd.
func (v *validator) noTime(p layout.Transform) string {
	f, _ := v.column(p.Column)
	switch kind := kindOf(f); {
	case kind == hivetype.Boolean || kind == hivetype.Decimal || kind >= hivetype.TinyInt && kind <= hivetype.BigInt:
		return "the values of " + p.Column + ", which are " + f.Type.String() + ", are no times: those are written yyyy-MM-dd"
	}
	return ""
}

func (v *validator) timeExtractor(x *TimeExtractor) {
	by := v.c.Table.PartitionedBy
	names := make([]string, len(by))
	for i, p := range by {
		names[i] = p.Name
	}
	if len(by) == 0 {
		return // that partition-time needs partitions has been said
	}
	if x.Pattern != "" && !strings.Contains(x.Pattern, "$") {
		v.add("commit.time_extractor.pattern", "such as $dt $hr:00:00", "%q names no partition column: every partition would have the same time", x.Pattern)
	}
	if err := (&layout.TimeExtractor{Pattern: x.Pattern}).Check(names); err != nil {
		v.add("commit.time_extractor.pattern", "", "%s", err)
	}
	if err := (&layout.TimeExtractor{Formatter: x.Formatter}).Check(names); err != nil {
		v.add("commit.time_extractor.formatter", "", "%s", err)
	}
	if !v.said["commit.time_extractor.pattern"] && !v.said["commit.time_extractor.formatter"] {
		v.extracts(&layout.TimeExtractor{Pattern: x.Pattern, Formatter: x.Formatter}, names)
	}
}

// extracts tries the extractor on values of transforms, which are known. One that
// cannot read them would let every partition wait for the end of the input.
func (v *validator) extracts(x *layout.TimeExtractor, names []string) {
	by := v.c.Table.PartitionedBy
	for _, p := range by {
		if _, err := layout.ParseTransform(p.Name, p.String()); err != nil {
			return // a problem of its own
		}
	}
	sample := layout.Samples(by)
	for i, used := range x.Uses(names) {
		if used && sample[i] == "" {
			if why := v.noTime(by[i]); why != "" && x.Pattern == "" && x.Formatter == "" {
				v.add("commit.time_extractor", "such as {formatter: yyyyMMdd}", "%s", why)
			}
			return // nobody knows how its values look
		}
	}
	if _, err := x.Extract(names, sample, time.UTC); err != nil {
		v.add("commit.time_extractor", "", "values such as %s cannot be read: %s", strings.Join(sample, ", "), err)
	}
}
