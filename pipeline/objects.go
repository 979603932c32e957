package pipeline

import (
	"errors"
	"fmt"

	"github.com/hivesink/hivesink/compactor"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
)

// noteUploads logs the uploads of targets, on an object store: nothing is
// completed that the next owner does not know of and could not abort.
func (c *chain) noteUploads(targets []*compactor.Built) error {
	var uploads []ledger.Upload
	for _, b := range targets {
		if b.Upload != "" {
			uploads = append(uploads, ledger.Upload{Unit: b.Unit.ID, ID: b.Upload})
		}
	}
	if len(uploads) == 0 {
		return nil
	}
	if err := c.append(&ledger.Record{Uploading: uploads}); err != nil {
		return fmt.Errorf("note %d uploads: %w", len(uploads), err)
	}
	return nil
}

// buildAgain gives a unit back to the pool whose upload came to nothing: it met
// another change of the same name, or somebody has aborted it.
func (c *chain) buildAgain(b *compactor.Built) error {
	if c.submitted[b.Unit.ID] >= maxAttempts {
		return fault.New(fault.Halt, "start again; if it goes on, see whether the bucket has a rule that aborts uploads after minutes",
			"publish unit %s: %d uploads to %s came to nothing", b.Unit.ID, maxAttempts, b.Path)
	}
	c.emit(Event{Kind: "unit-retry", Unit: b.Unit.ID, Err: errors.New("its upload is gone")})
	return c.submit(c.log.State().Units[b.Unit.ID])
}

// dropCopied deletes the input of a unit that was published as it is, where
// that means a copy.
func (c *chain) dropCopied(file ledger.StagedFile) error {
	if c.compact.Objects == nil {
		return nil
	}
	where, err := c.log.Locate(file.Epoch, file.Name)
	if errors.Is(err, storage.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = c.log.Trash(where)
	}
	if err != nil {
		return storage.Classify(fmt.Errorf("delete the published part %s: %w", file.Name, err))
	}
	return nil
}
