package services

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Addresses of the HDFS clusters. Each mode has ports of its own, so that the
// clusters may run beside one another.
const (
	HDFSNameNode     = "localhost:18020"                 // service hdfs
	HDFSNameNodeHTTP = "localhost:18070"                 // its WebHDFS
	HDFSNameNodesHA  = "localhost:18120,localhost:18121" // service hdfs-ha
	HDFSPairHTTP     = "localhost:18170,localhost:18171" // their WebHDFS
	HDFSNameNodeKrb  = "localhost:18220"                 // service hdfs-krb
)

// HDFS is one cluster: its daemons are named Prefix-nn1, Prefix-dn1 and so on.
type HDFS struct {
	Service    string // name of the service
	Prefix     string
	base       int // first port
	ha, secure bool
	dataNodes  int
	// protection is dfs.data.transfer.protection of a secure cluster.
	protection string
	suites     string // dfs.encrypt.data.transfer.cipher.suites
}

// The clusters.
var (
	HDFSSingle = HDFS{Service: "hdfs", Prefix: "hdfs", base: 18000, dataNodes: 3}
	HDFSPair   = HDFS{Service: "hdfs-ha", Prefix: "hdfsha", base: 18100, ha: true, dataNodes: 3}
	HDFSSecure = HDFS{Service: "hdfs-krb", Prefix: "hdfskrb", base: 18200, secure: true, dataNodes: 1, protection: "authentication"}
)

func init() {
	register(Service{Name: "hdfs", About: "HDFS 3.4.2, a name node and 3 data nodes, hdfs://" + HDFSNameNode, Default: true,
		Prefix: HDFSSingle.Prefix, Up: HDFSSingle.up})
	register(Service{Name: "hdfs-ha", About: "HDFS 3.4.2, two name nodes, 3 journal nodes, 3 data nodes, " + HDFSNameNodesHA,
		Prefix: HDFSPair.Prefix, Up: HDFSPair.up})
	register(Service{Name: "hdfs-krb", About: "HDFS 3.4.2 with Kerberos, hdfs://" + HDFSNameNodeKrb, Needs: []string{"krb5"},
		Prefix: HDFSSecure.Prefix, Up: HDFSSecure.up})
}

// Daemon is the name of one of the cluster's daemons: nn1, dn2, jn3.
func (c HDFS) Daemon(role string) string { return c.Prefix + "-" + role }

// ConfDir is the cluster's HADOOP_CONF_DIR for clients.
func (c HDFS) ConfDir(h *Home) string { return h.Path("data", c.Service, "conf", "client") }

// Names of the daemons, in the order in which they start.
func (c HDFS) roles(kind string) []string {
	n := map[string]int{"nn": 1, "dn": c.dataNodes, "jn": 0}
	if c.ha {
		n["nn"], n["jn"] = 2, 3
	}
	var out []string
	for i := 1; i <= n[kind]; i++ {
		out = append(out, kind+strconv.Itoa(i))
	}
	return out
}

func number(role string) int {
	n, _ := strconv.Atoi(role[2:])
	return n
}

// Ports: name nodes base+20 and +70, journal nodes +30 and +80, data nodes
// +40 (data), +50 (IPC) and +60 (HTTP).
func (c HDFS) port(role, what string) int {
	at := map[string]int{"nn rpc": 19, "nn http": 69, "jn rpc": 29, "jn http": 79, "dn data": 39, "dn rpc": 49, "dn http": 59}
	return c.base + at[role[:2]+" "+what] + number(role)
}

func (c HDFS) addr(role, what string) string {
	return "localhost:" + strconv.Itoa(c.port(role, what))
}

// bind is where a daemon listens: loopback only.
func (c HDFS) bind(role, what string) string {
	return "127.0.0.1:" + strconv.Itoa(c.port(role, what))
}

func (c HDFS) up(h *Home) error {
	dir, err := h.Data(c.Service)
	if err != nil {
		return err
	}
	if err := c.configure(h, dir); err != nil {
		return err
	}
	run := func(roles []string) error {
		for _, role := range roles {
			d, err := c.daemon(h, dir, role)
			if err != nil {
				return err
			}
			if err := h.Start(d); err != nil {
				return err
			}
		}
		return nil
	}
	if err := run(c.roles("jn")); err != nil {
		return err
	}
	for i, role := range c.roles("nn") {
		format := []string{"-format", "-force", "-nonInteractive"}
		if i > 0 {
			format[0] = "-bootstrapStandby"
		}
		if _, err := os.Stat(filepath.Join(dir, role, "current")); err != nil {
			if err := c.tool(h, dir, role, nameNode, format...); err != nil {
				return err
			}
		}
		if err := run([]string{role}); err != nil {
			return err
		}
	}
	if c.ha {
		if err := c.someActive(h); err != nil {
			return err
		}
	}
	if err := run(c.roles("dn")); err != nil {
		return err
	}
	return c.Ready(h)
}

const (
	nameNode = "org.apache.hadoop.hdfs.server.namenode.NameNode"
	haAdmin  = "org.apache.hadoop.hdfs.tools.DFSHAAdmin"
)

func (c HDFS) main(role string) string {
	return map[string]string{"nn": nameNode, "dn": "org.apache.hadoop.hdfs.server.datanode.DataNode",
		"jn": "org.apache.hadoop.hdfs.qjournal.server.JournalNode"}[role[:2]]
}

func (c HDFS) command(h *Home, dir, role, main string, args ...string) ([]string, error) {
	jars, err := h.ClassPath(Source("poms", "hdfs", "pom.xml"))
	if err != nil {
		return nil, err
	}
	var options []string
	if c.secure {
		options = append(options, "-Djava.security.krb5.conf="+Krb5Conf(h))
	}
	argv, err := Java(strings.Join([]string{filepath.Join(dir, "conf", role), filepath.Join(dir, "www"), jars}, ":"), "192m", options...)
	return append(append(argv, main), args...), err
}

func (c HDFS) daemon(h *Home, dir, role string) (Daemon, error) {
	argv, err := c.command(h, dir, role, c.main(role))
	return Daemon{Name: c.Daemon(role), Argv: argv, Dir: dir, Ports: []int{c.port(role, "rpc")}}, err
}

func (c HDFS) tool(h *Home, dir, role, main string, args ...string) error {
	argv, err := c.command(h, dir, role, main, args...)
	if err != nil {
		return err
	}
	return Run(argv...)
}

// Tool runs one of Hadoop's command-line tools as a client of the cluster.
func (c HDFS) Tool(h *Home, main string, args ...string) error {
	return c.tool(h, h.Path("data", c.Service), "client", main, args...)
}

// Active makes one name node of a pair the active one; the other, when it
// runs, becomes standby.
func (c HDFS) Active(h *Home, role string) error {
	if state, _ := c.bean(role, "NameNode,name=NameNodeStatus", "State"); state == "active" {
		return nil
	}
	other := "nn1"
	if role == "nn1" {
		other = "nn2"
	}
	if h.Running(c.Daemon(other)) {
		if err := c.Tool(h, haAdmin, "-transitionToStandby", other); err != nil {
			return err
		}
		return c.Tool(h, haAdmin, "-transitionToActive", role)
	}
	return c.Tool(h, haAdmin, "-transitionToActive", "--forceactive", role)
}

func (c HDFS) someActive(h *Home) error {
	for _, role := range c.roles("nn") {
		if state, _ := c.bean(role, "NameNode,name=NameNodeStatus", "State"); state == "active" {
			return nil
		}
	}
	return c.Tool(h, haAdmin, "-transitionToActive", "nn1")
}

// Ready waits until all data nodes are alive and safe mode is over.
func (c HDFS) Ready(h *Home) error {
	return Until(patience, func() error {
		var last error
		for _, role := range c.roles("nn") {
			live, err := c.bean(role, "NameNode,name=FSNamesystemState", "NumLiveDataNodes")
			if err == nil && live != strconv.Itoa(c.dataNodes) {
				err = fmt.Errorf("%s knows of %s live data nodes", role, live)
			}
			if err == nil {
				var mode string
				if mode, err = c.bean(role, "NameNode,name=NameNodeInfo", "Safemode"); err == nil && mode != "" {
					err = fmt.Errorf("%s: %s", role, mode)
				}
			}
			if err == nil && c.ha {
				var state string
				if state, err = c.bean(role, "NameNode,name=NameNodeStatus", "State"); err == nil && state != "active" {
					err = fmt.Errorf("%s is %s", role, state)
				}
			}
			if err == nil {
				return nil
			}
			last = err
		}
		return last
	})
}

// Protect restarts the data nodes with another protection of data transfer, and
// tells clients; suites are dfs.encrypt.data.transfer.cipher.suites.
func (c HDFS) Protect(h *Home, protection, suites string) error {
	c.protection, c.suites = protection, suites
	if err := c.configure(h, h.Path("data", c.Service)); err != nil {
		return err
	}
	for _, role := range c.roles("dn") {
		if err := h.Kill(c.Daemon(role)); err != nil {
			return err
		}
		if err := h.Again(c.Daemon(role)); err != nil {
			return err
		}
	}
	return c.Ready(h)
}

// DataNode is the role of the data node that takes data at a port; "" is none.
func (c HDFS) DataNode(port int) string {
	for _, role := range c.roles("dn") {
		if c.port(role, "data") == port {
			return role
		}
	}
	return ""
}

// bean reads an attribute of a name node's JMX bean.
func (c HDFS) bean(role, bean, attribute string) (string, error) {
	client := http.Client{Timeout: 3 * time.Second}
	resp, err := client.Get("http://" + c.addr(role, "http") + "/jmx?qry=Hadoop:service=" + bean)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var out struct {
		Beans []map[string]any `json:"beans"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return "", err
	}
	if len(out.Beans) != 1 {
		return "", fmt.Errorf("%s has no bean %s yet", role, bean)
	}
	return fmt.Sprint(out.Beans[0][attribute]), nil
}

// configure writes a configuration directory for each daemon and for clients.
func (c HDFS) configure(h *Home, dir string) error {
	roles := slices.Concat([]string{"client"}, c.roles("nn"), c.roles("jn"), c.roles("dn"))
	for _, role := range roles {
		conf := filepath.Join(dir, "conf", role)
		if err := os.MkdirAll(conf, 0o755); err != nil {
			return err
		}
		core, err := c.core(dir)
		if err != nil {
			return err
		}
		hdfs := c.site(h)
		if role != "client" {
			hdfs = append(hdfs, c.own(dir, role)...)
		}
		for name, text := range map[string]string{"core-site.xml": core.xml(), "hdfs-site.xml": hdfs.xml(), "log4j.properties": log4j} {
			if err := os.WriteFile(filepath.Join(conf, name), []byte(text), 0o644); err != nil {
				return err
			}
		}
	}
	// Maven's jar has no web pages; the embedded web servers (JMX) only want
	// the directories to be there.
	for _, app := range []string{"hdfs", "datanode", "journal", "secondary", "static"} {
		web := filepath.Join(dir, "www", "webapps", app, "WEB-INF")
		if err := os.MkdirAll(web, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(web, "web.xml"), []byte("<web-app/>"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

const log4j = `log4j.rootLogger=INFO,A
log4j.appender.A=org.apache.log4j.ConsoleAppender
log4j.appender.A.layout=org.apache.log4j.PatternLayout
log4j.appender.A.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
`

// properties are a Hadoop configuration: name, value, name, value.
type properties []string

func (p properties) xml() string {
	var b strings.Builder
	b.WriteString("<configuration>\n")
	for i := 0; i+1 < len(p); i += 2 {
		fmt.Fprintf(&b, "<property><name>%s</name><value>%s</value></property>\n", p[i], p[i+1])
	}
	return b.String() + "</configuration>\n"
}

func (c HDFS) core(dir string) (properties, error) {
	fs := "hdfs://" + c.addr("nn1", "rpc")
	if c.ha {
		fs = "hdfs://pair"
	}
	p := properties{"fs.defaultFS", fs, "hadoop.tmp.dir", filepath.Join(dir, "tmp"), "ipc.client.connect.max.retries", "3"}
	if !c.secure {
		return p, nil
	}
	u, err := user.Current()
	if err != nil {
		return nil, err
	}
	return append(p, "hadoop.security.authentication", "kerberos", "hadoop.security.authorization", "true",
		"hadoop.security.auth_to_local", "RULE:[2:$1](hdfs)s/.*/"+u.Username+"/\nDEFAULT"), nil
}

// site is what all of a cluster have in common.
func (c HDFS) site(h *Home) properties {
	p := properties{
		"dfs.replication", strconv.Itoa(c.dataNodes),
		"dfs.namenode.fs-limits.min-block-size", "4096",
		"dfs.namenode.datanode.registration.ip-hostname-check", "false",
		"dfs.namenode.safemode.extension", "0",
		// More would keep a restarted name node in safe mode while one is down.
		"dfs.namenode.safemode.min.datanodes", "1",
		// A dead data node is noticed in 12 s instead of 10.5 minutes, a stale
		// one in 3 s.
		"dfs.heartbeat.interval", "1",
		"dfs.namenode.heartbeat.recheck-interval", "1000",
		"dfs.namenode.stale.datanode.interval", "3000",
		"dfs.namenode.avoid.read.stale.datanode", "true",
		"dfs.namenode.avoid.write.stale.datanode", "true",
		// Every node is as good as any other, so that which ones a file is on
		// does not depend on what ran before.
		"dfs.namenode.redundancy.considerLoad", "false",
		"dfs.namenode.handler.count", "8",
		"dfs.datanode.handler.count", "3",
		"dfs.namenode.redundancy.interval.seconds", "1s",
		"dfs.datanode.hostname", "localhost",
	}
	if c.ha {
		p = append(p, c.names()...)
		var journals []string
		for _, jn := range c.roles("jn") {
			journals = append(journals, c.addr(jn, "rpc"))
		}
		p = append(p, "dfs.namenode.shared.edits.dir", "qjournal://"+strings.Join(journals, ";")+"/pair",
			"dfs.ha.fencing.methods", "shell(/bin/true)", "dfs.ha.tail-edits.period", "1s",
			"dfs.ha.automatic-failover.enabled", "false", "dfs.ha.nn.not-become-active-in-safemode", "false")
	} else {
		p = append(p, "dfs.namenode.rpc-address", c.addr("nn1", "rpc"), "dfs.namenode.http-address", c.addr("nn1", "http"),
			"dfs.namenode.secondary.http-address", "localhost:0")
	}
	if c.secure {
		for _, who := range []string{"namenode", "datanode"} {
			p = append(p, "dfs."+who+".kerberos.principal", "hdfs/localhost@"+KrbRealm, "dfs."+who+".keytab.file", Keytab(h, "hdfs"))
		}
		p = append(p, "dfs.web.authentication.kerberos.principal", "HTTP/localhost@"+KrbRealm,
			"dfs.web.authentication.kerberos.keytab", Keytab(h, "hdfs"), "dfs.block.access.token.enable", "true",
			"dfs.data.transfer.protection", c.protection,
			"dfs.encrypt.data.transfer.cipher.suites", c.suites,
			// Without HTTPS a secure data node refuses unprivileged ports; Hadoop's
			// own tests use this switch.
			"ignore.secure.ports.for.testing", "true")
	}
	return p
}

// names says to a client what hdfs://pair is.
func (c HDFS) names() properties {
	p := properties{"dfs.nameservices", "pair", "dfs.ha.namenodes.pair", "nn1,nn2",
		"dfs.client.failover.proxy.provider.pair", "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"}
	for _, nn := range c.roles("nn") {
		p = append(p, "dfs.namenode.rpc-address.pair."+nn, c.addr(nn, "rpc"), "dfs.namenode.http-address.pair."+nn, c.addr(nn, "http"))
	}
	return p
}

// Client is what a Hadoop client that is not given ConfDir has to know of a pair.
func (c HDFS) Client() map[string]string {
	out := make(map[string]string)
	for p := c.names(); len(p) > 0; p = p[2:] {
		out[p[0]] = p[1]
	}
	return out
}

// own is what one daemon has for itself.
func (c HDFS) own(dir, role string) properties {
	at := "file://" + filepath.Join(dir, role)
	switch role[:2] {
	case "nn":
		p := properties{"dfs.namenode.name.dir", at}
		if c.ha {
			p = append(p, "dfs.ha.namenode.id", role)
		}
		return p
	case "jn":
		return properties{"dfs.journalnode.edits.dir", filepath.Join(dir, role),
			"dfs.journalnode.rpc-address", c.bind(role, "rpc"), "dfs.journalnode.http-address", c.bind(role, "http")}
	}
	return properties{"dfs.datanode.data.dir", at, "dfs.datanode.address", c.bind(role, "data"),
		"dfs.datanode.ipc.address", c.bind(role, "rpc"), "dfs.datanode.http.address", c.bind(role, "http")}
}
