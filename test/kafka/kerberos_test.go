//go:build integration

package kafkatest

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hivesink/hivesink/test/services"
)

// TestKerberos are the tests of the cluster with Kerberos, which is up for them
// only.
func TestKerberos(t *testing.T) {
	h := home(t)
	c := services.KafkaSecure
	if !h.Running(c.Daemon(1)) {
		if err := h.Up(func(s string) { t.Log("up", s) }, c.Service); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := h.Down(c.Service); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("ways in", testKerberosWaysIn)
	t.Run("tickets", testKerberosTickets)
	t.Run("refusals", testKerberosRefusals)
}

// gssapi are the options of a login; more are lines of kerberos.
func gssapi(brokers []string, more ...string) []string {
	return []string{"brokers: [" + strings.Join(brokers, ",") + "]", "sasl: {mechanism: GSSAPI, kerberos: {" + strings.Join(more, ", ") + "}}"}
}

func testKerberosWaysIn(t *testing.T) {
	h := home(t)
	c := services.KafkaSecure
	cache := filepath.Join(t.TempDir(), "cache")
	if err := services.Kinit(h, cache, "hivesink", "hivesink"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KRB5_CONFIG", services.Krb5Conf(h))
	keytab := "keytab: " + services.Keytab(h, "hivesink")
	for name, options := range map[string][]string{
		"keytab":       gssapi(c.Kerberos(), "principal: hivesink@"+services.KrbRealm, keytab, "krb5_conf: "+services.Krb5Conf(h), "service: kafka"),
		"tls":          append(gssapi(c.KerberosTLS(), "principal: hivesink", keytab), "tls: {ca: "+c.Certificates(h)+"/ca.pem}"),
		"ticket cache": gssapi(c.Kerberos(), "ticket_cache: FILE:"+cache),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOn(t, c, 1, nil)
			w.produce(numbered(0, 10, 1)...)
			w.options = append(options, "until: end")
			if s := w.run(); s.RowsRead != 10 {
				t.Errorf("%+v", s)
			}
			w.fsck()
		})
	}
}

// relay stands between the program and the KDC; while it is shut, connections
// are closed at once.
type relay struct {
	net.Listener
	shut    atomic.Bool
	refused atomic.Int64
}

func newRelay(t *testing.T) *relay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: l}
	t.Cleanup(func() { l.Close() })
	go func() { // ends with the listener
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			if r.shut.Load() {
				r.refused.Add(1)
				in.Close()
				continue
			}
			out, err := net.Dial("tcp", services.KDC())
			if err != nil {
				in.Close()
				continue
			}
			go func() { io.Copy(out, in); out.Close() }()
			go func() { io.Copy(in, out); in.Close() }()
		}
	}()
	return r
}

// testKerberosTickets: tickets live for 5 s, and the broker, which forgives 3 s,
// wants to hear every 2 s who we are. The run goes on through several of their
// lives, and through a KDC that is away until the last one is over.
func testKerberosTickets(t *testing.T) {
	h := home(t)
	kdc := newRelay(t)
	conf, err := services.Krb5ConfAt(h, t.TempDir(), kdc.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	keytab := services.Keytab(h, "kafkabrief")
	os.Remove(keytab)
	who := fmt.Sprintf("kafkabrief%d", time.Now().UnixNano())
	if err := services.Principal(h, who, "kafkabrief", `-maxlife "5 seconds"`); err != nil {
		t.Fatal(err)
	}
	w := newWorldOn(t, services.KafkaSecure, 1, nil)
	w.options = gssapi(w.cluster.Kerberos(), "principal: "+who, "keytab: "+keytab, "krb5_conf: "+conf)
	p := w.start()
	rows := 0
	more := func() {
		t.Helper()
		w.produce(&kgo.Record{Value: fmt.Appendf(nil, `{"id":%d}`, rows)})
		rows++
		eventually(t, "the row to be read", func() error { return w.committed(int64(rows)) })
	}
	logins := func() int {
		n, err := services.Logins(h, who)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for began := time.Now(); logins() < 4 || time.Since(began) < 10*time.Second; {
		more()
	}
	if strings.Contains(p.Log(), "sasl") {
		t.Errorf("a ticket was not renewed in time:\n%s", p.Log())
	}
	kdc.shut.Store(true)
	eventually(t, "the run to ask in vain", func() error {
		if kdc.refused.Load() == 0 {
			return fmt.Errorf("it has not asked")
		}
		return nil
	})
	p.await("source.kafka.sasl.kerberos.krb5_conf")
	before := logins()
	kdc.shut.Store(false)
	more()
	if logins() == before {
		t.Error("it went on without a login")
	}
	if s := p.stop(); s.RowsRead != int64(rows) {
		t.Errorf("%d rows, %+v", rows, s)
	}
	w.fsck()
}

// testKerberosRefusals: one error, soon, that names the option.
func testKerberosRefusals(t *testing.T) {
	h := home(t)
	c := services.KafkaSecure
	conf, keytab := services.Krb5Conf(h), services.Keytab(h, "hivesink")
	nowhere, err := services.Krb5ConfAt(h, t.TempDir(), "127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	hasty := filepath.Join(t.TempDir(), "krb5.conf") // forgives the clocks nothing
	text, err := os.ReadFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hasty, []byte(strings.Replace(string(text), "[libdefaults]\n", "[libdefaults]\n  clockskew = 0\n", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	// A key of the right name that the KDC has replaced.
	old := services.Keytab(h, "kafkaold")
	os.Remove(old)
	who := fmt.Sprintf("kafkaold%d", time.Now().UnixNano())
	for _, err := range []error{services.Principal(h, who, "kafkaold"), services.Kadmin(h, "cpw -randkey "+who)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	gone := filepath.Join(t.TempDir(), "gone.keytab") // of a principal that there is no more
	if err := services.Kadmin(h, "addprinc -randkey gone"); err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{"ktadd -k " + gone + " -norandkey gone", "delprinc -force gone"} {
		if err := services.Kadmin(h, q); err != nil {
			t.Fatal(err)
		}
	}
	stale := filepath.Join(t.TempDir(), "stale")
	brief := fmt.Sprintf("kafkastale%d", time.Now().UnixNano())
	os.Remove(services.Keytab(h, "kafkastale"))
	if err := services.Principal(h, brief, "kafkastale", `-maxlife "1 second"`); err != nil {
		t.Fatal(err)
	}
	if err := services.Kinit(h, stale, brief, "kafkastale"); err != nil {
		t.Fatal(err)
	}
	err = services.Until(patience, func() error {
		if err := services.Run("klist", "-s", "-c", stale); err == nil {
			return fmt.Errorf("its ticket lives")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	at := "source.kafka.sasl.kerberos"
	with := func(principal, keytab, conf string, more ...string) []string {
		return gssapi(c.Kerberos(), append([]string{"principal: " + principal, "keytab: " + keytab, "krb5_conf: " + conf}, more...)...)
	}
	for name, f := range map[string]struct {
		options []string
		want    []string
	}{
		"no keytab":          {with("hivesink", "/nowhere", conf), []string{at + ".keytab", "/nowhere"}},
		"keytab of another":  {with("somebody", keytab, conf), []string{at + ".keytab", at + ".principal"}},
		"old key":            {with(who, old, conf), []string{at + ".keytab", "newest key"}},
		"unknown principal":  {with("gone", gone, conf), []string{at + ".principal", "does not know gone@"}},
		"no krb5.conf":       {with("hivesink", keytab, "/nowhere"), []string{at + ".krb5_conf", "/nowhere"}},
		"no such realm":      {with("hivesink@ELSEWHERE.TEST", keytab, conf), []string{at + ".keytab", "hivesink@ELSEWHERE.TEST"}},
		"no KDC":             {with("hivesink", keytab, nowhere), []string{at + ".krb5_conf", "no KDC of " + nowhere + " answers"}},
		"clocks":             {with("hivesink", keytab, hasty), []string{at, "clocks"}},
		"wrong service":      {with("hivesink", keytab, conf, "service: kafkaesque"), []string{at + ".service", "kafkaesque/localhost"}},
		"service of another": {with("hivesink", keytab, conf, "service: hive"), []string{"source.kafka.sasl", "kerberos.service"}},
		"no cache":           {gssapi(c.Kerberos(), "ticket_cache: /nowhere", "krb5_conf: "+conf), []string{at + ".ticket_cache", "kinit"}},
		"stale cache":        {gssapi(c.Kerberos(), "ticket_cache: "+stale, "krb5_conf: "+conf), []string{at + ".ticket_cache", "ended at"}},
		"broker without":     {gssapi(c.SASL(), "principal: hivesink", "keytab: "+keytab, "krb5_conf: "+conf), []string{"source.kafka.sasl.mechanism"}},
		"neither":            {gssapi(c.Kerberos(), "principal: hivesink"), []string{at + ".keytab", "ticket_cache"}},
		"password to GSSAPI": {[]string{"brokers: [" + c.Kerberos()[0] + "]", "sasl: {username: a, password: {file: " + newWorldOn(t, c, 1, nil).secretFile("x") + "}}"}, []string{"source.kafka.sasl.mechanism"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOn(t, c, 1, nil)
			timeout := "20s"
			if name == "no KDC" {
				timeout = "3s" // this is waited for
			}
			w.options = append([]string{"start_timeout: " + timeout}, f.options...)
			began := time.Now()
			p := w.start()
			if code := p.wait(); code != 2 {
				t.Errorf("exit code %d", code)
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("it took %s", took)
			}
			for _, want := range f.want {
				if !strings.Contains(p.Log(), want) {
					t.Errorf("the error does not say %q:\n%s", want, p.Log())
				}
			}
			if n := strings.Count(strings.TrimSpace(p.Log()), "\n") + 1; n > 2 {
				t.Errorf("%d lines for one error:\n%s", n, p.Log())
			}
			t.Log(strings.TrimSpace(p.Log()))
		})
	}
}
