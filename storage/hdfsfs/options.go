package hdfsfs

import (
	"cmp"
	"errors"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/colinmarc/hdfs/v2/hadoopconf"

	"github.com/hivesink/hivesink/internal/fault"
)

// Options say where the cluster is and how it is talked to. Error texts name
// them as the configuration does.
type Options struct {
	// Authority is the host part of hdfs://authority/path: a name node's
	// host:port or a name service of the Hadoop configuration.
	Authority string
	// NameNodes are host:port; empty: those of the Hadoop configuration for the
	// authority, else the authority itself.
	NameNodes []string
	// User acts; empty: HADOOP_USER_NAME, else the user of this process.
	User string
	// ConfDir holds core-site.xml and hdfs-site.xml; empty: HADOOP_CONF_DIR, else
	// none.
	ConfDir  string
	Kerberos *Kerberos // nil: no Kerberos
	// Protection of data transfer: none, authentication, integrity, privacy;
	// empty: the Hadoop configuration's dfs.data.transfer.protection.
	Protection string
	// Replication and BlockSize of new files; 0: the Hadoop configuration's, else
	// the name node's.
	Replication int
	BlockSize   int64

	ConnectTimeout time.Duration // default 10 s
	CallTimeout    time.Duration // for each read and write of a connection; default 60 s
	StartTimeout   time.Duration // default 30 s
	Patience       time.Duration // default 1 h
	// Notify is told when an operation waits for the cluster, and when it goes
	// on (err nil). It must return soon.
	Notify func(what string, err error)

	conf  hadoopconf.HadoopConf
	umask os.FileMode
}

// Kerberos is who we are to a secure cluster.
type Kerberos struct {
	Principal   string // name or name/instance, with @REALM or without
	Keytab      string // path
	TicketCache string // path, in place of a keytab
	Krb5Conf    string // path; empty: KRB5_CONFIG, else /etc/krb5.conf
	// Service is the name nodes' principal, such as nn/_HOST; empty: the Hadoop
	// configuration's dfs.namenode.kerberos.principal.
	Service string
}

// resolve fills in what the Hadoop configuration and the environment say.
func (o *Options) resolve() error {
	o.ConnectTimeout = orDuration(o.ConnectTimeout, 10*time.Second)
	o.CallTimeout = orDuration(o.CallTimeout, time.Minute)
	o.StartTimeout = orDuration(o.StartTimeout, 30*time.Second)
	o.Patience = orDuration(o.Patience, time.Hour)
	if o.Notify == nil {
		o.Notify = func(string, error) {}
	}
	if err := o.readConf(); err != nil {
		return err
	}
	if err := o.resolveNameNodes(); err != nil {
		return err
	}
	o.resolveUser()
	if strings.EqualFold(o.conf["hadoop.security.authentication"], "kerberos") && o.Kerberos == nil {
		return fault.New(fault.Config, "set hdfs.kerberos.principal and hdfs.kerberos.keytab, or hdfs.kerberos.ticket_cache",
			"hdfs.kerberos is missing: the Hadoop configuration in %s asks for Kerberos", o.ConfDir)
	}
	if k := o.Kerberos; k != nil && k.Service == "" {
		service, _, _ := strings.Cut(o.conf["dfs.namenode.kerberos.principal"], "@")
		if service == "" {
			return fault.New(fault.Config, "set hdfs.kerberos.service, such as nn/_HOST, or hdfs.conf_dir",
				"the name nodes' principal is not known: no dfs.namenode.kerberos.principal")
		}
		k.Service = service
	}
	if err := o.resolveProtection(); err != nil {
		return err
	}
	return o.resolveFiles()
}

func orDuration(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}

func (o *Options) readConf() error {
	from := "hdfs.conf_dir"
	if o.ConfDir == "" {
		o.ConfDir, from = os.Getenv("HADOOP_CONF_DIR"), "HADOOP_CONF_DIR"
	}
	if o.ConfDir == "" {
		return nil
	}
	var err error
	o.conf, err = hadoopconf.Load(o.ConfDir)
	if err == nil && o.conf == nil {
		err = errors.New("it has no core-site.xml and no hdfs-site.xml")
	}
	if err != nil {
		return fault.New(fault.Config, "name the directory of core-site.xml and hdfs-site.xml", "%s %s: %w", from, o.ConfDir, err)
	}
	for name, value := range o.conf { // each by itself: the order does not matter
		o.conf[name] = strings.TrimSpace(value) // as Hadoop takes them: the XML may be laid out
	}
	return nil
}

// resolveNameNodes finds the name nodes of the authority. A port that a
// location does not name is Hadoop's.
func (o *Options) resolveNameNodes() error {
	if len(o.NameNodes) > 0 {
		return nil
	}
	if ids := o.conf["dfs.ha.namenodes."+o.Authority]; ids != "" {
		for _, id := range strings.Split(ids, ",") {
			key := "dfs.namenode.rpc-address." + o.Authority + "." + strings.TrimSpace(id)
			address := o.conf[key]
			if address == "" {
				return fault.New(fault.Config, "complete hdfs-site.xml, or set hdfs.namenodes", "%s has no %s", o.ConfDir, key)
			}
			o.NameNodes = append(o.NameNodes, withPort(address))
		}
		return nil
	}
	if o.Authority == "" {
		return fault.New(fault.Config, "write hdfs://host:port/path, or set hdfs.namenodes", "table.location names no name node")
	}
	host := o.Authority
	if !strings.Contains(host, ":") {
		if services := o.conf["dfs.nameservices"]; services != "" && !strings.Contains(host, ".") && host != "localhost" {
			return fault.New(fault.Config, "the Hadoop configuration knows "+services+"; write host:port, or set hdfs.namenodes",
				"table.location: %s is no name service of %s", host, o.ConfDir)
		}
	}
	o.NameNodes = []string{withPort(host)}
	return nil
}

// withPort is an address with Hadoop's port, unless it has one.
func withPort(address string) string {
	if !strings.Contains(address, ":") {
		address += ":8020"
	}
	return address
}

func (o *Options) resolveUser() {
	if o.User == "" {
		o.User = os.Getenv("HADOOP_USER_NAME")
	}
	if o.User == "" {
		if u, err := user.Current(); err == nil {
			o.User = u.Username
		}
	}
	if o.User == "" {
		o.User = "hivesink"
	}
}

// parseUmask reads a umask as Hadoop does: in octal, or as the permissions that
// are left (u=rwx,g=rx,o=); a class that is not named is left none.
func parseUmask(text string) (os.FileMode, bool) {
	if n, err := strconv.ParseUint(text, 8, 32); err == nil {
		return os.FileMode(n) & 0o777, true
	}
	classes := map[rune]os.FileMode{'u': 0o700, 'g': 0o070, 'o': 0o007, 'a': 0o777}
	bits := map[rune]os.FileMode{'r': 0o444, 'w': 0o222, 'x': 0o111}
	left := os.FileMode(0)
	for clause := range strings.SplitSeq(text, ",") {
		who, what, ok := strings.Cut(strings.TrimSpace(clause), "=")
		if !ok {
			return 0, false
		}
		var class, allowed os.FileMode
		for _, c := range cmp.Or(who, "a") {
			if classes[c] == 0 {
				return 0, false
			}
			class |= classes[c]
		}
		for _, c := range what {
			if bits[c] == 0 {
				return 0, false
			}
			allowed |= bits[c]
		}
		left = left&^class | allowed&class
	}
	return 0o777 &^ left, true
}

// resolveFiles finds out what new files are like.
func (o *Options) resolveFiles() error {
	o.umask = 0o022
	if text := o.conf["fs.permissions.umask-mode"]; text != "" {
		var ok bool
		if o.umask, ok = parseUmask(text); !ok {
			return fault.New(fault.Config, "write it in octal, such as 022, or as what is allowed, such as u=rwx,g=rx,o=",
				"fs.permissions.umask-mode in %s: %q", o.ConfDir, text)
		}
	}
	if o.Replication == 0 {
		o.Replication, _ = strconv.Atoi(o.conf["dfs.replication"])
	}
	if o.BlockSize == 0 {
		o.BlockSize = hadoopBytes(o.conf["dfs.blocksize"])
	}
	return nil
}

// resolveProtection: a secure cluster's data nodes hang up on whoever does not
// speak as they expect, so that has to be said.
func (o *Options) resolveProtection() error {
	if o.Protection == "" {
		o.Protection = strongest(o.conf["dfs.data.transfer.protection"])
	}
	if o.Protection == "" && o.conf["dfs.encrypt.data.transfer"] == "true" {
		o.Protection = "privacy"
	}
	if o.Protection == "" && o.Kerberos != nil && o.conf == nil {
		return fault.New(fault.Config, "set hdfs.data_transfer_protection to what the data nodes have, or hdfs.conf_dir",
			"with hdfs.kerberos it must be known how data transfer is protected")
	}
	if o.Protection == "none" {
		o.Protection = ""
	}
	return nil
}

// hadoopBytes reads 134217728 and 128m; 0 is "not said".
func hadoopBytes(text string) int64 {
	text = strings.ToLower(strings.TrimSpace(text))
	if text == "" {
		return 0
	}
	shift := strings.IndexByte("kmgt", text[len(text)-1])
	if shift >= 0 {
		text = text[:len(text)-1]
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n << (10 * (shift + 1))
}

// strongest is the highest of the protections that a cluster allows, as the
// client negotiates it.
func strongest(list string) string {
	best := ""
	for _, p := range strings.Split(strings.ToLower(list), ",") {
		p = strings.TrimSpace(p)
		if slices.Contains([]string{"authentication", "integrity", "privacy"}, p) && p > best { // alphabetical by strength
			best = p
		}
	}
	return best
}
