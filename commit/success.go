package commit

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
)

// stagedMarker is the name under which a success file waits in the staging
// directory. One at a time does: policies run in one goroutine, and a staging
// directory has one owner.
const stagedMarker = "success.marker"

// successFile writes an empty file into each announced partition's directory.
type successFile struct {
	fs       storage.FS
	location func(table string) string
	staging  func() string
	name     string
}

// NewSuccessFile makes the policy success-file: an empty file called name in
// the directory of each announced partition, in the table's root when it has no
// partition columns. A file that is there already is replaced, so its time
// tells of the last announcement.
//
// location is the root directory of a table (the main one or a side table), and
// staging the owner's staging directory: the marker is made there and renamed
// out, so that a former owner, whose staging directory is gone, writes none.
func NewSuccessFile(fs storage.FS, location func(table string) string, staging func() string, name string) Policy {
	return &successFile{fs: fs, location: location, staging: staging, name: name}
}

func (s *successFile) Name() string { return PolicySuccessFile }

// Announce writes the success files one by one. A partition whose directory is
// missing halts: data that was committed is gone. No space is retried; what
// else storage may say halts.
func (s *successFile) Announce(ctx context.Context, as []Announcement) error {
	failures := make(Failures, len(as))
	for i := range as {
		err := ctx.Err()
		if err != nil {
			err = fault.Wrap(fault.Retry, "", err)
		} else {
			err = s.mark(path.Join(s.location(as[i].Table), as[i].Partition))
		}
		failures[i] = err
		if err != nil && fault.ClassOf(err) != fault.Retry {
			for k := i + 1; k < len(as); k++ {
				failures[k] = errNotTried
			}
			break
		}
	}
	s.settle(failures)
	return failures.Err()
}

// settle makes durable that the markers have left the staging directory: a
// rename across directories is durable when both are synced (storage S6). Once
// for all of them.
func (s *successFile) settle(failures Failures) {
	if !slices.Contains(failures, nil) {
		return
	}
	err := s.fs.SyncDir(s.staging())
	if err == nil {
		return
	}
	for i := range failures {
		if failures[i] == nil {
			failures[i] = storage.Classify(&storage.UnsyncedError{Name: s.name, Err: err})
		}
	}
}

// mark puts the success file into dir: durable bytes (none), then the name,
// then the durable name, but for what settle does (A8).
func (s *successFile) mark(dir string) error {
	staged := path.Join(s.staging(), stagedMarker)
	err := storage.WriteFile(s.fs, staged, nil)
	if errors.Is(err, storage.ErrExist) { // left by an attempt that failed later on
		if err = s.fs.Remove(staged); err == nil || errors.Is(err, storage.ErrNotExist) {
			err = storage.WriteFile(s.fs, staged, nil)
		}
	}
	if errors.Is(err, storage.ErrNotExist) {
		return gone(err)
	}
	if err != nil {
		return storage.Classify(fmt.Errorf("write the success file for %s: %w", dir, err))
	}
	target := path.Join(dir, s.name)
	if err := s.fs.Replace(staged, target); err != nil {
		return s.replaceError(dir, fmt.Errorf("put %s in place: %w", target, err))
	}
	if err := s.fs.SyncDir(dir); err != nil {
		return storage.Classify(&storage.UnsyncedError{Name: target, Err: err})
	}
	return nil
}

// replaceError tells a missing partition from a staging directory that another
// owner has moved away.
func (s *successFile) replaceError(dir string, err error) error {
	if !errors.Is(err, storage.ErrNotExist) {
		return storage.Classify(err)
	}
	_, look := s.fs.Stat(dir)
	switch {
	case errors.Is(look, storage.ErrNotExist):
		return fault.Wrap(fault.Halt, "its published files are gone; run fsck, and restore the directory",
			fmt.Errorf("the partition's directory is missing: %w", err))
	case look != nil:
		return storage.Classify(errors.Join(err, look))
	}
	return gone(err)
}

func gone(err error) error {
	return fault.Wrap(fault.Fenced, "another process has taken the table over",
		fmt.Errorf("the staging directory is missing: %w", err))
}
