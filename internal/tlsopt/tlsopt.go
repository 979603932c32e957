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
	"time"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/internal/fault"
)

// Client is what the options at a config path say; nil when there are none.
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
	cert, err := os.ReadFile(c.Cert)
	if err != nil {
		return nil, fault.Wrap(fault.Config, "paths start at the working directory", fmt.Errorf("%s.cert: %w", at, err))
	}
	key, err := c.Key.Read(at + ".key")
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, []byte(key))
	if err != nil {
		// The library's errors say what does not fit, and nothing of the key.
		return nil, fault.Wrap(fault.Config, "both must be PEM text, the key without a password", fmt.Errorf("%s.cert and key: %w", at, err))
	}
	if leaf := pair.Leaf; leaf != nil && time.Now().After(leaf.NotAfter) {
		return nil, fault.New(fault.Config, "renew it", "%s.cert: %s has expired at %s", at, c.Cert, leaf.NotAfter.Format(time.RFC3339))
	}
	t.Certificates = []tls.Certificate{pair}
	return t, nil
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
