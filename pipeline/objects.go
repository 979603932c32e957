package pipeline

import (
	"errors"
	"fmt"
	"slices"

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
func (c *chain) dropCopied(part *ledger.Part) error {
	if c.compact.Objects == nil || part.Upload != "" {
		return nil
	}
	file := part.File()
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

// publishReady completes the uploads that are parts of a checkpoint just
// appended, and notes that. It is done before the checkpoint is acknowledged
// (P7), in turns, as all publishing.
func (c *chain) publishReady(units []string) error {
	if len(units) == 0 {
		return nil
	}
	built := c.ready(units)
	if c.uploads != nil {
		names := make([]string, len(built))
		for i, b := range built {
			names[i] = b.Path
		}
		defer c.uploads.Named(names) // a process that ends here leaves the notes to the next one, which passes over what is named
	}
	return c.completeReady(built)
}

// redoReady is publishReady of what a former owner has left. Uploads that it had
// begun under the same names, and knew nothing of, go.
func (c *chain) redoReady(units []string) error {
	built := c.ready(units)
	if err := c.completeReady(built); err != nil {
		return err
	}
	for _, b := range built {
		if err := c.compact.AbortOthers(b); err != nil {
			return err
		}
	}
	return nil
}

func (c *chain) ready(units []string) []*compactor.Built {
	st := c.log.State()
	built := make([]*compactor.Built, len(units))
	for i, id := range units {
		built[i] = c.compact.Ready(st.Units[id], st.Ready(st.Units[id]))
	}
	return built
}

func (c *chain) completeReady(built []*compactor.Built) error {
	for some := range slices.Chunk(built, max(1, c.atOnce)) {
		if err := c.compact.PublishReady(some...); err != nil {
			return err
		}
		facts := make([]ledger.Published, len(some))
		for i, b := range some {
			facts[i] = c.publishedFact(b)
		}
		if err := c.notePublished(facts); err != nil {
			return err
		}
	}
	return nil
}
