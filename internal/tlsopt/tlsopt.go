// Package tlsopt makes TLS settings of the options that say them, and says which
// option is at fault when a handshake fails.
package tlsopt

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/internal/fault"
)

// Client is what the options at a config path say; nil when there are none. A
// renewed client certificate is seen by the next handshake; the authorities are
// read once.
func Client(at string, c *config.TLS) (*tls.Config, error) {
	if c == nil {
		return nil, nil
	}
	t := &tls.Config{ServerName: c.ServerName, MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		text, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, fault.Wrap(fault.Config, "paths start at the working directory", fmt.Errorf("%s.ca: %w", at, err))
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(text) {
			return nil, fault.New(fault.Config, "it must be PEM text", "%s.ca: %s has no certificate", at, c.CA)
		}
	}
	if c.Cert == "" {
		return t, nil
	}
	shown := &certificate{at: at, c: c}
	if err := shown.read(); err != nil {
		return nil, err
	}
	if leaf := shown.last.Leaf; leaf != nil && time.Now().After(leaf.NotAfter) {
		return nil, fault.New(fault.Config, "renew it", "%s.cert: %s has expired at %s", at, c.Cert, leaf.NotAfter.Format(time.RFC3339))
	}
	t.GetClientCertificate = shown.show
	return t, nil
}

// certificate is the one that is shown to servers. Its files are read at every
// handshake: a run outlives short-lived certificates, which somebody renews.
type certificate struct {
	at string
	c  *config.TLS

	mu   sync.Mutex
	last *tls.Certificate
}

func (x *certificate) read() error {
	cert, err := os.ReadFile(x.c.Cert)
	if err != nil {
		return fault.Wrap(fault.Config, "paths start at the working directory", fmt.Errorf("%s.cert: %w", x.at, err))
	}
	key, err := x.c.Key.Read(x.at + ".key")
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(cert, []byte(key))
	if err != nil {
		// The library's errors say what does not fit, and nothing of the key.
		return fault.Wrap(fault.Config, "both must be PEM text, the key without a password", fmt.Errorf("%s.cert and key: %w", x.at, err))
	}
	x.last = &pair
	return nil
}

// show gives the certificate as it is now. While its files are being replaced,
// and do not fit each other, it is the one before.
func (x *certificate) show(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	_ = x.read() // the server says what it thinks of the one before
	if asked.SupportsCertificate(x.last) != nil {
		return new(tls.Certificate), nil // none, as without this function
	}
	return x.last, nil
}

// Refusal is a handshake that trying again does not mend: the option at fault,
// below the config path of the TLS options, and what to do. "" when err is of
// another kind. peer names the server in the hint: "the broker".
func Refusal(at, peer string, err error) (option, hint string) {
	var (
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
		header  tls.RecordHeaderError
		alert   tls.AlertError
	)
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return at, "renew " + peer + "'s certificate"
	case errors.As(err, &unknown):
		return at + ".ca", "name the file with the authority that signed " + peer + "'s certificate"
	case errors.As(err, &name):
		return at + ".server_name", "connect to a name in " + peer + "'s certificate, or name one of them here"
	case errors.As(err, &invalid):
		return at, ""
	case errors.As(err, &header):
		return at, "the port does not speak TLS: remove tls, or use the port that does"
	case errors.As(err, &alert), strings.Contains(err.Error(), "remote error: tls:"):
		return at, peer + " refuses the certificate that is shown, or wants one: check cert and key"
	}
	return "", ""
}
