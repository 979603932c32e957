package kv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/table"
)

// tableChecks is how strictly tables are read, here and by Badger.
const tableChecks = options.OnTableAndBlockRead

// inspect reads every table of a store as Badger will. Badger opens its tables
// in goroutines of its own, where a table cut short panics and takes the
// process with it; here that is an error.
func inspect(dir string) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := inspectTable(name); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
	}
	return nil
}

func inspectTable(name string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("the table is cut short or damaged")
		}
	}()
	id, ok := table.ParseFileID(filepath.Base(name))
	if !ok {
		return errors.New("not a table of Badger")
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	t, err := table.OpenInMemoryTable(data, id, &table.Options{ChkMode: tableChecks, Compression: options.None})
	if err != nil {
		return err
	}
	return t.VerifyChecksum()
}

// sentinel is a file beside the store that is there while it is being opened.
// Found before, it says that the process died of opening (or was killed in it):
// whatever damage inspect does not know, the second start gets past it.
type sentinel string

func sentinelOf(dir string) sentinel { return sentinel(dir + ".opening") }

func (s sentinel) found() bool {
	_, err := os.Stat(string(s))
	return err == nil
}

func (s sentinel) set() error { return os.WriteFile(string(s), nil, 0o600) }

func (s sentinel) clear() error {
	if err := os.Remove(string(s)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
