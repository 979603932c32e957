package s3fs

import (
	"context"
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
	logins *logins

	greeted  atomic.Bool // the store has answered New
	cache    cache       // of all readers
	unlisted atomic.Bool // the store has failed to list uploads

	mu   sync.Mutex
	sent map[string]sentUpload // by id, those of this process that are neither completed nor aborted
}

var (
	_ storage.Objects = (*FS)(nil)
	_ storage.Slicer  = (*FS)(nil)
	_ storage.Limited = (*FS)(nil)
)

// New connects to a bucket and looks whether it is there and may be read. What
// is wrong with address, credentials or bucket is an error of class Config that
// names the option; it comes within startFor.
func New(ctx context.Context, o Options) (*FS, error) {
	o.defaults()
	ctx, cancel := context.WithTimeout(ctx, o.startFor)
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
		f.logins = &logins{of: cfg.Credentials, every: o.keysFor, read: time.Now(), load: func(ctx context.Context) (aws.CredentialsProvider, error) {
			cfg, err := config.LoadDefaultConfig(ctx, load...)
			return cfg.Credentials, err
		}}
		cfg.Credentials = f.logins
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
