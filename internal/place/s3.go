package place

import (
	"context"
	"time"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/internal/tlsopt"
	"github.com/hivesink/hivesink/storage/s3fs"
)

func onS3(ctx context.Context, cfg *config.Config, notify Notify) (*Place, error) {
	s := &cfg.S3
	o := s3fs.Options{
		Bucket: cfg.Table.Location.Host, Endpoint: s.Endpoint, Region: s.Region, PathStyle: s.PathStyle,
		ConnectTimeout: time.Duration(s.ConnectTimeout), RequestTimeout: time.Duration(s.RequestTimeout), RetryFor: time.Duration(s.RetryFor),
		PartSize: int64(s.PartSize), Concurrency: s.Concurrency, Notify: notify,
	}
	if s.SecretKey.IsSet() {
		o.AccessKey = func() (string, error) { return s.AccessKey.Read("s3.access_key") }
		o.SecretKey = func() (string, error) { return s.SecretKey.Read("s3.secret_key") }
	}
	var err error
	if o.TLS, err = tlsopt.Client("s3.tls", s.TLS); err != nil {
		return nil, err
	}
	fs, err := s3fs.New(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Place{FS: fs, Root: Root(cfg), close: fs.Close}, nil
}
