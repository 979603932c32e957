package hdfsfs

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"

	"github.com/hivesink/hivesink/internal/fault"
)

// tickets hands out logged-in Kerberos clients. A login is made anew from the
// keytab, which is read again, when the last one is older than loginAge or did
// not work: a ticket's end, a renewal that failed and an exchanged keytab are
// all the same to us. Between logins the client renews its tickets itself.
type tickets struct {
	k    *Kerberos
	mu   sync.Mutex
	last *client.Client
	at   time.Time
}

// loginAge is short beside any ticket that is in use (the KDC's least is
// minutes), and long beside the time between connections.
const loginAge = 30 * time.Second

// client logs in if need be. An error that only a person can mend has class
// Config.
func (t *tickets) client() (*client.Client, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last != nil && time.Since(t.at) < loginAge {
		return t.last, nil
	}
	c, err := t.login()
	if err != nil {
		return nil, err
	}
	// The one before is not destroyed: connections that are being made may
	// still use it. Its renewal ends with its ticket's renewable life.
	t.last, t.at = c, time.Now()
	return c, nil
}

// forget makes the next call log in anew.
func (t *tickets) forget() {
	t.mu.Lock()
	t.at = time.Time{}
	t.mu.Unlock()
}

func (t *tickets) login() (*client.Client, error) {
	conf, err := loadKrb5Conf(t.k.Krb5Conf)
	if err != nil {
		return nil, err
	}
	if err := checkKeytab(t.k.Keytab); err != nil {
		return nil, err
	}
	kt, err := keytab.Load(t.k.Keytab)
	if err != nil {
		return nil, fault.New(fault.Config, "it must be a keytab as ktutil or kadmin write it", "hdfs.kerberos.keytab %s: %w", t.k.Keytab, err)
	}
	name, realm, _ := strings.Cut(t.k.Principal, "@")
	if realm == "" {
		realm = conf.LibDefaults.DefaultRealm
	}
	if !holds(kt, name, realm) {
		return nil, fault.New(fault.Config, "use the keytab of that principal; klist -k shows what a keytab holds",
			"hdfs.kerberos.keytab %s has no key of %s@%s (hdfs.kerberos.principal)", t.k.Keytab, name, realm)
	}
	c := client.NewWithKeytab(name, realm, kt, conf, client.DisablePAFXFAST(true))
	if err := c.Login(); err != nil {
		return nil, t.loginError(name+"@"+realm, err)
	}
	return c, nil
}

func loadKrb5Conf(path string) (*config.Config, error) {
	if path == "" {
		path = os.Getenv("KRB5_CONFIG")
	}
	if path == "" {
		path = "/etc/krb5.conf"
	}
	conf, err := config.Load(path)
	var unsupported config.UnsupportedDirective
	if err != nil && !errors.As(err, &unsupported) {
		return nil, fault.New(fault.Config, "give the path of the realm's krb5.conf", "hdfs.kerberos.krb5_conf %s: %w", path, err)
	}
	return conf, nil
}

func holds(kt *keytab.Keytab, name, realm string) bool {
	for _, e := range kt.Entries {
		if strings.Join(e.Principal.Components, "/") == name && e.Principal.Realm == realm {
			return true
		}
	}
	return false
}

// loginError tells what the KDC has refused, which stays, from a KDC that is
// not there, which passes.
func (t *tickets) loginError(who string, err error) error {
	text := err.Error()
	for _, refused := range []string{"KDC_ERR_C_PRINCIPAL_UNKNOWN", "KDC_ERR_PREAUTH_FAILED", "KDC_ERR_CLIENT_REVOKED", "KDC_ERR_KEY_EXPIRED", "KDC_ERR_NAME_EXP", "KDC_ERR_ETYPE_NOSUPP", "Decrypting_Error", "KRB_AP_ERR_BAD_INTEGRITY"} {
		if strings.Contains(text, refused) {
			return fault.Wrap(fault.Config, "check hdfs.kerberos.principal and whether hdfs.kerberos.keytab has its newest key",
				fmt.Errorf("Kerberos login of %s: %w", who, err))
		}
	}
	return fmt.Errorf("Kerberos login of %s: %w", who, err)
}
