//go:build integration

package metastore

import (
	"testing"
	"time"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/internal/tlsopt"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/metastore/hive"
	"github.com/hivesink/hivesink/test/services"
)

// TestTLS: a metastore whose connections are encrypted, and what is said when the
// two do not agree on it.
func TestTLS(t *testing.T) {
	up(t, "hms-tls", "hmstls-4")
	h, err := services.DefaultHome()
	must(t, err)
	good, expired := services.HMSCertificate(h)
	w := newWarehouse(t, server{"hmstls-4", services.HMSTLS})
	o := w.options(t, "t", columns(t, "id bigint"), columns(t, "dt string"))
	with := func(address string, c *config.TLS) hive.Options {
		o := o
		o.Addresses, o.ConnectTimeout, o.Timeout = []string{address}, 15*time.Second, 15*time.Second
		var err error
		o.TLS, err = tlsopt.Client("metastore.tls", c)
		must(t, err)
		return o
	}
	c := open(t, with(services.HMSTLS, &config.TLS{CA: good}))
	must(t, c.Check(t.Context()))
	a := announcement(1, []string{"dt"}, "a")
	must(t, c.Announce(t.Context(), []ledger.Announcement{a}))
	want(t, c, a)

	for _, bad := range []struct {
		what string
		o    hive.Options
		says []string
	}{
		{"an authority that nobody knows", with(services.HMSTLS, &config.TLS{}), []string{"metastore.tls.ca", "authority that signed the metastore's certificate"}},
		{"another name", with(services.HMSTLS, &config.TLS{CA: good, ServerName: "metastore.example"}), []string{"metastore.tls.server_name"}},
		{"expired", with(services.HMSExpired, &config.TLS{CA: expired}), []string{"metastore.tls", "renew the metastore's certificate"}},
		{"TLS where there is none", with(services.HMS4, &config.TLS{CA: good, ServerName: "localhost"}), []string{"metastore.tls"}},
		{"no TLS where it is wanted", with(services.HMSTLS, nil), []string{"metastore.tls"}},
	} {
		t.Run(bad.what, func(t *testing.T) { wantRefusal(t, bad.o, bad.says...) })
	}
}
