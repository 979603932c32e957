package kafka

import (
	"crypto/tls"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/internal/tlsopt"
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
		t, err := tlsopt.Client("source.kafka.tls", c.TLS)
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
