package hdfsfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/colinmarc/hdfs/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/internal/krb5"
	"github.com/hivesink/hivesink/storage"
)

// TestCallsFitTheClient: a version of the client whose connection or messages
// are others is noticed here, not on a cluster.
func TestCallsFitTheClient(t *testing.T) {
	if _, err := newCalls(new(hdfs.Client)); err != nil {
		t.Fatal(err)
	}
	asked := map[string]string{}
	c := &calls{execute: func(method string, req, _ proto.Message) error {
		asked[method] = fmt.Sprint(req)
		return nil
	}}
	if err := c.rename("/a", "/b", false); err != nil {
		t.Fatal(err)
	}
	if there, err := c.remove("/a"); there || err != nil {
		t.Fatal(there, err)
	}
	if _, _, _, err := c.defaults(); err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(asked["rename2"], "  ", " ") // its text varies in blanks on purpose
	if text != `src:"/a" dst:"/b" overwriteDest:false` {
		t.Errorf("rename2 asks for %s", text)
	}
	if len(asked) != 3 {
		t.Errorf("asked %v", asked)
	}
}

func conf(t *testing.T, properties ...string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("<configuration>")
	for i := 0; i < len(properties); i += 2 {
		fmt.Fprintf(&b, "<property><name>%s</name><value>%s</value></property>", properties[i], properties[i+1])
	}
	b.WriteString("</configuration>")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hdfs-site.xml"), []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestNameNodes(t *testing.T) {
	t.Setenv("HADOOP_CONF_DIR", "")
	ha := conf(t, "dfs.nameservices", "lake,other", "dfs.ha.namenodes.lake", "a, b", "dfs.ha.namenodes.other", "x",
		"dfs.namenode.rpc-address.lake.a", "nn1:8020", "dfs.namenode.rpc-address.lake.b", "nn2:8021", "dfs.namenode.rpc-address.other.x", "far:8020")
	for _, c := range []struct {
		o    Options
		want string
		err  string
	}{
		{Options{Authority: "nn:9000"}, "nn:9000", ""},
		{Options{Authority: "nn"}, "nn:8020", ""},
		{Options{Authority: "nn", NameNodes: []string{"a:1", "b:2"}}, "a:1 b:2", ""},
		{Options{Authority: "lake", ConfDir: ha}, "nn1:8020 nn2:8021", ""},
		{Options{Authority: "nn:9000", ConfDir: ha}, "nn:9000", ""},
		{Options{Authority: "ocean", ConfDir: ha}, "", "table.location: ocean is no name service"},
		{Options{Authority: "lake", ConfDir: conf(t, "dfs.ha.namenodes.lake", "a")}, "", "has no dfs.namenode.rpc-address.lake.a"},
		{Options{Authority: "nn", ConfDir: "/nowhere"}, "", "hdfs.conf_dir /nowhere"},
		{Options{Authority: "nn", ConfDir: conf(t, "hadoop.security.authentication", "Kerberos")}, "", "hdfs.kerberos is missing"},
		{Options{Authority: "nn", Kerberos: &Kerberos{}}, "", "hdfs.kerberos.service"},
		{Options{}, "", "names no name node"},
		{Options{Authority: "nn", Kerberos: &Kerberos{Service: "nn/_HOST"}}, "", "hdfs.data_transfer_protection"},
		{Options{Authority: "nn", Kerberos: &Kerberos{Service: "nn/_HOST"}, Protection: "none"}, "nn:8020", ""},
	} {
		err := c.o.resolve()
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) || fault.ClassOf(err) != fault.Config {
				t.Errorf("%+v: %v, want %q", c.o, err, c.err)
			}
			continue
		}
		if err != nil || strings.Join(c.o.NameNodes, " ") != c.want {
			t.Errorf("%s in %s: %v, %v; want %s", c.o.Authority, c.o.ConfDir, c.o.NameNodes, err, c.want)
		}
	}
}

func TestHadoopConfiguration(t *testing.T) {
	t.Setenv("HADOOP_CONF_DIR", conf(t, "dfs.replication", "2", "dfs.blocksize", "256m", "fs.permissions.umask-mode", "027",
		"dfs.data.transfer.protection", "authentication, privacy", "dfs.namenode.kerberos.principal", "nn/_HOST@REALM"))
	t.Setenv("HADOOP_USER_NAME", "alice")
	o := Options{Authority: "nn:1", Kerberos: &Kerberos{}}
	if err := o.resolve(); err != nil {
		t.Fatal(err)
	}
	if o.Replication != 2 || o.BlockSize != 256<<20 || o.umask != 0o027 || o.Protection != "privacy" || o.Kerberos.Service != "nn/_HOST" || o.User != "alice" {
		t.Fatalf("%+v %+v", o, o.Kerberos)
	}
	for text, want := range map[string]int64{"": 0, "134217728": 128 << 20, "1g": 1 << 30, "64K": 64 << 10, "x": 0} {
		if got := hadoopBytes(text); got != want {
			t.Errorf("%q is %d bytes, want %d", text, got, want)
		}
	}
	for text, want := range map[string]os.FileMode{"022": 0o022, "0": 0, "18": 0o777, "u=rwx,g=rwx,o=": 0o007, "u=rwx,g=rx,o=rx": 0o022, "ug=rwx": 0o007,
		"a=rx,u=rwx": 0o022, "=rwx": 0, "u=rwx, g=r": 0o037, "u+w": 0o777, "z=r": 0o777, "u=rwt": 0o777, "u": 0o777} {
		got, ok := parseUmask(text)
		if ok == (want == 0o777) || ok && got != want {
			t.Errorf("umask %q is %#o, %v; want %#o", text, got, ok, want)
		}
	}
	t.Setenv("HADOOP_CONF_DIR", conf(t, "fs.permissions.umask-mode", "u+w"))
	if err := (&Options{Authority: "nn:1"}).resolve(); err == nil || fault.ClassOf(err) != fault.Config {
		t.Fatal(err)
	}
}

// remote is an answer of a name node.
type remote struct{ method, exception, message, desc string }

func (r remote) Error() string     { return r.method + " failed with " + r.exception }
func (r remote) Method() string    { return r.method }
func (r remote) Desc() string      { return r.desc }
func (r remote) Exception() string { return r.exception }
func (r remote) Message() string   { return r.message }

// TestJudge: H5, what each error says of its operation.
func TestJudge(t *testing.T) {
	const pkg = "org.apache.hadoop.hdfs.server.namenode."
	for _, c := range []struct {
		err  error
		want outcome
		is   error
	}{
		{nil, answered, nil},
		{remote{"mkdirs", pkg + "SafeModeException", "Name node is in safe mode.", ""}, postponed, nil},
		{remote{"create", "org.apache.hadoop.ipc.RetriableException", "SafeModeException", ""}, postponed, nil},
		{remote{"create", "org.apache.hadoop.ipc.StandbyException", "", ""}, postponed, nil},
		{remote{"create", "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException", "too much", ""}, postponed, storage.ErrNoSpace},
		{remote{"addBlock", "java.io.IOException", "could only be written to 0 of the 1 minReplication nodes", ""}, postponed, nil},
		{remote{"rename2", "java.io.IOException", "must both be directories", ""}, answered, nil},
		{remote{"rename2", "org.apache.hadoop.fs.FileAlreadyExistsException", "", ""}, answered, fs.ErrExist},
		{remote{"create", "org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException", "", ""}, answered, fs.ErrExist},
		{remote{"delete", "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException", "", ""}, answered, fs.ErrExist},
		{remote{"rename2", "java.io.FileNotFoundException", "", ""}, answered, fs.ErrNotExist},
		{&os.PathError{Op: "mkdir", Path: "/x", Err: remote{"mkdirs", "org.apache.hadoop.security.AccessControlException", "Permission denied: user=x", ""}}, answered, fs.ErrPermission},
		{remote{"getFileInfo", "", "", "FATAL_UNAUTHORIZED"}, unknown, nil},
		{remote{"sasl", "javax.security.sasl.SaslException", "GSS initiate failed", ""}, unknown, nil},
		{&os.PathError{Op: "stat", Path: "/x", Err: os.ErrNotExist}, answered, fs.ErrNotExist},
		{io.EOF, unknown, nil},
		{errors.New("no available namenodes: connection refused"), unknown, nil},
		{errors.New("unexpected sequence number"), unknown, nil},
		{fault.New(fault.Config, "", "bad keytab"), answered, nil},
	} {
		got, err := judge(c.err)
		if got != c.want || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%v: %d, %v; want %d, %v", c.err, got, err, c.want, c.is)
		}
		if c.err != nil && err == nil {
			t.Errorf("%v became no error", c.err)
		}
	}
}

// TestDeadlines: H4, whoever sets none, or a later one, is bounded, and the
// connection is closed by its first error, which is the one that is told.
func TestDeadlines(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d := &dialer{connect: time.Minute, call: 50 * time.Millisecond}
	c, err := d.nameNode(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	var first net.Error
	if _, err := c.Read(make([]byte, 1)); !errors.As(err, &first) || !first.Timeout() {
		t.Fatalf("read of a silent server: %v", err)
	}
	if _, err := c.Write([]byte("x")); !errors.As(err, &first) || !first.Timeout() {
		t.Fatalf("a write afterwards tells another error: %v", err)
	}
	if len(d.open) != 0 {
		t.Fatal("the connection is still known")
	}
	c, err = d.nameNode(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	d.hangUp()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Fatal("read after hanging up")
	}
	if _, err := d.nameNode(t.Context(), "tcp", l.Addr().String()); !errors.Is(err, errSessionOver) {
		t.Fatalf("a new connection of a session that is over: %v", err)
	}
}

// TestKerberosIsGuessed: the sign of a cluster with Kerberos may be seen on the
// first try only.
func TestKerberosIsGuessed(t *testing.T) {
	f := &FS{o: Options{Authority: "nn:8020", StartTimeout: time.Hour, Notify: func(string, error) {}}}
	p := &patience{f: f, what: "connect"}
	if err := p.pause(errors.New("unexpected sequence number")); err != nil {
		t.Fatal(err)
	}
	f.o.StartTimeout = time.Nanosecond
	err := p.pause(errors.New("write: broken pipe"))
	var classed *fault.Error
	if !errors.As(err, &classed) || !strings.Contains(classed.Hint, "hdfs.kerberos") {
		t.Fatal(err)
	}
}

// TestLoginIsNoAnswer: a keytab that is being exchanged is not there for a
// moment. That says nothing about the files of the cluster: the operation waits.
func TestLoginIsNoAnswer(t *testing.T) {
	krb5Conf := filepath.Join(t.TempDir(), "krb5.conf")
	if err := os.WriteFile(krb5Conf, []byte("[libdefaults]\n default_realm = R.TEST\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &FS{over: make(chan struct{}), o: Options{Authority: "nn:1", Patience: 10 * time.Millisecond, Notify: func(string, error) {},
		ConnectTimeout: time.Second, CallTimeout: time.Second}}
	f.tickets = krb5.NewTickets(krb5.Identity{At: "hdfs.kerberos", Principal: "u", Keytab: "/nowhere", Krb5Conf: krb5Conf})
	f.worked.Store(true)
	_, stat := f.Stat("/x")
	for op, err := range map[string]error{
		"stat": stat, "remove": f.Remove("/x"), "rename": f.Rename("/x", "/y"), "put": f.Put("/x", strings.NewReader("text"), 4),
	} {
		if err == nil || errors.Is(err, fs.ErrNotExist) || fault.ClassOf(err) != fault.Retry || !strings.Contains(err.Error(), "hdfs.kerberos.keytab") {
			t.Errorf("%s: class %s: %v", op, fault.ClassOf(err), err)
		}
	}
}

// TestFirewall: what the kernel says of a connection is no refusal of the name
// node's.
func TestFirewall(t *testing.T) {
	err := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.EPERM)}
	if was, _ := judge(err); was != unknown {
		t.Errorf("%v: %d", err, was)
	}
}

// TestOutOfBounds: a block size or replication that the name node does not allow
// is not waited for.
func TestOutOfBounds(t *testing.T) {
	for message, option := range map[string]string{
		"Specified block size is less than configured minimum value (dfs.namenode.fs-limits.min-block-size): 1024 < 1048576": "hdfs.block_size",
		"Requested replication factor of 600 exceeds maximum of 512 for /x, clientName=c":                                    "hdfs.replication",
	} {
		was, err := judge(&os.PathError{Op: "create", Path: "/x", Err: remote{"create", "java.io.IOException", message, ""}})
		if was != answered || repeatable(err) || fault.ClassOf(err) != fault.Config || !strings.Contains(err.Error(), option) {
			t.Errorf("%s: %d, class %s: %v", message, was, fault.ClassOf(err), err)
		}
	}
}

// TestLaidOutConfiguration: values have blanks and line ends around them in many
// a cluster's files, and addresses no port.
func TestLaidOutConfiguration(t *testing.T) {
	dir := conf(t, "dfs.ha.namenodes.lake", "\n  a,\n  b\n", "dfs.namenode.rpc-address.lake.a", "\n  nn1:8021\n",
		"dfs.namenode.rpc-address.lake.b", " nn2 ", "dfs.replication", " 2 ", "fs.permissions.umask-mode", "\n027\n")
	o := Options{Authority: "lake", ConfDir: dir}
	if err := o.resolve(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(o.NameNodes, " "); got != "nn1:8021 nn2:8020" || o.Replication != 2 || o.umask != 0o027 {
		t.Errorf("%s, replication %d, umask %#o", got, o.Replication, o.umask)
	}
}

// TestErasureCoded: a directory's policy is seen, and that which means none.
func TestErasureCoded(t *testing.T) {
	for id, want := range map[uint32]bool{1: true, replicationPolicy: false} {
		policy, err := message("ErasureCodingPolicyProto", "id", id)
		if err != nil {
			t.Fatal(err)
		}
		status := new(hdfs.FileStatus)
		if erasureCoded(status) {
			t.Error("a directory without a policy has one")
		}
		m := status.ProtoReflect()
		m.Set(m.Descriptor().Fields().ByName("ecPolicy"), protoreflect.ValueOf(policy))
		if erasureCoded(status) != want {
			t.Errorf("policy %d: %t", id, !want)
		}
	}
}
