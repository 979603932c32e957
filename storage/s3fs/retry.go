package s3fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
)

const (
	firstPause = 100 * time.Millisecond
	longPause  = 10 * time.Second
)

// do makes one request, again and again while its failure is one that may pass
// (X1). call gets a context with the deadline of one try.
func (f *FS) do(ctx context.Context, op, key string, call func(context.Context) error) error {
	began := time.Now()
	pause := firstPause
	full := true   // each try was refused for want of space
	asked := false // once more, since the clock or the keys may have been refused
	for try := 1; ; try++ {
		err := f.once(ctx, call)
		if err == nil {
			if try > 1 && f.o.Notify != nil {
				f.o.Notify(op+" "+key, nil)
			}
			return nil
		}
		full = full && noSpace(err)
		// The SDK takes from each answer by how much this machine's clock is wrong,
		// and signs by that: after the clock was set one try is refused.
		perhaps := code(err) == "RequestTimeTooSkewed" || refusedUntold(err) || badSignature(err)
		if perhaps || keysRefused(err) {
			f.logins.refuse()
		}
		again := f.passes(err) || !asked && perhaps
		asked = asked || perhaps
		if ctx.Err() != nil || !again || time.Since(began)+pause > f.o.RetryFor {
			if try > 1 && again {
				err = fmt.Errorf("%s failed %d times: %w", op, try, err)
			}
			if full {
				err = &storage.NoSpaceError{Err: err} // and nothing was done (X6)
			}
			return err
		}
		wait := pause/2 + rand.N(pause/2+1) // many that were refused together come back apart
		if f.o.Notify != nil {
			f.o.Notify(op+" "+key, fmt.Errorf("try %d, again in %s: %w", try, wait.Round(time.Millisecond), err))
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
		pause = min(2*pause, longPause)
	}
}

// once makes one try of a request.
func (f *FS) once(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, f.o.RequestTimeout)
	defer cancel()
	return plain(call(ctx))
}

// headed says whether err is of a HEAD request.
func headed(err error) bool {
	var op *smithy.OperationError
	return errors.As(err, &op) && op.Operation() == "HeadObject"
}

// passes says whether a failure may pass. What may be a wrong address or wrong
// keys at the start is an outage once the store has answered.
func (f *FS) passes(err error) bool {
	var known *s3Error
	var login *loginError
	if errors.As(err, &known) && known.foreign || errors.As(err, &login) || keysRefused(err) {
		return f.greeted.Load() || passes(err)
	}
	return passes(err)
}

// passes says whether a failure may pass: nothing was answered, or the store is
// busy or in trouble. It may have done what it was asked for.
func passes(err error) bool {
	switch code(err) {
	case "SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "RequestTimeoutException", "Throttling",
		"ThrottlingException", "RequestLimitExceeded", "BandwidthLimitExceeded", "OperationAborted", "PriorRequestNotComplete",
		"XMinioServerNotInitialized", "IncompleteBody":
		return true
	}
	var busy *busyError
	if errors.As(err, &busy) {
		return true
	}
	var empty *emptyError
	if errors.As(err, &empty) {
		return true
	}
	var login *loginError
	if errors.As(err, &login) {
		return passes(login.err)
	}
	// Below 300 it is the body that could not be read: cut, or not the store's.
	s := status(err)
	if s >= 300 {
		return s >= 500 && s != http.StatusNotImplemented || s == http.StatusTooManyRequests || s == http.StatusRequestTimeout
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return true
	}
	var classed *fault.Error
	if errors.As(err, &classed) {
		return false // the keys cannot be read
	}
	if badCertificate(err) {
		return false
	}
	var network net.Error
	var sent *smithyhttp.RequestSendError
	var garbled *smithy.DeserializationError
	return errors.As(err, &network) || errors.As(err, &sent) || s != 0 && errors.As(err, &garbled)
}

// emptyError is an answer that calls itself a success and does not say what the
// store says with one (X5): a proxy's, or one that has lost its body, which the
// SDK does not mind. Whether the store has done anything is not known.
type emptyError struct{ what string }

func (e *emptyError) Error() string { return "the answer does not say " + e.what }

// said is the error of an answer that does not say what it must.
func said(what string, ok bool) error {
	if ok {
		return nil
	}
	return &emptyError{what}
}

func saidETag(tag *string) error { return said("the ETag", tag != nil && *tag != "") }

// saidObject is about an object that is read. What was put into the directory
// behind a gateway by another way than the gateway has no ETag.
func saidObject(tag *string, modified *time.Time) error {
	return said("the ETag of the object, nor when it was made", tag != nil && *tag != "" || modified != nil)
}

// code is S3's word for an error, "" when there was no answer.
func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

func status(err error) int {
	var answer *smithyhttp.ResponseError
	if errors.As(err, &answer) {
		return answer.HTTPStatusCode()
	}
	return 0
}

// s3Error is an error of the store in few words: its code and message, and how
// it maps to storage's (S3). The SDK's text repeats the operation and has ids
// of the request that say nothing to people.
type s3Error struct {
	err  error
	text string
	is   error // storage's error, or nil
	// foreign: "not found" without a word of the store's, so perhaps a proxy's
	// that has no store behind it.
	foreign bool
}

func (e *s3Error) Error() string        { return e.text }
func (e *s3Error) Unwrap() error        { return e.err }
func (e *s3Error) Is(target error) bool { return e.is != nil && target == e.is }

// plain maps an error of the SDK.
func plain(err error) error {
	var known *s3Error
	if errors.As(err, &known) {
		return err
	}
	if err == nil {
		return nil
	}
	e := &s3Error{err: err, text: err.Error()}
	c, s := code(err), status(err)
	var api smithy.APIError
	if errors.As(err, &api) {
		e.text = api.ErrorCode()
		if m := api.ErrorMessage(); m != "" && m != api.ErrorCode() {
			e.text += ": " + m
		}
	}
	var op *smithy.OperationError
	var sent *smithyhttp.RequestSendError
	switch {
	case api != nil:
	case errors.As(err, &sent):
		e.text = sent.Err.Error()
	case errors.As(err, &op):
		e.text = op.Unwrap().Error()
	}
	switch {
	case c == "PreconditionFailed" || s == http.StatusPreconditionFailed:
		e.is = storage.ErrExist
	case s == http.StatusNotFound && (c == "" || c == "NotFound") && !headed(err):
		e.foreign = true
	case c == "NoSuchKey" || c == "NoSuchUpload" || c == "NotFound" || c != "NoSuchBucket" && s == http.StatusNotFound:
		e.is = storage.ErrNotExist
	case c == "ConditionalRequestConflict" || s == http.StatusConflict && c != "OperationAborted":
		e.is = storage.ErrConflict
	case noSpace(err): // do decides
	case s == http.StatusForbidden || s == http.StatusUnauthorized:
		e.is = storage.ErrPermission
	}
	return e
}

// noSpace says whether a try was refused since the store or a quota is full.
func noSpace(err error) bool {
	switch code(err) {
	case "QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded":
		return true
	}
	return status(err) == http.StatusInsufficientStorage
}

func wrap(op storage.OpKind, name string, err error) error {
	if err == nil {
		return nil
	}
	return &storage.Error{Op: op, Name: name, Err: err}
}
