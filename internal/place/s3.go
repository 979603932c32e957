package place

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/internal/fault"
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
	if o.TLS, err = tlsConfig(s.TLS, "s3.tls"); err != nil {
		return nil, err
	}
	fs, err := s3fs.New(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Place{FS: fs, Root: Root(cfg), close: fs.Close}, nil
}

// tlsConfig is what the options at path say; nil for none.
func tlsConfig(t *config.TLS, path string) (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fault.Wrap(fault.Config, "paths start at the working directory", fmt.Errorf("%s.ca: %w", path, err))
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fault.New(fault.Config, "it wants certificates in PEM form", "%s.ca: %s has no certificate", path, t.CA)
		}
	}
	if t.Cert == "" {
		return c, nil
	}
	cert, err := os.ReadFile(t.Cert)
	if err != nil {
		return nil, fault.Wrap(fault.Config, "paths start at the working directory", fmt.Errorf("%s.cert: %w", path, err))
	}
	key, err := t.Key.Read(path + ".key")
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, []byte(key))
	if err != nil {
		return nil, fault.Wrap(fault.Config, "they must be PEM, and belong together", fmt.Errorf("%s.cert, %s.key: %w", path, path, err))
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}
