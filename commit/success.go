package commit

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
)

// stagedMarker is the name under which a success file waits in the staging
// directory, one for each of those that are written at once: policies run in
// one goroutine, and a staging directory has one owner.
func stagedMarker(slot int) string { return fmt.Sprintf("success-%d.marker", slot) }

// successFile writes an empty file into each announced partition's directory.
type successFile struct {
	fs       storage.FS
	location func(table string) string
	staging  func() string
	name     string
	atOnce   int
}

// NewSuccessFile makes the policy success-file: an empty file called name in
// the directory of each announced partition, in the table's root when it has no
// partition columns. A file that is there already is replaced, so its time
// tells of the last announcement.
//
// location is the root directory of a table (the main one or a side table), and
// staging the owner's staging directory: the marker is made there and renamed
// out, so that a former owner, whose staging directory is gone, writes none.
//
// So many are written at once: a file system makes what is asked for together
// durable together.
func NewSuccessFile(fs storage.FS, location func(table string) string, staging func() string, name string, atOnce int) Policy {
	return &successFile{fs: fs, location: location, staging: staging, name: name, atOnce: max(1, atOnce)}
}

func (s *successFile) Name() string { return PolicySuccessFile }

// Announce writes the success files. A partition whose directory is
// missing halts: data that was committed is gone. No space is retried; what
// else storage may say halts.
func (s *successFile) Announce(ctx context.Context, as []Announcement) error {
	failures := make(Failures, len(as))
	var halted atomic.Bool
	slots := make(chan int, s.atOnce)
	for slot := range s.atOnce {
		slots <- slot
	}
	var wg sync.WaitGroup
	for i := range as {
		slot := <-slots
		wg.Go(func() {
			defer func() { slots <- slot }()
			failures[i] = s.try(ctx, &as[i], slot, &halted)
		})
	}
	wg.Wait()
	s.settle(failures)
	return failures.Err()
}

// try marks one partition, unless something has shown before that this must not
// go on.
func (s *successFile) try(ctx context.Context, a *Announcement, slot int, halted *atomic.Bool) error {
	if halted.Load() {
		return errNotTried
	}
	if err := ctx.Err(); err != nil {
		return fault.Wrap(fault.Retry, "", err)
	}
	err := s.mark(path.Join(s.location(a.Table), a.Partition), slot)
	if err != nil && fault.ClassOf(err) != fault.Retry {
		halted.Store(true)
	}
	return err
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
func (s *successFile) mark(dir string, slot int) error {
	target := path.Join(dir, s.name)
	if o, ok := s.fs.(storage.Objects); ok {
		// No rename, and no need of a staging directory: an empty object is never
		// seen in part. A former owner that comes late marks what was complete.
		if err := o.Overwrite(target, nil); err != nil {
			return storage.Classify(fmt.Errorf("write the success file %s: %w", target, err))
		}
		return nil
	}
	staged := path.Join(s.staging(), stagedMarker(slot))
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
