package services

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The realm of the private KDC, and where the KDC listens.
const (
	KrbRealm = "HIVESINK.TEST"
	krbPort  = 18088
)

func init() {
	register(Service{Name: "krb5", About: "MIT Kerberos, realm " + KrbRealm, Up: krb5Up})
}

// Krb5Conf is the krb5.conf of the realm.
func Krb5Conf(h *Home) string { return h.Path("data", "krb5", "krb5.conf") }

// Krb5Strict is that of servers which forgive a ticket 3 s after its end, in
// place of 5 minutes, so that a test can tell whether tickets are renewed.
func Krb5Strict(h *Home) string { return h.Path("data", "krb5", "strict.conf") }

// Keytab is the keytab of hdfs, hive or hivesink.
func Keytab(h *Home, name string) string { return h.Path("data", "krb5", name+".keytab") }

var krbPackages = []string{"krb5-kdc", "krb5-admin-server", "krb5-user"}

// krb5Tool finds a tool, in /usr/sbin too, where Debian has the KDC's.
func krb5Tool(name string) (string, error) {
	for _, try := range []string{name, "/usr/sbin/" + name} {
		if p, err := exec.LookPath(try); err == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("%s is not installed", name)
}

// krb5Install installs what is missing; only root may.
func krb5Install() error {
	_, kdc := krb5Tool("krb5kdc")
	_, admin := krb5Tool("kadmin.local")
	if kdc == nil && admin == nil {
		return nil
	}
	missing := fmt.Errorf("%w (Debian: apt-get install %s %s %s)", errors.Join(kdc, admin), krbPackages[0], krbPackages[1], krbPackages[2])
	if os.Geteuid() != 0 {
		return missing
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return missing
	}
	fmt.Fprintln(os.Stderr, "   installing", krbPackages, "by apt-get")
	cmd := exec.Command("apt-get", append([]string{"install", "-y", "-qq"}, krbPackages...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if err := run(cmd); err == nil {
		return nil
	}
	if err := Run("apt-get", "update", "-qq"); err != nil { // its lists may be old
		return errors.Join(missing, err)
	}
	cmd = exec.Command("apt-get", append([]string{"install", "-y", "-qq"}, krbPackages...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	return run(cmd)
}

func krb5Up(h *Home) error {
	if err := krb5Install(); err != nil {
		return err
	}
	dir, err := h.Data("krb5")
	if err != nil {
		return err
	}
	conf := fmt.Sprintf(krb5Conf, KrbRealm, KrbRealm, krbPort, KrbRealm)
	if err := os.WriteFile(Krb5Conf(h), []byte(conf), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(Krb5Strict(h), []byte(strings.Replace(conf, "[libdefaults]\n", "[libdefaults]\n  clockskew = 3\n", 1)), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "kdc.conf"), fmt.Appendf(nil, kdcConf, krbPort, krbPort, KrbRealm, dir, dir, dir), 0o644); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "principal")); err != nil {
		if err := krb5Create(h); err != nil {
			return err
		}
	}
	kdc, err := krb5Tool("krb5kdc")
	if err != nil {
		return err
	}
	return h.Start(Daemon{Name: "krb5", Argv: []string{kdc, "-n", "-r", KrbRealm}, Env: krb5Env(h), Dir: dir, Ports: []int{krbPort}})
}

func krb5Env(h *Home) []string {
	return []string{"KRB5_CONFIG=" + Krb5Conf(h), "KRB5_KDC_PROFILE=" + h.Path("data", "krb5", "kdc.conf")}
}

func krb5Create(h *Home) error {
	util, err := krb5Tool("kdb5_util")
	if err != nil {
		return err
	}
	cmd := exec.Command(util, "create", "-r", KrbRealm, "-s", "-P", "master")
	cmd.Env = append(os.Environ(), krb5Env(h)...)
	if err := run(cmd); err != nil {
		return err
	}
	for _, p := range [][2]string{{"hdfs/localhost", "hdfs"}, {"HTTP/localhost", "hdfs"}, {"hive/localhost", "hive"}, {"kafka/localhost", "kafka"}, {"hivesink", "hivesink"}} {
		if err := Principal(h, p[0], p[1]); err != nil {
			return err
		}
	}
	return nil
}

// Principal makes a principal with a random key and adds it to a keytab.
// Options are kadmin's, such as -maxlife.
func Principal(h *Home, name, keytab string, options ...string) error {
	add := "addprinc -randkey"
	for _, o := range options {
		add += " " + o
	}
	if err := Kadmin(h, add+" "+name); err != nil {
		return err
	}
	return Kadmin(h, "ktadd -k "+Keytab(h, keytab)+" -norandkey "+name)
}

// Kadmin runs one query of kadmin.local, which says by its words only that
// something went wrong.
func Kadmin(h *Home, query string) error {
	admin, err := krb5Tool("kadmin.local")
	if err != nil {
		return err
	}
	cmd := exec.Command(admin, "-r", KrbRealm, "-q", query)
	cmd.Env = append(os.Environ(), krb5Env(h)...)
	out, err := cmd.CombinedOutput()
	for _, word := range []string{"Usage:", "usage:", " while ", "nrecognized"} {
		if err == nil && bytes.Contains(out, []byte(word)) {
			err = errors.New("refused")
		}
	}
	if err != nil {
		return fmt.Errorf("kadmin.local -q %q: %w\n%s", query, err, out)
	}
	return nil
}

const krb5Conf = `[libdefaults]
  default_realm = %s
  dns_lookup_kdc = false
  dns_lookup_realm = false
  rdns = false
  dns_canonicalize_hostname = false
  udp_preference_limit = 1
  ticket_lifetime = 1h
  forwardable = true
  default_tkt_enctypes = aes256-cts-hmac-sha1-96
  default_tgs_enctypes = aes256-cts-hmac-sha1-96
  permitted_enctypes = aes256-cts-hmac-sha1-96
[realms]
  %s = {
    kdc = 127.0.0.1:%d
  }
[domain_realm]
  localhost = %s
`

const kdcConf = `[kdcdefaults]
  kdc_listen = 127.0.0.1:%d
  kdc_tcp_listen = 127.0.0.1:%d
[realms]
  %s = {
    database_name = %s/principal
    key_stash_file = %s/stash
    supported_enctypes = aes256-cts-hmac-sha1-96:normal
    max_life = 1d
    max_renewable_life = 1d
  }
[logging]
  kdc = FILE:%s/kdc.log
`

// Kinit fills a ticket cache from a keytab.
func Kinit(h *Home, cache, principal, keytab string) error {
	kinit, err := krb5Tool("kinit")
	if err != nil {
		return err
	}
	return RunIn("/", krb5Env(h), kinit, "-c", cache, "-k", "-t", Keytab(h, keytab), principal)
}

// Logins is how many times a principal has logged in, by the KDC's log.
func Logins(h *Home, principal string) (int, error) {
	text, err := os.ReadFile(h.Path("data", "krb5", "kdc.log"))
	n := 0
	for line := range strings.SplitSeq(string(text), "\n") {
		if strings.Contains(line, "AS_REQ") && strings.Contains(line, "ISSUE") && strings.Contains(line, principal+"@") {
			n++
		}
	}
	return n, err
}

// Krb5ConfAt is a krb5.conf, below dir, whose KDC is at another address.
func Krb5ConfAt(h *Home, dir, kdc string) (string, error) {
	text, err := os.ReadFile(Krb5Conf(h))
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "krb5.conf")
	own := fmt.Sprintf("127.0.0.1:%d", krbPort)
	return path, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), own, kdc)), 0o644)
}

// KDC is where the KDC listens.
func KDC() string { return fmt.Sprintf("127.0.0.1:%d", krbPort) }
