package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/internal/fault"
)

const (
	// requestTimeout is how long an answer may take, beside what the request
	// itself asks the broker to wait.
	requestTimeout = 10 * time.Second
	dialTimeout    = 5 * time.Second
)

// clientOptions are the configuration's in the words of the client. Secrets are
// read here, at each start.
func clientOptions(c *config.Kafka) ([]kgo.Opt, error) {
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...),
		kgo.ClientID("hivesink"),
		kgo.RequestTimeoutOverhead(requestTimeout),
		kgo.DisableClientMetrics(),
		// What the client says of topics and leaders is never older.
		kgo.MetadataMinAge(minBackoff),
	}
	dialer := &net.Dialer{Timeout: dialTimeout}
	if c.TLS == nil {
		opts = append(opts, kgo.Dialer(dialer.DialContext))
	} else {
		t, err := tlsConfig("source.kafka.tls", c.TLS)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.Dialer((&tls.Dialer{NetDialer: dialer, Config: t}).DialContext))
	}
	if c.SASL != nil {
		m, err := mechanism(c.SASL)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.SASL(m))
	}
	return opts, nil
}

func tlsConfig(at string, c *config.TLS) (*tls.Config, error) {
	t := &tls.Config{ServerName: c.ServerName, MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		text, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, fault.Wrap(fault.Config, "", fmt.Errorf("%s.ca: %w", at, err))
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
		return nil, fault.Wrap(fault.Config, "", fmt.Errorf("%s.cert: %w", at, err))
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

func mechanism(c *config.SASL) (sasl.Mechanism, error) {
	if c.Mechanism == config.MechanismGSSAPI {
		return newKerberos(&c.Kerberos)
	}
	password, err := c.Password.Read("source.kafka.sasl.password")
	if err != nil {
		return nil, err
	}
	switch c.Mechanism {
	case config.MechanismPlain:
		return plain.Auth{User: c.Username, Pass: password}.AsMechanism(), nil
	case config.MechanismScram256:
		return scram.Auth{User: c.Username, Pass: password}.AsSha256Mechanism(), nil
	default:
		return scram.Auth{User: c.Username, Pass: password}.AsSha512Mechanism(), nil
	}
}
