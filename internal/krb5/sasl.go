package krb5

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/chksumtype"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/spnego"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/hivesink/hivesink/internal/fault"
)

// Mechanism is the name by which SASL knows Kerberos.
const Mechanism = "GSSAPI"

// Protections of a SASL stream, as bits of the server's offer (RFC 4752, 3.3).
const (
	protectNone      = 1
	protectIntegrity = 2
	protectPrivacy   = 4
)

// maxToken is the largest message that we take, 24 bits.
const maxToken = 1<<24 - 1

// Handshake is one side, ours, of a SASL authentication by GSSAPI.
//
//	AP-REQ ──► ◄── AP-REP, nothing ──► ◄── offer, choice ──►
type Handshake struct {
	id      *Identity
	service string
	auth    types.Authenticator
	session types.EncryptionKey
	seal    *sealer
	step    int
	layer   *Layer
}

// Initiate begins an authentication to a service, such as kafka/host, and
// returns the first message to send.
func (t *Tickets) Initiate(ctx context.Context, service string) (*Handshake, []byte, error) {
	type ticket struct {
		who  *types.PrincipalName
		from string
		tkt  messages.Ticket
		key  types.EncryptionKey
	}
	got, err := within(ctx, t, func() (ticket, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		c, err := t.current()
		if err != nil {
			return ticket{}, err
		}
		tkt, key, err := c.GetServiceTicket(service)
		if err != nil {
			t.last = nil
			return ticket{}, t.id.ticketError(service, err)
		}
		who := c.Credentials.CName()
		return ticket{&who, c.Credentials.Domain(), tkt, key}, nil
	})
	if err != nil {
		return nil, nil, err
	}
	h := &Handshake{id: &t.id, service: service, session: got.key}
	first, err := h.request(got.from, *got.who, got.tkt)
	if err != nil {
		return nil, nil, h.failed(err)
	}
	return h, first, nil
}

// request is the first message: the ticket, and a proof that we have its key.
func (h *Handshake) request(realm string, who types.PrincipalName, ticket messages.Ticket) (_ []byte, err error) {
	if h.auth, err = types.NewAuthenticator(realm, who); err != nil {
		return nil, err
	}
	if h.seal, err = newSealer(h.session); err != nil { // before anything is sent
		return nil, err
	}
	if err := h.auth.GenerateSeqNumberAndSubKey(h.session.KeyType, h.seal.etype.GetKeyByteSize()); err != nil {
		return nil, err
	}
	// RFC 4121, 4.1.1: no channel bindings, and what the context is to do.
	sum := make([]byte, 24)
	binary.LittleEndian.PutUint32(sum, 16)
	binary.LittleEndian.PutUint32(sum[20:], gssapi.ContextFlagMutual|gssapi.ContextFlagReplay|gssapi.ContextFlagSequence|gssapi.ContextFlagConf|gssapi.ContextFlagInteg)
	h.auth.Cksum = types.Checksum{CksumType: chksumtype.GSSAPI, Checksum: sum}
	req, err := messages.NewAPReq(ticket, h.session, h.auth)
	if err != nil {
		return nil, err
	}
	types.SetFlag(&req.APOptions, flags.APOptionMutualRequired)
	body, err := req.Marshal()
	if err != nil {
		return nil, err
	}
	return initialToken(body), nil
}

// Step takes a message of the server and returns the next one of ours. With done
// it is the last one.
func (h *Handshake) Step(in []byte) (out []byte, done bool, err error) {
	h.step++
	switch h.step {
	case 1:
		return []byte{}, false, h.failed(h.reply(in))
	case 2:
		out, err := h.choose(in)
		return out, err == nil, h.failed(err)
	}
	return nil, false, h.failed(errors.New("the server asks on after the end"))
}

// Layer protects the stream after the last step; nil: it is not protected.
func (h *Handshake) Layer() *Layer { return h.layer }

func (h *Handshake) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s: %w", h.id.At, h.service, err)
}

// reply checks that the server could read the ticket (KR3), and takes the key
// and numbers of the messages that follow.
func (h *Handshake) reply(in []byte) error {
	var t spnego.KRB5Token
	if err := t.Unmarshal(in); err != nil {
		return fmt.Errorf("the answer of the server is not Kerberos': %w", err)
	}
	switch {
	case t.IsKRBError() && says(t.KRBError, "KRB_AP_ERR_SKEW"):
		return fault.Wrap(fault.Config, "set the clocks, by NTP best", fmt.Errorf("the clocks of this host and of the server differ: %w", t.KRBError))
	case t.IsKRBError():
		return fault.Wrap(fault.Config, "", fmt.Errorf("the server refuses the ticket: %w", t.KRBError))
	case !t.IsAPRep():
		return errors.New("the server does not answer the ticket")
	}
	if len(t.APRep.EncPart.Cipher) < h.seal.least() {
		return errors.New("the answer of the server is cut short")
	}
	text, err := crypto.DecryptEncPart(t.APRep.EncPart, h.session, keyusage.AP_REP_ENCPART)
	if err != nil {
		return fmt.Errorf("the server does not show that it has its key: %w", err)
	}
	var part messages.EncAPRepPart
	if err := part.Unmarshal(text); err != nil {
		return err
	}
	if part.CTime.Unix() != h.auth.CTime.Unix() || part.Cusec != h.auth.Cusec {
		return errors.New("the server does not show that it has its key: it answers another request")
	}
	key, acceptors := h.auth.SubKey, byte(0)
	if len(part.Subkey.KeyValue) > 0 {
		key, acceptors = part.Subkey, acceptorSubkey
	}
	if h.seal, err = newSealer(key); err != nil {
		return err
	}
	h.seal.flags, h.seal.ours, h.seal.theirs = acceptors, uint64(uint32(h.auth.SeqNumber)), uint64(uint32(part.SequenceNumber))
	return nil
}

// choose answers the server's offer of protections and of the largest message it
// takes (KR4).
func (h *Handshake) choose(in []byte) ([]byte, error) {
	offer, err := h.seal.unwrap(in, false)
	if err != nil {
		return nil, err
	}
	if len(offer) != 4 {
		return nil, fmt.Errorf("the server offers %d bytes of protection", len(offer))
	}
	ours := uint32(maxToken)
	most := int(binary.BigEndian.Uint32(offer) & maxToken)
	var choice byte
	switch has := offer[0]; {
	case has&protectNone != 0:
		choice, ours = protectNone, 0
	case has&protectIntegrity != 0:
		choice = protectIntegrity
	case has&protectPrivacy != 0:
		choice = protectPrivacy
	default:
		return nil, fmt.Errorf("the server offers no protection that is known: %#x", has)
	}
	answer := binary.BigEndian.AppendUint32(nil, ours)
	answer[0] = choice
	out, err := h.seal.wrap(answer, false)
	if choice != protectNone {
		h.layer = &Layer{seal: h.seal, secret: choice == protectPrivacy, most: most}
	}
	return out, err
}

// Layer wraps what is sent and unwraps what comes, in turn.
type Layer struct {
	seal   *sealer
	secret bool
	most   int
}

// Most is how many bytes one wrapped message may carry.
func (l *Layer) Most() int { return max(l.most-128, 1) } // header, confounder, sum

// Wrap protects a message.
func (l *Layer) Wrap(plain []byte) ([]byte, error) { return l.seal.wrap(plain, l.secret) }

// Unwrap is the message in what has come.
func (l *Layer) Unwrap(token []byte) ([]byte, error) { return l.seal.unwrap(token, l.secret) }

// initialToken frames an AP-REQ as the first token of the mechanism (RFC 4121,
// 4.1): application tag 0, the mechanism's name, the kind of message.
func initialToken(apReq []byte) []byte {
	mechanism := []byte{0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02} // 1.2.840.113554.1.2.2
	body := append(append(mechanism, 0x01, 0x00), apReq...)
	return append(derHead(0x60, len(body)), body...)
}

// derHead is the tag and length of a DER element.
func derHead(tag byte, n int) []byte {
	if n < 0x80 {
		return []byte{tag, byte(n)}
	}
	var length []byte
	for ; n > 0; n >>= 8 {
		length = append([]byte{byte(n)}, length...)
	}
	return append([]byte{tag, 0x80 | byte(len(length))}, length...)
}
