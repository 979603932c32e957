package kafka

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
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
// read here for the first time.
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
	password, err := newSecret("source.kafka.sasl.password", c.Password)
	if err != nil {
		return nil, err
	}
	if c.Mechanism == config.MechanismPlain {
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			return plain.Auth{User: c.Username, Pass: password.now()}, nil
		}), nil
	}
	auth := func(context.Context) (scram.Auth, error) {
		return scram.Auth{User: c.Username, Pass: password.now()}, nil
	}
	if c.Mechanism == config.MechanismScram256 {
		return scram.Sha256(auth), nil
	}
	return scram.Sha512(auth), nil
}

// secret is read each time it is used: a run outlives passwords, which somebody
// renews. While it cannot be read, it is the one before.
type secret struct {
	at  string
	ref config.Secret

	mu   sync.Mutex
	last string
}

func newSecret(at string, ref config.Secret) (*secret, error) {
	value, err := ref.Read(at)
	return &secret{at: at, ref: ref, last: value}, err
}

func (s *secret) now() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if value, err := s.ref.Read(s.at); err == nil {
		s.last = value
	}
	return s.last
}
