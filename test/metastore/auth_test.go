//go:build integration

package metastore

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/internal/krb5"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/metastore/hive"
	"github.com/hivesink/hivesink/test/services"
)

// started are the services that only some tests want; they end with the last
// test.
var started []string

func TestMain(m *testing.M) {
	code := m.Run()
	if len(started) > 0 {
		h, err := services.DefaultHome()
		if err == nil {
			err = h.Down(started...)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// up starts a service unless it runs.
func up(t *testing.T, service, daemon string) {
	t.Helper()
	h, err := services.DefaultHome()
	must(t, err)
	if h.Running(daemon) {
		return
	}
	started = append(started, service)
	must(t, h.Up(func(s string) { t.Log("up", s) }, service))
}

// wantRefusal expects an error of Check that waiting does not mend.
func wantRefusal(t *testing.T, o hive.Options, want ...string) {
	t.Helper()
	began := time.Now()
	err := open(t, o).Check(t.Context())
	if err == nil {
		t.Fatal("it was let in")
	}
	t.Log(err)
	if hive.Unreachable(err) {
		t.Error("it counts as an outage")
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("it does not say %q", w)
		}
	}
}

// TestPassword: a metastore that asks for a name and a password.
func TestPassword(t *testing.T) {
	up(t, "hms-plain", "hmsplain-4")
	w := newWarehouse(t, server{"hmsplain-4", services.HMSPassword})
	o := w.options(t, "t", columns(t, "id bigint"), columns(t, "dt string"))
	auth := func(user, password string) hive.Options {
		o := o
		o.Auth = hive.Auth{Mechanism: hive.Plain, User: user, Password: func() (string, error) { return password, nil }}
		return o
	}
	c := open(t, auth(services.HMSUser, services.HMSSecret))
	must(t, c.Check(t.Context()))
	a := announcement(1, []string{"dt"}, "a")
	must(t, c.Announce(t.Context(), []ledger.Announcement{a}))
	want(t, c, a)
	for _, bad := range []hive.Options{auth(services.HMSUser, "planted-wrong-password"), auth("nobody", services.HMSSecret)} {
		wantRefusal(t, bad, "metastore.sasl", "refuses PLAIN", "metastore.sasl.username")
		if err := open(t, bad).Check(t.Context()); strings.Contains(fmt.Sprint(err), "planted") {
			t.Error("the password is in the error")
		}
	}
	without := o
	without.ConnectTimeout, without.Timeout = 2*time.Second, 2*time.Second
	wantRefusal(t, without, "metastore.sasl")
}

// TestKerberos: a metastore that asks for a ticket, with each protection of the
// messages that it can ask for.
func TestKerberos(t *testing.T) {
	h, err := services.DefaultHome()
	must(t, err)
	if h.Running("hmskrb-4") {
		t.Cleanup(func() { must(t, services.ProtectHMS(h, "authentication")) })
	}
	up(t, "hms-krb", "hmskrb-4")
	w := newWarehouse(t, server{"hmskrb-4", services.HMSKrb})
	o := w.options(t, "t", columns(t, "id bigint"), columns(t, "dt string"))
	o.ConnectTimeout = 30 * time.Second // a server that has just started is slow
	login := func(principal, keytab, service string) hive.Options {
		o := o
		o.Auth = hive.Auth{Mechanism: hive.GSSAPI, Service: service, Kerberos: krb5.Identity{
			At: "metastore.sasl.kerberos", Principal: principal, Keytab: services.Keytab(h, keytab), Krb5Conf: services.Krb5Conf(h)}}
		return o
	}
	good := login("hivesink", "hivesink", "")
	t.Run("refusals", func(t *testing.T) {
		at := "metastore.sasl.kerberos"
		wantRefusal(t, login("hivesink", "hivesink", "hives/_HOST"), at+".service", "hives/localhost")
		wantRefusal(t, login("hivesink", "hivesink", "kafka/_HOST@"+services.KrbRealm), "metastore.sasl", "refuses GSSAPI", at+".service")
		wantRefusal(t, login("somebody", "hivesink", ""), at+".keytab", at+".principal")
		without := o
		without.ConnectTimeout, without.Timeout = 2*time.Second, 2*time.Second
		wantRefusal(t, without, "metastore.sasl")
		password := o
		password.ConnectTimeout = 5 * time.Second
		password.Auth = hive.Auth{Mechanism: hive.Plain, User: "u", Password: func() (string, error) { return "p", nil }}
		wantRefusal(t, password, "metastore.sasl", "refuses PLAIN")
		// A KDC that is away is an outage, as is the metastore's own.
		away := good
		conf, err := services.Krb5ConfAt(h, t.TempDir(), "127.0.0.1:1")
		must(t, err)
		away.Auth.Kerberos.Krb5Conf = conf
		if err := open(t, away).Check(t.Context()); !hive.Unreachable(err) || fault.ClassOf(err) != fault.Retry || !strings.Contains(err.Error(), at+".krb5_conf") {
			t.Errorf("class %s: %v", fault.ClassOf(err), err)
		}
	})
	t.Run("3.1.3", func(t *testing.T) {
		o := good
		o.Addresses, o.Database = []string{services.HMSKrb3}, w.database+"_3"
		c := open(t, o)
		must(t, c.Check(t.Context()))
		a := announcement(1, []string{"dt"}, "a")
		must(t, c.Announce(t.Context(), []ledger.Announcement{a}))
		want(t, c, a)
	})
	t.Run("tickets", func(t *testing.T) { testTicketLife(t, h, login) })
	for i, protection := range []string{"authentication", "integrity", "privacy"} {
		t.Run(protection, func(t *testing.T) {
			if i > 0 {
				must(t, services.ProtectHMS(h, protection))
			}
			p := newProxy(t, services.HMSKrb)
			o := good
			o.Addresses, o.Auth.Service = []string{p.address()}, "hive/localhost"
			c := open(t, o)
			must(t, c.Check(t.Context()))
			var as []ledger.Announcement
			for n := range 150 { // answers longer than the server wraps at once
				as = append(as, announcement(1, []string{"dt"}, fmt.Sprintf("%s-%03d", protection, n)))
			}
			must(t, c.Announce(t.Context(), as))
			want(t, c, as[149])
			got, err := c.Partitions(t.Context(), ledger.MainTable, "")
			if err != nil || len(got) < len(as) {
				t.Fatalf("%d partitions, %v", len(got), err)
			}
			// What an eavesdropper reads: calls, calls in wrap tokens, nothing.
			p.mu.Lock()
			defer p.mu.Unlock()
			readable, wrapped := bytes.Contains(p.sent, []byte(w.database)), bytes.Contains(p.sent, []byte{0x05, 0x04, 0x00, 0xff, 0x00, 0x0c})
			if secret := bytes.Contains(p.sent, []byte{0x05, 0x04, 0x02, 0xff, 0x00, 0x00}); readable != (i < 2) || secret != (i == 2) || wrapped != true {
				t.Errorf("readable %t, wrapped %t, secret %t", readable, wrapped, secret)
			}
		})
	}
}

// testTicketLife: tickets live for 2 s, the server forgives 3 s; new connections
// get in for longer than that.
func testTicketLife(t *testing.T, h *services.Home, login func(principal, keytab, service string) hive.Options) {
	if err := os.Remove(services.Keytab(h, "hmsbrief")); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	who := fmt.Sprintf("hmsbrief%d", time.Now().UnixNano())
	must(t, services.Principal(h, who, "hmsbrief", `-maxlife "2 seconds"`))
	o := login(who, "hmsbrief", "hive/localhost")
	p := newProxy(t, services.HMSKrb)
	o.Addresses = []string{p.address()}
	c := open(t, o)
	began := time.Now()
	must(t, services.Until(2*time.Minute, func() error {
		if err := c.Check(t.Context()); err != nil {
			return services.Fatal(err)
		}
		p.cut()
		n, err := services.Logins(h, who)
		if err == nil && (n < 4 || time.Since(began) < 7*time.Second) {
			err = fmt.Errorf("%d logins", n)
		}
		return err
	}))
}
