package hivesink

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
)

// TestClasses: the end of the caller's ctx needs no class; a storage that has lost
// its patience does, though it speaks of a deadline as well.
func TestClasses(t *testing.T) {
	timeout := &storage.Error{Op: storage.OpSync, Name: "/t/part", Err: context.DeadlineExceeded}
	for _, c := range []struct {
		err  error
		want error // nil: none of the classes
	}{
		{context.DeadlineExceeded, nil},
		{fmt.Errorf("open: %w", context.Canceled), nil},
		{ErrClosed, nil},
		{errors.Join(ErrClosed, context.Canceled), nil},
		{timeout, ErrHalted},
		{storage.Classify(fmt.Errorf("write part files: %w", timeout)), ErrHalted},
		{fault.Wrap(fault.Retry, "", context.DeadlineExceeded), ErrRetry},
		{fault.Wrap(fault.Fenced, "", timeout), ErrFenced},
	} {
		got := classed(c.err)
		for _, class := range []error{ErrFenced, ErrHalted, ErrRetry, ErrConfig, ErrRefused} {
			if errors.Is(got, class) != (class == c.want) {
				t.Errorf("%v: is %v: %v", c.err, class, errors.Is(got, class))
			}
		}
		if !errors.Is(got, c.err) || got.Error() != c.err.Error() {
			t.Errorf("%v becomes %v", c.err, got)
		}
	}
}
