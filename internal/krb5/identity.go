package krb5

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/keytab"

	"github.com/hivesink/hivesink/internal/fault"
)

// Identity is who logs in, and with what.
type Identity struct {
	// At is where this stands in the configuration, such as hdfs.kerberos.
	At string
	// Principal is name or name/instance, with @REALM or without. With a ticket
	// cache it may be empty: the cache says it.
	Principal   string
	Keytab      string // path
	TicketCache string // path, in place of a keytab
	Krb5Conf    string // path; empty: KRB5_CONFIG, else /etc/krb5.conf
}

func (id *Identity) confPath() string {
	return cmp.Or(id.Krb5Conf, os.Getenv("KRB5_CONFIG"), "/etc/krb5.conf")
}

func (id *Identity) loadConf() (*config.Config, error) {
	conf, err := config.Load(id.confPath())
	var unsupported config.UnsupportedDirective
	if err != nil && !errors.As(err, &unsupported) {
		return nil, fault.New(fault.Config, "give the path of the realm's krb5.conf", "%s.krb5_conf %s: %w", id.At, id.confPath(), err)
	}
	return conf, nil
}

// name splits the principal.
func (id *Identity) name(conf *config.Config) (name, realm string) {
	name, realm, _ = strings.Cut(id.Principal, "@")
	return name, cmp.Or(realm, conf.LibDefaults.DefaultRealm)
}

func (id *Identity) loadKeytab(name, realm string) (*keytab.Keytab, error) {
	if err := private(id.At+".keytab", "give the path of the principal's keytab", id.Keytab); err != nil {
		return nil, err
	}
	kt, err := keytab.Load(id.Keytab)
	if err != nil {
		return nil, fault.New(fault.Config, "it must be a keytab as ktutil or kadmin write it", "%s.keytab %s: %w", id.At, id.Keytab, err)
	}
	for _, e := range kt.Entries {
		if strings.Join(e.Principal.Components, "/") == name && e.Principal.Realm == realm {
			return kt, nil
		}
	}
	return nil, fault.New(fault.Config, "use the keytab of that principal; klist -k shows what a keytab holds",
		"%s.keytab %s has no key of %s@%s (%s.principal)", id.At, id.Keytab, name, realm, id.At)
}

// cachePath is the ticket cache without the type that Kerberos tools write
// before it; only files can be read.
func (id *Identity) cachePath() string { return strings.TrimPrefix(id.TicketCache, "FILE:") }

func (id *Identity) loadCache() (c *credentials.CCache, err error) {
	path := id.cachePath()
	if err := private(id.At+".ticket_cache", "make it with kinit -c; only caches that are files can be read", path); err != nil {
		return nil, err
	}
	defer func() {
		// The library reads past the end of a file that is cut short.
		if recover() != nil {
			err = errors.New("it is cut short")
		}
		if err != nil {
			err = fault.New(fault.Config, "make it with kinit -c", "%s.ticket_cache %s: %w", id.At, path, err)
		}
	}()
	return credentials.LoadCCache(path)
}

// private refuses a file that is missing or that others can use.
func private(option, hint, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fault.Wrap(fault.Config, hint, fmt.Errorf("%s: %w", option, err))
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fault.New(fault.Config, "chmod 600 "+filepath.Base(path), "%s: %s has mode %#o, others than its owner can use it", option, path, mode)
	}
	return nil
}
