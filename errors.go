package hivesink

import (
	"context"
	"errors"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/pipeline"
)

// Errors by what may be done about them; use errors.Is. A Sink that has
// returned one of the first three is poisoned: open it anew and resume from
// Writer.Position.
var (
	// ErrFenced: another process owns the table. Do not retry.
	ErrFenced = errors.New("not the owner of the table")
	// ErrHalted: an invariant or data is at risk, or only a person can decide.
	ErrHalted = errors.New("halted")
	// ErrRetry: a later try may work (disk full, a service that is down).
	ErrRetry = errors.New("try again later")
	// ErrConfig: the configuration is wrong.
	ErrConfig = errors.New("configuration")
	// ErrClosed: the sink was closed.
	ErrClosed = pipeline.ErrClosed
)

// sinkError gives an error its class for errors.Is, and keeps its text.
type sinkError struct {
	class error
	err   error
}

func (e *sinkError) Error() string   { return e.err.Error() }
func (e *sinkError) Unwrap() []error { return []error{e.class, e.err} }

func classed(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrClosed) {
		return err
	}
	class := ErrHalted
	switch fault.ClassOf(err) {
	case fault.Fenced:
		class = ErrFenced
	case fault.Retry:
		class = ErrRetry
	case fault.Config:
		class = ErrConfig
	}
	return &sinkError{class, err}
}
