package s3fs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
)

// FS is a bucket.
type FS struct {
	o      Options
	client *s3.Client
	bucket *string

	greeted  atomic.Bool // the store has answered New
	cache    cache       // of all readers
	unlisted atomic.Bool // the store has failed to list uploads

	mu   sync.Mutex
	sent map[string]sentUpload // by id, those of this process that are neither completed nor aborted
}

var (
	_ storage.Objects = (*FS)(nil)
	_ storage.Slicer  = (*FS)(nil)
)

// New connects to a bucket and looks whether it is there and may be read. What
// is wrong with address, credentials or bucket is an error of class Config that
// names the option; it comes within startFor.
func New(ctx context.Context, o Options) (*FS, error) {
	o.defaults()
	ctx, cancel := context.WithTimeout(ctx, startFor)
	defer cancel()
	load := []func(*config.LoadOptions) error{config.WithHTTPClient(transport(o))}
	if o.Region != "" {
		load = append(load, config.WithRegion(o.Region))
	}
	if o.SecretKey != nil {
		load = append(load, config.WithCredentialsProvider(&keys{o: o}))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fault.Wrap(fault.Config, "set s3.region, s3.access_key and s3.secret_key, or mend the AWS configuration",
			fmt.Errorf("s3: load the AWS configuration: %w", err))
	}
	if cfg.Region == "" {
		cfg.Region = "us-east-1"
	}
	f := &FS{o: o, bucket: aws.String(o.Bucket), sent: make(map[string]sentUpload),
		cache: cache{budget: readCache, shared: make(map[string]*cached)}}
	if cfg.Credentials != nil {
		cfg.Credentials = logins{cfg.Credentials}
	}
	f.client = s3.NewFromConfig(cfg, func(so *s3.Options) {
		so.Retryer = aws.NopRetryer{} // do repeats: it knows what a repetition means
		so.Logger = logging.Nop{}     // who wants to know is notified
		so.UsePathStyle = o.PathStyle
		so.DisableLogOutputChecksumValidationSkipped = true
		if o.Endpoint != "" {
			so.BaseEndpoint = aws.String(o.Endpoint)
		}
	})
	err = f.greet(ctx)
	f.greeted.Store(err == nil)
	return f, err
}

// logins are credentials whose errors do not pass for the store's: a file of a
// key that is not there for a moment, or a "not found" of who gives them out,
// says nothing about objects.
type logins struct{ of aws.CredentialsProvider }

func (l logins) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := l.of.Retrieve(ctx)
	if err != nil {
		err = &loginError{err}
	}
	return c, err
}

// loginError shows of its cause the class and the words only.
type loginError struct{ err error }

func (e *loginError) Error() string { return e.err.Error() }

func (e *loginError) As(target any) bool {
	classed, ok := target.(**fault.Error)
	return ok && errors.As(e.err, classed)
}

// closeFor bounds what Close may take.
const closeFor = 10 * time.Second

// Close aborts, as far as that goes, the uploads that were not completed: a
// process that is fenced may have begun one after its successor looked for them.
// An upload that is not visible by now is of no use to anybody.
func (f *FS) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeFor)
	defer cancel()
	f.mu.Lock()
	left := maps.Clone(f.sent)
	f.mu.Unlock()
	for id, u := range left { // each by itself: the order does not matter
		_ = f.abort(ctx, u.key, id) // the bucket's lifecycle rule does it else
	}
	return nil
}

// transport has a deadline for each step of a connection. What the body takes
// is bounded by the request's own (X1). The SDK's client takes in what the AWS
// configuration says of it.
func transport(o Options) aws.HTTPClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.DialContext = (&net.Dialer{Timeout: o.ConnectTimeout, KeepAlive: 30 * time.Second}).DialContext
		t.TLSHandshakeTimeout = o.ConnectTimeout
		t.ResponseHeaderTimeout = o.RequestTimeout
		t.MaxIdleConns, t.MaxIdleConnsPerHost = 64, 64
		if o.TLS != nil {
			t.TLSClientConfig = o.TLS.Clone()
		}
	})
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
