package s3fs

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/hivesink/hivesink/internal/fault"
)

// logins are the credentials of all requests. Those that have no end, as a file of
// the AWS configuration gives them, are looked for again from time to time, since
// somebody may write such a file anew, and so are all once the store refuses them.
//
// Their errors do not pass for the store's: a file of a key that is not there for
// a moment, or a "not found" of who gives them out, says nothing about objects.
type logins struct {
	load  func(context.Context) (aws.CredentialsProvider, error) // anew, of the AWS configuration
	every time.Duration

	mu      sync.Mutex
	of      aws.CredentialsProvider
	read    time.Time
	endless bool
	refused bool
}

func (l *logins) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := l.provider(ctx).Retrieve(ctx)
	if err != nil {
		return c, &loginError{err}
	}
	l.mu.Lock()
	l.endless = !c.CanExpire
	l.mu.Unlock()
	return c, nil
}

func (l *logins) provider(ctx context.Context) aws.CredentialsProvider {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.refused && !(l.endless && time.Since(l.read) >= l.every) {
		return l.of
	}
	l.refused, l.read = false, time.Now()
	if cache, ok := l.of.(*aws.CredentialsCache); ok && !l.endless {
		cache.Invalidate()
	} else if l.load != nil {
		if next, err := l.load(ctx); err == nil && next != nil {
			l.of = next // else those before: the store says what it thinks of them
		}
	}
	return l.of
}

// refuse notes that the store does not take them.
func (l *logins) refuse() {
	l.mu.Lock()
	l.refused = true
	l.mu.Unlock()
}

// keysRefused says whether a try was refused for its keys: they have expired, or
// were exchanged, and the new ones may come at any moment.
func keysRefused(err error) bool {
	switch code(err) {
	case "ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "InvalidToken", "InvalidAccessKeyId", "InvalidClientTokenId",
		"XAdminUserNotFound": // versitygw's word for an unknown access key
		return true
	}
	return false
}

// badSignature may be a secret that was exchanged, or something between us and the
// store that changes requests, which lasts.
func badSignature(err error) bool { return code(err) == "SignatureDoesNotMatch" }

// refusedUntold says whether a try may have been refused for its keys or its time:
// the answer to a HEAD has no word of the store's.
func refusedUntold(err error) bool {
	if !headed(err) {
		return false
	}
	s := status(err)
	return s == http.StatusForbidden || s == http.StatusUnauthorized || s == http.StatusBadRequest
}

// loginError shows of its cause the class and the words only.
type loginError struct{ err error }

func (e *loginError) Error() string { return e.err.Error() }

func (e *loginError) As(target any) bool {
	classed, ok := target.(**fault.Error)
	return ok && errors.As(e.err, classed)
}

// keys are the credentials of the configuration, read late and not kept for long.
type keys struct{ o Options }

func (k *keys) Retrieve(context.Context) (aws.Credentials, error) {
	id, err := k.o.AccessKey()
	if err != nil {
		return aws.Credentials{}, err
	}
	secret, err := k.o.SecretKey()
	if err != nil {
		return aws.Credentials{}, err
	}
	return aws.Credentials{AccessKeyID: id, SecretAccessKey: secret, Source: "s3.access_key", CanExpire: true, Expires: time.Now().Add(k.o.keysFor)}, nil
}
