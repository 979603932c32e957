package krb5

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/hivesink/hivesink/internal/fault"
)

// kdc answers every question with one error; code 0 answers nothing.
func kdc(t *testing.T, code int32) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				var n [4]byte
				if _, err := io.ReadFull(c, n[:]); err != nil {
					return
				}
				if _, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(n[:]))); err != nil {
					return
				}
				if code == 0 {
					_, _ = c.Read(n[:]) // until the other side is tired of it
					return
				}
				e := messages.NewKRBError(types.NewPrincipalName(2, "krbtgt/R.TEST"), "R.TEST", code, "")
				text, err := e.Marshal()
				if err != nil {
					return
				}
				_, _ = c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
			}()
		}
	}()
	return l.Addr().String()
}

// identity has a keytab of u@R.TEST and a krb5.conf with the KDC at an address.
func identity(t *testing.T, address string) Identity {
	t.Helper()
	dir := t.TempDir()
	kt := keytab.New()
	if err := kt.AddEntry("u", "R.TEST", "secret", time.Now(), 1, 18); err != nil {
		t.Fatal(err)
	}
	text, err := kt.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	id := Identity{At: "x.kerberos", Principal: "u", Keytab: filepath.Join(dir, "u.keytab"), Krb5Conf: filepath.Join(dir, "krb5.conf")}
	if err := os.WriteFile(id.Keytab, text, 0o600); err != nil {
		t.Fatal(err)
	}
	conf := "[libdefaults]\n default_realm = R.TEST\n dns_lookup_kdc = false\n udp_preference_limit = 1\n"
	if address != "" {
		conf += "[realms]\n R.TEST = {\n  kdc = " + address + "\n }\n"
	}
	if err := os.WriteFile(id.Krb5Conf, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	return id
}

// KR5: what a KDC says becomes an option and a class.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		address string
		class   fault.Class
		want    string
	}{
		"unknown":     {kdc(t, errorcode.KDC_ERR_C_PRINCIPAL_UNKNOWN), fault.Config, "x.kerberos.principal: the KDC does not know u@R.TEST"},
		"locked":      {kdc(t, errorcode.KDC_ERR_CLIENT_REVOKED), fault.Config, "x.kerberos.principal: the KDC refuses u@R.TEST"},
		"expired":     {kdc(t, errorcode.KDC_ERR_KEY_EXPIRED), fault.Config, "x.kerberos.principal"},
		"key type":    {kdc(t, errorcode.KDC_ERR_ETYPE_NOSUPP), fault.Config, "x.kerberos.keytab"},
		"clock":       {kdc(t, errorcode.KRB_AP_ERR_SKEW), fault.Config, "x.kerberos: the clocks of this host and of the KDC differ"},
		"not there":   {"127.0.0.1:1", fault.Retry, "x.kerberos.krb5_conf: no KDC of "},
		"not in conf": {"", fault.Config, "x.kerberos.krb5_conf: "},
	} {
		_, err := NewTickets(identity(t, c.address)).Client(t.Context())
		if fault.ClassOf(err) != c.class || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: class %s: %v", name, fault.ClassOf(err), err)
		}
	}
}

// KR2: a KDC that hangs keeps nobody for longer than they would wait.
func TestHangingKDC(t *testing.T) {
	tickets := NewTickets(identity(t, kdc(t, 0)))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := tickets.Client(ctx)
	if fault.ClassOf(err) != fault.Retry || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "x.kerberos.krb5_conf") {
		t.Errorf("class %s: %v", fault.ClassOf(err), err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, _, err := tickets.Initiate(stopped, "s/h"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestFiles(t *testing.T) {
	good := identity(t, "127.0.0.1:1")
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		p := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(p, []byte(text), mode), os.Chmod(p, mode)); err != nil { // whatever the umask
			t.Fatal(err)
		}
		return p
	}
	for name, c := range map[string]struct {
		change func(*Identity)
		want   string
	}{
		"other's keytab": {func(id *Identity) { id.Principal = "v" }, "has no key of v@R.TEST (x.kerberos.principal)"},
		"open keytab":    {func(id *Identity) { id.Keytab = write("open", "", 0o644) }, "chmod 600"},
		"no krb5.conf":   {func(id *Identity) { id.Krb5Conf = "/nowhere" }, "x.kerberos.krb5_conf /nowhere"},
		"empty cache":    {func(id *Identity) { id.TicketCache = write("empty", "", 0o600) }, "x.kerberos.ticket_cache"},
		"cut cache":      {func(id *Identity) { id.TicketCache = write("cut", "\x05\x04\x00\x0c\x00\x01", 0o600) }, "x.kerberos.ticket_cache"},
		"no cache":       {func(id *Identity) { id.TicketCache = "FILE:/nowhere" }, "x.kerberos.ticket_cache"},
	} {
		id := good
		c.change(&id)
		_, err := NewTickets(id).Client(t.Context())
		if fault.ClassOf(err) != fault.Config || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: class %s: %v", name, fault.ClassOf(err), err)
		}
	}
}

// acceptor makes the tokens of the other side.
func acceptor(t *testing.T, s *sealer, number uint64, plain []byte, secret bool, rotate int) []byte {
	t.Helper()
	flags := s.flags | fromAcceptor
	var head, body []byte
	if secret {
		flags |= sealed
		const filler = 3
		head = header(flags, filler, number)
		text := append(append(bytes.Clone(plain), 0, 0, 0), head...)
		_, sealedText, err := s.etype.EncryptMessage(s.key.KeyValue, text, keyusage.GSSAPI_ACCEPTOR_SEAL)
		if err != nil {
			t.Fatal(err)
		}
		body = sealedText
	} else {
		sum, err := s.etype.GetChecksumHash(s.key.KeyValue, append(bytes.Clone(plain), header(flags, 0, number)...), keyusage.GSSAPI_ACCEPTOR_SEAL)
		if err != nil {
			t.Fatal(err)
		}
		head = header(flags, uint16(len(sum)), number)
		body = append(bytes.Clone(plain), sum...)
	}
	binary.BigEndian.PutUint16(head[6:], uint16(rotate))
	at := rotate % len(body)
	body = append(bytes.Clone(body[len(body)-at:]), body[:len(body)-at]...)
	return append(head, body...)
}

// KR4: tokens come out as they went in, rotated or not; one that was changed,
// repeated, left out, sent back to its sender, or is not secret where it should
// be, is refused.
func TestWrap(t *testing.T) {
	for _, kind := range []int32{17, 18, 19, 20} {
		for _, secret := range []bool{false, true} {
			fresh := func() *sealer {
				s, err := newSealer(types.EncryptionKey{KeyType: kind, KeyValue: bytes.Repeat([]byte{7}, map[int32]int{17: 16, 18: 32, 19: 16, 20: 32}[kind])})
				if err != nil {
					t.Fatal(err)
				}
				s.ours, s.theirs = 5, 9
				return s
			}
			s := fresh()
			for i, text := range []string{"first", "", strings.Repeat("long", 1000)} {
				got, err := s.unwrap(acceptor(t, s, uint64(9+i), []byte(text), secret, 7*i), secret)
				if err != nil || string(got) != text {
					t.Fatalf("type %d, secret %t: %q, %v", kind, secret, got, err)
				}
			}
			if _, err := fresh().unwrap(acceptor(t, s, 9, []byte("open"), false, 0), true); !errors.Is(err, errForged) {
				t.Errorf("not secret: %v", err)
			}
			token := acceptor(t, s, 9, []byte("text"), secret, 28)
			for i := range token {
				if i == 6 || i == 7 { // the rotation is not protected: another one only garbles
					continue
				}
				bad := bytes.Clone(token)
				bad[i] ^= 0x10
				if got, err := fresh().unwrap(bad, secret); err == nil {
					t.Errorf("type %d, secret %t: byte %d changed: %q", kind, secret, i, got)
				}
			}
			for n := range token {
				if _, err := fresh().unwrap(token[:n], secret); err == nil {
					t.Errorf("type %d, secret %t: cut to %d bytes", kind, secret, n)
				}
			}
			s = fresh()
			if _, err := s.unwrap(token, secret); err != nil {
				t.Error(err)
			}
			if _, err := s.unwrap(token, secret); !errors.Is(err, errForged) {
				t.Errorf("repeated: %v", err)
			}
			if _, err := fresh().unwrap(acceptor(t, s, 10, nil, secret, 0), secret); !errors.Is(err, errForged) {
				t.Errorf("one left out: %v", err)
			}
			ours, err := fresh().wrap([]byte("ours"), secret)
			if err != nil {
				t.Error(err)
			}
			if _, err := fresh().unwrap(ours, secret); !errors.Is(err, errForged) {
				t.Errorf("sent back: %v", err)
			}
		}
	}
	if _, err := newSealer(types.EncryptionKey{KeyType: 23}); err == nil || !strings.Contains(err.Error(), "AES") {
		t.Errorf("RC4: %v", err)
	}
}
