package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// full is a file on a full disk.
type full struct{ tried bool }

func (f *full) Write([]byte) (int, error) {
	f.tried = true
	return 0, errors.New("no space left on device")
}

// TestFactsThatCannotBeWritten: whoever keeps the facts of a command in a file
// must not be told that all is well when the file has none.
func TestFactsThatCannotBeWritten(t *testing.T) {
	tb := newTable(t, madeUp(100, 0))
	tb.run()
	for _, args := range [][]string{
		{"fsck", "-c", tb.config}, {"fsck", "-c", tb.config, "--json"}, {"partitions", "-c", tb.config}, {"partitions", "-c", tb.config, "--json"},
		{"log", "-c", tb.config}, {"log", "-c", tb.config, "--json"}, {"validate", "-c", tb.config}, {"run", "-c", tb.config}, {"compact", "-c", tb.config},
		{"config", "docs"}, {"config", "schema"}, {"version"},
	} {
		var out full
		var errs bytes.Buffer
		code := Main(t.Context(), args, strings.NewReader(""), &out, &errs)
		if code != exitFailed || !out.tried || strings.Count(errs.String(), "no space left") != 1 {
			t.Errorf("%v: exit %d: %s", args, code, &errs)
		}
	}
	tb.fsck(exitDone)
}

// TestHelpOfACommand: asked for in either way, and of a command only.
func TestHelpOfACommand(t *testing.T) {
	for _, c := range commands() {
		var one, other, errs bytes.Buffer
		if Main(t.Context(), []string{"help", c.name}, nil, &one, &errs) != exitDone || Main(t.Context(), []string{c.name, "--help"}, nil, &other, &errs) != exitDone {
			t.Errorf("help of %s: %s", c.name, &errs)
		}
		if one.String() != other.String() || !strings.HasPrefix(one.String(), "hivesink "+c.name+" ") {
			t.Errorf("help of %s: %s", c.name, &one)
		}
	}
	var out, errs bytes.Buffer
	if code := Main(t.Context(), []string{"help", "rum"}, nil, &out, &errs); code != exitUsage || !strings.Contains(errs.String(), `"rum"`) {
		t.Errorf("help of no command: exit %d: %s", code, &errs)
	}
}
