package s3fs

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
)

// startFor is how long finding out that nothing works may take.
const startFor = 10 * time.Second

// greet asks for one key of the bucket: that needs everything an address, keys
// and a bucket can be wrong in.
func (f *FS) greet(ctx context.Context) error {
	err := f.do(ctx, "ListObjectsV2", "", func(ctx context.Context) error {
		out, err := f.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: f.bucket, MaxKeys: aws.Int32(1)})
		if err == nil && aws.ToString(out.Name) != f.o.Bucket {
			err = errors.New("what it says is no listing of the bucket")
		}
		var garbled *smithy.DeserializationError
		if errors.As(err, &garbled) && status(err) < 300 && !errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("what it says is no listing of the bucket: %w", garbled.Err) // but a page for people: no retry
		}
		return err
	})
	return f.startError(err)
}

// startError names the option that a failure at the start comes from.
func (f *FS) startError(err error) error {
	if err == nil {
		return nil
	}
	at := "AWS"
	if f.o.Endpoint != "" {
		at = f.o.Endpoint
	}
	var classed *fault.Error
	if errors.As(err, &classed) && classed.Class == fault.Config {
		return classed // the keys cannot be read
	}
	switch c := code(err); {
	case c == "NoSuchBucket" || c == "NotFound" || c == "InvalidBucketName":
		return fault.Wrap(fault.Config, f.orPathStyle("make the bucket, or check s3.endpoint"),
			fmt.Errorf("table.location: there is no bucket %q at %s: %w", f.o.Bucket, at, err))
	case keysRefused(err) || badSignature(err):
		return fault.Wrap(fault.Config, "", fmt.Errorf("s3.access_key, s3.secret_key: %s refuses them: %w", at, err))
	case c == "RequestTimeTooSkewed":
		return fault.Wrap(fault.Config, "set the clock of this machine", fmt.Errorf("s3.endpoint: %s: %w", at, err))
	case c == "PermanentRedirect" || c == "AuthorizationHeaderMalformed" || c == "IllegalLocationConstraintException" || status(err) == http.StatusMovedPermanently:
		return fault.Wrap(fault.Config, "set the region of the bucket", fmt.Errorf("s3.region: %s: %w", at, err))
	case errors.Is(err, storage.ErrPermission):
		return fault.Wrap(fault.Config, "grant s3:ListBucket, s3:GetObject, s3:PutObject, s3:DeleteObject, s3:AbortMultipartUpload and s3:ListMultipartUploadParts; docs/s3.md has a policy",
			fmt.Errorf("table.location: the keys may not list bucket %q at %s: %w", f.o.Bucket, at, err))
	case noKeys(err):
		return fault.Wrap(fault.Config, "set s3.access_key and s3.secret_key, or give the AWS credential chain something to find",
			fmt.Errorf("s3.access_key: no credentials: %w", err))
	}
	return f.noAnswer(at, err)
}

// noAnswer is the error of an address that no object store answers at.
func (f *FS) noAnswer(at string, err error) error {
	var unknown x509.UnknownAuthorityError
	var lookup *net.DNSError
	switch {
	case errors.As(err, &unknown):
		return fault.Wrap(fault.Config, "name the authority's certificate in s3.tls.ca", fmt.Errorf("s3.endpoint: %s: %w", at, err))
	case badCertificate(err):
		return fault.Wrap(fault.Config, f.orPathStyle("the server needs another certificate"), fmt.Errorf("s3.endpoint: %s: %w", at, err))
	case !passes(err):
		return fault.Wrap(fault.Config, f.orPathStyle("is it an S3-compatible store, and http or https as it is?"), fmt.Errorf("s3.endpoint: %s does not answer as S3 does: %w", at, err))
	}
	hint := fmt.Sprintf("tried for %s; is the address right, and the store up?", f.o.startFor)
	if errors.As(err, &lookup) {
		hint = f.orPathStyle(hint)
	}
	return fault.Wrap(fault.Halt, hint, fmt.Errorf("s3.endpoint: %s cannot be reached: %w", at, err))
}

// orPathStyle is a hint for what may also come from the bucket being a part of the
// host name: there is no such host, or another answers, or one that has no
// certificate for it.
func (f *FS) orPathStyle(hint string) string {
	if f.o.Endpoint == "" || f.o.PathStyle {
		return hint
	}
	return "set s3.path_style: true, as most stores that are not AWS want it; else: " + hint
}

// badCertificate: no further try helps against these.
func badCertificate(err error) bool {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	return errors.As(err, &unknown) || errors.As(err, &invalid) || errors.As(err, &name)
}

// noKeys knows the SDK's text for a chain that found nothing; it has no type.
func noKeys(err error) bool {
	return strings.Contains(err.Error(), "failed to refresh cached credentials") || strings.Contains(err.Error(), "get credentials")
}
