package pipeline

import (
	"testing"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/internal/krb5"
)

// What is configured for the metastore's authentication reaches it, under the
// names that its errors use.
func TestMetastoreAuthentication(t *testing.T) {
	t.Setenv("METASTORE_TEST_PASSWORD", "secret")
	load := func(sasl string) *config.Config {
		c, err := config.Parse("sink.yaml", []byte("pipeline: p\ntable: {name: t, location: /t, columns: [id bigint]}\nmetastore: {type: hive, uri: \"thrift://a:1,thrift://b:2\", sasl: "+sasl+"}\nsource: {files: {paths: [x]}, format: json}\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	o, err := hiveOptions(load("{mechanism: GSSAPI, kerberos: {principal: me, keytab: /k, krb5_conf: /c, service: hms/_HOST}}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := (krb5.Identity{At: "metastore.sasl.kerberos", Principal: "me", Keytab: "/k", Krb5Conf: "/c"}); o.Auth.Mechanism != "GSSAPI" || o.Auth.Kerberos != want || o.Auth.Service != "hms/_HOST" {
		t.Errorf("%+v", o.Auth)
	}
	if o, err = hiveOptions(load("{mechanism: GSSAPI, kerberos: {ticket_cache: /tc}}"), nil); err != nil || o.Auth.Kerberos.TicketCache != "/tc" {
		t.Errorf("%+v, %v", o.Auth, err)
	}
	o, err = hiveOptions(load("{username: me, password: {env: METASTORE_TEST_PASSWORD}}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if password, err := o.Auth.Password(); err != nil || o.Auth.Mechanism != "PLAIN" || o.Auth.User != "me" || password != "secret" {
		t.Errorf("%+v, %v", o.Auth, err)
	}
}
