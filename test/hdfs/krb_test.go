//go:build integration

package hdfs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage/hdfsfs"
	"github.com/hivesink/hivesink/test/mainjob"
	"github.com/hivesink/hivesink/test/services"
)

// secure are options for the cluster with Kerberos.
func secure(t *testing.T) hdfsfs.Options {
	t.Helper()
	h := home(t)
	return hdfsfs.Options{
		Authority: services.HDFSNameNodeKrb, ConfDir: services.HDFSSecure.ConfDir(h), CallTimeout: 5 * time.Second,
		Kerberos: &hdfsfs.Kerberos{Principal: "hdfs/localhost", Keytab: services.Keytab(h, "hdfs"), Krb5Conf: services.Krb5Conf(h)},
	}
}

// TestSecure are the tests of the cluster with Kerberos.
func TestSecure(t *testing.T) {
	clusterUp(t, services.HDFSSecure)
	t.Run("bytes", testBytes)
	t.Run("job", testKerberosJob)
	t.Run("tickets", testTicketLife)
	t.Run("refusals", testKerberosRefusals)
	t.Run("protection", testProtection)
}

func testBytes(t *testing.T) {
	fs := open(t, secure(t))
	dir := scratch(t, fs)
	text := randomBytes(3 << 20)
	must(t, fs.Put(path.Join(dir, "f"), bytes.NewReader(text), int64(len(text))))
	got, err := fs.ReadFile(path.Join(dir, "f"))
	must(t, err)
	if !bytes.Equal(got, text) {
		t.Fatal("other bytes came back")
	}
}

// testKerberosJob: the whole program logs in from its configuration.
func testKerberosJob(t *testing.T) {
	h := home(t)
	fs := open(t, secure(t))
	root := path.Join(scratch(t, fs), "table")
	mainjob.Kills(t, mainjob.Place{FS: fs, Root: root, Location: "hdfs://" + services.HDFSNameNodeKrb + root,
		Config: "hdfs: {conf_dir: " + services.HDFSSecure.ConfDir(h) + ", kerberos: {principal: hdfs/localhost, keytab: " +
			services.Keytab(h, "hdfs") + ", krb5_conf: " + services.Krb5Conf(h) + "}}"}, 15_000, 12_000, 2)
}

// testTicketLife: HD-04. Tickets live for 5 s and can be renewed for 10 s; every
// operation for 12 s works, each over a connection of its own, and so does one
// that stays open. Then the key is changed: the old keytab is refused, and
// the client waits until somebody has put the new one in its place.
func testTicketLife(t *testing.T) {
	h := home(t)
	keytab := services.Keytab(h, "shortlived")
	must(t, os.RemoveAll(keytab))
	who := fmt.Sprintf("shortlived%d/localhost", time.Now().UnixNano())
	must(t, services.Principal(h, who, "shortlived", `-maxlife "5 seconds"`, `-maxrenewlife "10 seconds"`))
	must(t, os.Chmod(keytab, 0o600))
	o := secure(t)
	o.Kerberos.Principal, o.Kerberos.Keytab = who, keytab
	steady := open(t, o)
	for end := time.Now().Add(12 * time.Second); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		if _, err := steady.Stat("/"); err != nil {
			t.Fatal(err)
		}
		steady.HangUp()
	}
	// The key is changed, and nobody has told us.
	old, err := os.ReadFile(keytab)
	must(t, err)
	must(t, services.Kadmin(h, "cpw -randkey "+who))
	steady.HangUp()
	waits(t, steady, func() error { _, err := steady.Stat("/"); return err }, func() error {
		fresh := filepath.Join(filepath.Dir(keytab), "fresh.keytab")
		defer os.Remove(fresh)
		if err := services.Kadmin(h, "ktadd -k "+fresh+" -norandkey "+who); err != nil {
			return err
		}
		return os.Rename(fresh, keytab)
	})
	// At start-up it is an error at once.
	must(t, os.WriteFile(keytab, old, 0o600))
	began := time.Now()
	_, err = hdfsfs.New(context.Background(), o)
	if err == nil || fault.ClassOf(err) != fault.Config || !strings.Contains(err.Error(), "hdfs.kerberos.keytab") || time.Since(began) > 30*time.Second {
		t.Fatalf("an old keytab at start-up, after %s: %v", time.Since(began), err)
	}
}

// testKerberosRefusals: what is wrong with a login is said at once, or within
// hdfs.start_timeout, and names the option.
func testKerberosRefusals(t *testing.T) {
	h := home(t)
	keytab, conf := services.Keytab(h, "hdfs"), services.Krb5Conf(h)
	open := filepath.Join(t.TempDir(), "open.keytab")
	text, err := os.ReadFile(keytab)
	must(t, err)
	must(t, os.WriteFile(open, text, 0o644))
	garbage := filepath.Join(t.TempDir(), "garbage.keytab")
	must(t, os.WriteFile(garbage, []byte("no keytab"), 0o600))
	krb := func(principal, keytab, conf string) string {
		return "hdfs: {conf_dir: " + services.HDFSSecure.ConfDir(h) + ", start_timeout: 10s, kerberos: {principal: " + principal + ", keytab: " + keytab + ", krb5_conf: " + conf + "}}"
	}
	at := services.HDFSNameNodeKrb
	refused(t, []refusal{
		{"no Kerberos", at, "hdfs: {start_timeout: 10s}", 1, "set hdfs.kerberos"},
		{"no Kerberos, says the Hadoop configuration", at, "hdfs: {conf_dir: " + services.HDFSSecure.ConfDir(h) + "}", 2, "hdfs.kerberos is missing"},
		{"no keytab", at, krb("hdfs/localhost", "/nowhere", conf), 2, "hdfs.kerberos.keytab"},
		{"a keytab for all to read", at, krb("hdfs/localhost", open, conf), 2, "chmod 600"},
		{"garbage for a keytab", at, krb("hdfs/localhost", garbage, conf), 2, "hdfs.kerberos.keytab"},
		{"another principal's keytab", at, krb("somebody", keytab, conf), 2, "hdfs.kerberos.principal"},
		{"no krb5.conf", at, krb("hdfs/localhost", keytab, "/nowhere"), 2, "hdfs.kerberos.krb5_conf"},
		{"Kerberos where there is none", nameNode(), "hdfs: {start_timeout: 10s, kerberos: {principal: hdfs/localhost, keytab: " + keytab + ", krb5_conf: " + conf + ", service: hdfs/_HOST}, data_transfer_protection: authentication}", 1, "remove hdfs.kerberos"},
		{"wrong protection", at, "hdfs: {start_timeout: 10s, kerberos: {principal: hdfs/localhost, keytab: " + keytab + ", krb5_conf: " + conf + ", service: hdfs/_HOST}, data_transfer_protection: none}", 1, "hdfs.data_transfer_protection"},
	})
}

// testProtection: what the client cannot read is refused at start-up, by a
// probe that leaves nothing behind; what it can is used.
func testProtection(t *testing.T) {
	c := services.HDFSSecure
	h := home(t)
	t.Cleanup(func() {
		if err := c.Protect(h, "authentication", ""); err != nil {
			t.Error(err)
		}
	})
	must(t, c.Protect(h, "authentication", ""))
	// A table that is well, written before anybody changed the protection.
	state := t.TempDir()
	conf := filepath.Join(state, "c.yaml")
	at := services.HDFSNameNodeKrb + scratch(t, open(t, secure(t)))
	must(t, os.WriteFile(conf, fmt.Appendf(nil, smallJob, filepath.Join(state, "state"), at, "hdfs: {conf_dir: "+c.ConfDir(h)+
		", start_timeout: 10s, kerberos: {principal: hdfs/localhost, keytab: "+services.Keytab(h, "hdfs")+", krb5_conf: "+services.Krb5Conf(h)+"}}"), 0o600))
	mainjob.Want(t, 0, nil, "run", "-c", conf)
	mainjob.Want(t, 0, nil, "fsck", "-c", conf)
	for _, p := range []struct {
		protection, suites string
		readable           bool
	}{
		{"integrity", "", false}, {"privacy", "", false}, {"privacy", "AES/CTR/NoPadding", true},
	} {
		must(t, c.Protect(h, p.protection, p.suites))
		fs := open(t, secure(t))
		dir := scratch(t, fs)
		err := fs.Probe(path.Join(dir, "not", "there"))
		t.Logf("%s %s: %v", p.protection, p.suites, err)
		if p.readable != (err == nil) || err != nil && fault.ClassOf(err) != fault.Config {
			t.Errorf("%s %s: %v", p.protection, p.suites, err)
		}
		if left := listed(t, fs, dir); len(left) > 0 {
			t.Errorf("left over: %v", left)
		}
		for _, command := range []string{"fsck", "log", "partitions"} {
			if p.readable {
				mainjob.Want(t, 0, nil, command, "-c", conf)
				continue
			}
			// The table is not damaged: it cannot be read from here.
			said := mainjob.Want(t, 2, nil, command, "-c", conf)
			if !strings.Contains(said.Err, "cannot read what it writes") || strings.Contains(said.Out+said.Err, "damaged") {
				t.Errorf("%s with %s: %v", command, p.protection, said)
			}
		}
	}
}
