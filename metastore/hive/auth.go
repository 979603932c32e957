package hive

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os/user"
	"strings"

	"github.com/apache/thrift/lib/go/thrift"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/internal/krb5"
	"github.com/hivesink/hivesink/internal/tlsopt"
)

// Statuses of a message of the negotiation, which every message starts with.
const (
	saslStart    = 1
	saslOK       = 2
	saslBad      = 3
	saslError    = 4
	saslComplete = 5
)

// maxNegotiation bounds a message of the negotiation.
const maxNegotiation = 1 << 20

// encrypt does the handshake of TLS on a fresh connection, where that is wanted.
func (o *Options) encrypt(ctx context.Context, raw net.Conn, address string) (net.Conn, error) {
	if o.TLS == nil {
		return raw, nil
	}
	conf := o.TLS
	if conf.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		conf = conf.Clone()
		conf.ServerName = host
	}
	conn := tls.Client(raw, conf)
	err := conn.HandshakeContext(ctx)
	if err == nil {
		return conn, nil
	}
	if option, hint := tlsopt.Refusal("metastore.tls", "the metastore", err); option != "" {
		return nil, &authError{err: fault.Wrap(fault.Config, hint, fmt.Errorf("%s: metastore %s: %w", option, address, err))}
	}
	if errors.Is(err, io.EOF) || timedOut(err) {
		return nil, &authError{silent: true, err: fault.Wrap(fault.Config, "does the metastore want TLS? without it leave out metastore.tls",
			fmt.Errorf("metastore.tls: %s does not answer the handshake: %w", address, err))}
	}
	return nil, fmt.Errorf("metastore.tls: %s: %w", address, err)
}

// negotiate authenticates a fresh connection and returns the transport of its
// messages.
func (o *Options) negotiate(ctx context.Context, conn net.Conn, address string) (thrift.TTransport, error) {
	w := newWire(conn)
	switch o.Auth.Mechanism {
	case "":
		return w, nil
	case Plain:
		password, err := o.Auth.Password()
		if err != nil {
			return nil, &authError{err: err}
		}
		err = w.plain(o.Auth.User, password)
		if err != nil {
			return nil, refused(err, address, Plain)
		}
		return &frames{wire: w}, nil
	case GSSAPI:
		return o.kerberos(ctx, w, address)
	}
	return nil, &authError{err: fault.New(fault.Config, "use PLAIN or GSSAPI, or no sasl", "metastore.sasl.mechanism: %s is not known", o.Auth.Mechanism)}
}

// hints for those who are not let in.
var hints = map[string]string{
	Plain:  "check metastore.sasl.username and password, and whether the server asks for Kerberos (GSSAPI) instead",
	GSSAPI: "is metastore.sasl.kerberos.service the server's principal, and does the server ask for Kerberos?",
}

// refused words an authentication that failed. A server that does not speak
// SASL closes the connection, or waits for the rest of what it takes for a
// message.
func refused(err error, address, mechanism string) error {
	var no *saslRefusal
	switch {
	case errors.As(err, &no):
		return &authError{err: fault.Wrap(fault.Config, hints[mechanism], fmt.Errorf("metastore.sasl: %s refuses %s: %w", address, mechanism, err))}
	case errors.Is(err, io.EOF) || timedOut(err):
		return &authError{silent: true, err: fault.Wrap(fault.Config, "does the metastore want SASL? without it leave out metastore.sasl",
			fmt.Errorf("metastore.sasl: %s does not answer %s: %w", address, mechanism, err))}
	}
	return fmt.Errorf("metastore.sasl: %s, %s: %w", address, mechanism, err)
}

// saslRefusal is what the server says when it does not let us in.
type saslRefusal struct{ text string }

func (e *saslRefusal) Error() string { return e.text }

// plain is SASL PLAIN: no identity to act for, the name, the password.
func (t *wire) plain(name, password string) error {
	if err := t.send(saslStart, []byte(Plain)); err != nil {
		return err
	}
	if err := t.send(saslOK, []byte("\x00"+name+"\x00"+password)); err != nil {
		return err
	}
	status, text, err := t.receive()
	if err != nil {
		return err
	}
	if status != saslComplete {
		return fmt.Errorf("the server goes on with status %d, %q", status, text)
	}
	return nil
}

// kerberos authenticates by a ticket. What the server wants to be protected is
// (hadoop.rpc.protection there).
func (o *Options) kerberos(ctx context.Context, w *wire, address string) (thrift.TTransport, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fault.New(fault.Config, "host:port", "metastore.uri: %w", err)
	}
	service, _, _ := strings.Cut(strings.ReplaceAll(o.Auth.Service, "_HOST", host), "@") // its realm is krb5.conf's to know
	h, first, err := o.tickets.Initiate(ctx, service)
	if err != nil {
		return nil, ticketError(err)
	}
	if err := w.exchange(h, first); err != nil {
		o.tickets.Forget()
		return nil, refused(err, address, GSSAPI)
	}
	if l := h.Layer(); l != nil {
		return &frames{wire: w, layer: l}, nil
	}
	return &frames{wire: w}, nil
}

// ticketError: what the KDC refuses stays; one that does not answer is an outage
// like the metastore's own.
func ticketError(err error) error {
	if fault.ClassOf(err) == fault.Config {
		return &authError{err: err}
	}
	return err
}

// exchange goes through the messages of a handshake.
func (t *wire) exchange(h *krb5.Handshake, out []byte) error {
	if err := t.send(saslStart, []byte(GSSAPI)); err != nil {
		return err
	}
	for done := false; ; {
		status := byte(saslOK)
		if done {
			status = saslComplete
		}
		if err := t.send(status, out); err != nil {
			return err
		}
		status, in, err := t.receive()
		switch {
		case err != nil:
			return err
		case done && status == saslComplete:
			return nil
		case done || status != saslOK:
			return fmt.Errorf("the server goes on with status %d in the middle of the handshake", status)
		}
		if out, done, err = h.Step(in); err != nil {
			return err
		}
	}
}

// send sends one message of the negotiation.
func (t *wire) send(status byte, payload []byte) error {
	head := binary.BigEndian.AppendUint32([]byte{status}, uint32(len(payload)))
	if _, err := t.w.Write(append(head, payload...)); err != nil {
		return err
	}
	return t.w.Flush()
}

// receive takes one; a refusal is an error.
func (t *wire) receive() (status byte, payload []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(t.r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxNegotiation {
		return 0, nil, fmt.Errorf("a message of %d bytes: is this a metastore with SASL?", n)
	}
	payload = make([]byte, n)
	if _, err := io.ReadFull(t.r, payload); err != nil {
		return 0, nil, err
	}
	if head[0] == saslBad || head[0] == saslError {
		return 0, nil, &saslRefusal{string(payload)}
	}
	return head[0], payload, nil
}

// owner is the name under which tables are made.
func (a *Auth) owner() string {
	if a.User != "" {
		return a.User
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "hivesink"
}

// authError: the metastore and this process do not agree on who may ask, and
// how. Waiting does not mend it.
type authError struct {
	err    error
	silent bool // the server has said nothing: it may as well be dying
}

func (e *authError) Error() string { return e.err.Error() }
func (e *authError) Unwrap() error { return e.err }
