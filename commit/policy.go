package commit

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/hivesink/hivesink/internal/fault"
)

// Policy is one thing that announcing a partition means.
type Policy interface {
	// Name is the policy's name in the configuration.
	Name() string
	// Announce announces a batch. It is called at least once for each
	// announcement and must be idempotent with the key (table, partition,
	// number); totals may have grown between two calls of one number. It runs
	// beside the chain, and holds up other announcements only; it ends when ctx
	// does.
	//
	// nil: all of the batch is announced, durably. An error of class retry is
	// tried again later; any other stops the process. An error with the method
	// FailedAt (see Failures) says which of the batch failed; with any other
	// error none of it counts as announced.
	Announce(ctx context.Context, as []Announcement) error
}

// Failures is the error of a batch of which only a part was announced: element
// i says why announcement i was not, nil that it was. Its class is that of the
// gravest. Policies elsewhere have the same by shape: what counts is the method
// FailedAt.
type Failures []error

// FailedAt is why announcement i of the batch failed; nil when it did not.
func (f Failures) FailedAt(i int) error { return f[i] }

// Unwrap returns the errors.
func (f Failures) Unwrap() []error {
	var errs []error
	for _, err := range f {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// Error is the text of the first failures.
func (f Failures) Error() string { return joinText(f.Unwrap()) }

// Err is f as an error: nil when nothing failed.
func (f Failures) Err() error {
	if len(f.Unwrap()) == 0 {
		return nil
	}
	return f
}

// errNotTried stands for an announcement that was not tried after another one
// had failed for good.
var errNotTried = fault.New(fault.Retry, "", "not tried after an earlier failure")

// maxShown is how many failures an error's text names.
const maxShown = 3

func joinText(errs []error) string {
	var shown []string
	more := 0
	for _, err := range errs {
		text := err.Error()
		switch {
		case slices.Contains(shown, text), len(errs) > 1 && errors.Is(err, errNotTried):
		case len(shown) < maxShown:
			shown = append(shown, text)
		default:
			more++
		}
	}
	if more > 0 {
		shown = append(shown, "and "+strconv.Itoa(more)+" more")
	}
	return strings.Join(shown, "; ")
}
