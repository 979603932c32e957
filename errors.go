package hivesink

import (
	"context"
	"errors"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/pipeline"
	"github.com/hivesink/hivesink/storage"
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
	// ErrRefused: the call was wrong, such as a batch that does not fit the
	// table. Nothing of it was done, and the sink goes on.
	ErrRefused = errors.New("refused")
	// ErrClosed: the sink was closed.
	ErrClosed = pipeline.ErrClosed
	// ErrWriterClosed: the Writer was closed.
	ErrWriterClosed = errors.New("the writer is closed")
)

// sinkError gives an error its class for errors.Is, and keeps its text.
type sinkError struct {
	class error
	err   error
}

func (e *sinkError) Error() string   { return e.err.Error() }
func (e *sinkError) Unwrap() []error { return []error{e.class, e.err} }

// refused is the error of a call that was wrong, unless the caller's ctx or the
// end of the sink was what ended it.
func refused(err error) error {
	if passed(err) {
		return err
	}
	return &sinkError{ErrRefused, err}
}

func classed(err error) error {
	if err == nil || passed(err) {
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

// passed says that an error needs no class: the caller ended the call or the
// sink. A storage whose own patience has ended says "deadline exceeded" as well,
// and that is no end of the caller's ctx.
func passed(err error) bool {
	if errors.Is(err, ErrClosed) {
		return true
	}
	var class *fault.Error
	var failed *storage.Error
	if errors.As(err, &class) || errors.As(err, &failed) {
		return false
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
