package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/internal/tlsopt"
)

// refusal is an error that trying again does not mend, with the option that is
// likely wrong; "" when trying again may.
func refusal(err error) (option, hint string) {
	var (
		first  *kgo.ErrFirstReadEOF
		ticket *kerberosError
	)
	if option, hint = tlsopt.Refusal("source.kafka.tls", "the broker", err); option != "" && !strings.Contains(err.Error(), "tls alert record") {
		return option, hint
	}
	switch {
	case errors.As(err, &ticket) && fault.ClassOf(ticket) == fault.Retry:
		return "", "" // no KDC answers
	case errors.As(err, &ticket):
		return atKerberos, ""
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return "source.kafka.sasl", "check username, password and mechanism; with GSSAPI, whether kerberos.service and the broker's address make the broker's own principal"
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		return "source.kafka.sasl.mechanism", "the broker does not offer it"
	case strings.Contains(err.Error(), "tls alert record"):
		return "source.kafka.tls", "the port wants TLS or SASL: add tls, such as tls: {ca: FILE}, or use the port without"
	case errors.As(err, &first):
		return "source.kafka.tls", "the broker closed the connection at once, as one does that wants TLS or SASL: check tls and sasl, or use the port without"
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		return "source.kafka.sasl.username", "grant the user READ and DESCRIBE on the topics"
	case isSASL(err):
		return "source.kafka.sasl", "check username, password and mechanism"
	}
	return "", ""
}

// isSASL knows what the client says when authentication fails on its side. What
// the network says may have the name of a host in it, such as kafka-sasl.
func isSASL(err error) bool {
	var (
		op  *net.OpError
		dns *net.DNSError
	)
	if errors.As(err, &op) || errors.As(err, &dns) {
		return false
	}
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "sasl") || strings.Contains(text, "scram")
}

// startError is what ends a start: one error that names the option.
func startError(broker string, err error) error {
	var ticket *kerberosError
	if errors.As(err, &ticket) {
		return fault.Wrap(fault.Config, "", fmt.Errorf("broker %s: %w", broker, ticket.err))
	}
	if option, hint := refusal(err); option != "" {
		return fault.Wrap(fault.Config, hint, fmt.Errorf("%s: broker %s: %w", option, broker, err))
	}
	hint := "is a broker listening there?"
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		hint = "no such host"
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		hint = "it does not answer; is there a firewall?"
	}
	return fault.Wrap(fault.Config, hint, fmt.Errorf("source.kafka.brokers: %s: %w", broker, err))
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// isFatal says whether an error of a partition's fetch ends the run.
func isFatal(err error) bool {
	return errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.UnsupportedVersion) ||
		errors.Is(err, kerr.UnsupportedForMessageFormat) || errors.Is(err, kerr.UnsupportedCompressionType)
}
