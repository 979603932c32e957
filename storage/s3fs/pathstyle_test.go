package s3fs

import (
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"testing"
)

// TestOrPathStyle: what comes of a bucket in the host name is said with that.
func TestOrPathStyle(t *testing.T) {
	for name, err := range map[string]error{
		"no such host":      &net.DNSError{Err: "no such host", Name: "bkt.store", IsNotFound: true},
		"other certificate": x509.HostnameError{Certificate: new(x509.Certificate), Host: "bkt.store"},
		"other answer":      errors.New("what it says is no listing of the bucket"),
	} {
		for _, byPath := range []bool{false, true} {
			f := &FS{o: Options{Bucket: "bkt", Endpoint: "https://store", PathStyle: byPath}}
			if hint := hintOf(f.startError(err)); strings.Contains(hint, "s3.path_style: true") == byPath || hint == "" {
				t.Errorf("%s, path style %t: the hint is %q", name, byPath, hint)
			}
		}
	}
	f := &FS{o: Options{Bucket: "bkt"}}
	if hint := hintOf(f.startError(&net.DNSError{Err: "no such host"})); strings.Contains(hint, "path_style") {
		t.Errorf("of AWS the hint is %q", hint)
	}
}
