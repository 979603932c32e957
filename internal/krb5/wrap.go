package krb5

import (
	"bytes"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/crypto/etype"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Flags of a wrap token (RFC 4121, 4.2.2).
const (
	fromAcceptor   = 1
	sealed         = 2
	acceptorSubkey = 4

	headerLen = 16
)

// sealer makes and reads wrap tokens (RFC 4121, 4.2.6.2). Theirs must come in
// the order of their numbers (KR4).
type sealer struct {
	key    types.EncryptionKey
	etype  etype.EType
	flags  byte // of ours
	ours   uint64
	theirs uint64
}

func newSealer(key types.EncryptionKey) (*sealer, error) {
	switch key.KeyType {
	case 17, 18, 19, 20: // AES: those whose tokens RFC 4121 describes
	default:
		return nil, fmt.Errorf("keys of type %d (RC4, DES) are not supported: give the server's principal an AES key", key.KeyType)
	}
	e, err := crypto.GetEtype(key.KeyType)
	return &sealer{key: key, etype: e}, err
}

// least is how long any encrypted text is; the library panics at shorter ones.
func (s *sealer) least() int { return s.etype.GetConfounderByteSize() + s.etype.GetHMACBitLength()/8 }

// header is of a token with no rotation; ec is the number of bytes behind the
// payload.
func header(flags byte, ec uint16, number uint64) []byte {
	h := []byte{0x05, 0x04, flags, 0xff, 0, 0, 0, 0}
	binary.BigEndian.PutUint16(h[4:], ec)
	return binary.BigEndian.AppendUint64(h, number)
}

func (s *sealer) wrap(plain []byte, secret bool) ([]byte, error) {
	number := s.ours
	s.ours++
	if secret {
		h := header(s.flags|sealed, 0, number)
		_, text, err := s.etype.EncryptMessage(s.key.KeyValue, append(bytes.Clone(plain), h...), keyusage.GSSAPI_INITIATOR_SEAL)
		return append(h, text...), err
	}
	// The sum is over a header whose lengths are zero.
	sum, err := s.etype.GetChecksumHash(s.key.KeyValue, append(bytes.Clone(plain), header(s.flags, 0, number)...), keyusage.GSSAPI_INITIATOR_SEAL)
	if err != nil {
		return nil, err
	}
	return append(append(header(s.flags, uint16(len(sum)), number), plain...), sum...), nil
}

var errForged = errors.New("a message of the server does not fit its key: something between us changes messages, or repeats them")

func (s *sealer) unwrap(token []byte, secret bool) ([]byte, error) {
	if len(token) < headerLen || token[0] != 0x05 || token[1] != 0x04 || token[3] != 0xff {
		return nil, errors.New("what the server sends is no wrap token")
	}
	flags, ec, rrc := token[2], binary.BigEndian.Uint16(token[4:]), int(binary.BigEndian.Uint16(token[6:]))
	number := binary.BigEndian.Uint64(token[8:])
	if flags&fromAcceptor == 0 || number != s.theirs || flags&acceptorSubkey != s.flags&acceptorSubkey || secret && flags&sealed == 0 {
		return nil, errForged
	}
	body := token[headerLen:]
	if len(body) > 0 && rrc%len(body) != 0 {
		at := rrc % len(body)
		body = append(bytes.Clone(body[at:]), body[:at]...)
	}
	var plain []byte
	if flags&sealed != 0 {
		if len(body) < s.least() {
			return nil, errForged
		}
		text, err := s.etype.DecryptMessage(s.key.KeyValue, body, keyusage.GSSAPI_ACCEPTOR_SEAL)
		behind := headerLen + int(ec)
		if err != nil || len(text) < behind || subtle.ConstantTimeCompare(text[len(text)-headerLen:], header(flags, ec, number)) != 1 {
			return nil, errForged
		}
		plain = text[:len(text)-behind]
	} else {
		if int(ec) > len(body) {
			return nil, errForged
		}
		plain = body[:len(body)-int(ec)]
		sum, err := s.etype.GetChecksumHash(s.key.KeyValue, append(bytes.Clone(plain), header(flags, 0, number)...), keyusage.GSSAPI_ACCEPTOR_SEAL)
		if err != nil || subtle.ConstantTimeCompare(sum, body[len(plain):]) != 1 {
			return nil, errForged
		}
	}
	s.theirs++
	return plain, nil
}
