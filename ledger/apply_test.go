package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/hivesink/hivesink/internal/fault"
)

// TestApply runs the scripts in testdata/apply. Commands:
//
//	new              the state before the first record
//	apply            a record as JSON; v, seq, epoch and previous are filled in
//	                 where left out. Prints what it touched, or the refusal.
//	state [KEY…]     scalars, or entities by their key in the index
func TestApply(t *testing.T) {
	datadriven.Walk(t, "testdata/apply", func(t *testing.T, path string) {
		st := NewState()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "new":
				st = NewState()
				return ""
			case "apply":
				return applyText(t, st, d.Input)
			case "state":
				return stateText(t, st, d.CmdArgs)
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

func applyText(t *testing.T, st *State, text string) string {
	r := &Record{Version: formatVersion, Seq: st.Seq + 1, Epoch: st.Epoch, Previous: st.Checksum}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(r); err != nil {
		t.Fatal(err)
	}
	before, clone := canon(t, st), st.Clone()
	touched, err := st.Apply(r, fmt.Sprint("sum", r.Seq))
	if err != nil {
		if fault.ClassOf(err) != fault.Halt {
			t.Errorf("class %s of: %v", fault.ClassOf(err), err)
		}
		if canon(t, st) != before {
			t.Errorf("T6: refused, and changed:\n%s", canon(t, st))
		}
		var classed *fault.Error
		if e, ok := err.(*fault.Error); ok {
			classed = e
		}
		return "refused: " + classed.Err.Error() + "\n"
	}
	if canon(t, clone) != before {
		t.Error("a clone changed with the state")
	}
	keys := make(map[string]bool)
	noteKeys(keys, prefSource, touched.Sources)
	noteKeys(keys, prefPart, touched.Parts)
	noteKeys(keys, prefUnit, touched.Units)
	noteKeys(keys, prefPartition, touched.Partitions)
	noteKeys(keys, prefReplace, touched.Replacements)
	// Whatever was applied can be taken back.
	undone := st.Clone()
	undone.revert(touched)
	if canon(t, undone) != before {
		t.Errorf("taken back:\n%s\nwant\n%s", canon(t, undone), before)
	}
	var out strings.Builder
	for _, key := range sortedKeys(keys) {
		value, err := st.entity(key)
		if err != nil {
			t.Fatal(err)
		}
		mark := ""
		if value == nil {
			mark = " gone"
		}
		fmt.Fprintf(&out, "%s%s\n", key, mark)
	}
	if out.Len() == 0 {
		return "ok\n"
	}
	return out.String()
}

func stateText(t *testing.T, st *State, keys []datadriven.CmdArg) string {
	if len(keys) == 0 {
		head := st.scalars()
		b, err := json.Marshal(head)
		if err != nil {
			t.Fatal(err)
		}
		return string(bytes.ReplaceAll(b, []byte(`,"sources":null,"parts":null,"units":null,"partitions":null`), nil)) + "\n"
	}
	var out strings.Builder
	for _, k := range keys {
		key := k.Key
		if len(k.Vals) > 0 { // datadriven cuts dt=1 apart
			key += "=" + k.Vals[0]
		}
		value, err := st.entity(key)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s\n", value)
	}
	return out.String()
}
