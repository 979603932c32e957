package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/twmb/franz-go/pkg/sasl"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/internal/krb5"
)

// kerberos is the mechanism GSSAPI. Each connection, and each time the broker
// wants to hear again who we are (connections.max.reauth.ms), asks for a ticket
// that is good then, so that a run may outlive any ticket.
type kerberos struct {
	tickets *krb5.Tickets
	service string
}

const atKerberos = "source.kafka.sasl.kerberos"

func newKerberos(c *config.Kerberos) (sasl.Mechanism, error) {
	k := &kerberos{service: cmp.Or(c.Service, "kafka"), tickets: krb5.NewTickets(krb5.Identity{
		At: atKerberos, Principal: c.Principal, Keytab: c.Keytab, TicketCache: c.TicketCache, Krb5Conf: c.Krb5Conf})}
	if strings.ContainsAny(k.service, "/@") {
		return nil, fault.New(fault.Config, "kafka for brokers with principals kafka/HOST@REALM", "%s.service: %q is not the first part of a principal", atKerberos, k.service)
	}
	return k, nil
}

func (k *kerberos) Name() string { return krb5.Mechanism }

// Authenticate begins with the broker at host:port. The context is the client's,
// which lasts for ever.
func (k *kerberos) Authenticate(ctx context.Context, address string) (sasl.Session, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, nil, fmt.Errorf("source.kafka.brokers: %w", err)
	}
	h, first, err := k.tickets.Initiate(ctx, k.service+"/"+host)
	if err != nil {
		return nil, nil, &kerberosError{err}
	}
	return &handshake{k, h}, first, nil
}

// handshake is one authentication.
type handshake struct {
	k *kerberos
	h *krb5.Handshake
}

func (s *handshake) Challenge(in []byte) (bool, []byte, error) {
	out, done, err := s.h.Step(in)
	if err == nil && s.h.Layer() != nil {
		err = errors.New(atKerberos + ": the broker wants messages to be protected, which Kafka's protocol has no place for: use TLS")
	}
	if err != nil {
		s.k.tickets.Forget()
		return false, nil, &kerberosError{err}
	}
	return done, out, nil
}

// kerberosError names its option itself.
type kerberosError struct{ err error }

func (e *kerberosError) Error() string { return e.err.Error() }
func (e *kerberosError) Unwrap() error { return e.err }
