package services

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Addresses of the Hive Metastores.
const (
	HMS4 = "127.0.0.1:19083" // 4.0.1 on Derby
	HMS3 = "127.0.0.1:19084" // 3.1.3 on Derby
)

// metastore is one Hive Metastore.
type metastore struct {
	daemon     string
	coordinate string
	schemaTool string
	port       int
	postgres   bool
	properties []string // name, value, name, value, …
}

const (
	hive4 = "org.apache.hive:hive-standalone-metastore-server:4.0.1:tar.gz:bin"
	hive3 = "org.apache.hive:hive-standalone-metastore:3.1.3:tar.gz:bin"

	schemaTool4 = "org.apache.hadoop.hive.metastore.tools.schematool.MetastoreSchemaTool"
	schemaTool3 = "org.apache.hadoop.hive.metastore.tools.MetastoreSchemaTool"
)

func init() {
	register(Service{
		Name: "hms", About: "Hive Metastore 4.0.1 and 3.1.3 on Derby: " + HMS4 + ", " + HMS3, Default: true,
		Up: func(h *Home) error {
			for _, m := range []metastore{
				{daemon: "hms-4", coordinate: hive4, schemaTool: schemaTool4, port: 19083},
				{daemon: "hms-3", coordinate: hive3, schemaTool: schemaTool3, port: 19084},
			} {
				if err := m.up(h); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// up makes the schema of a metastore's database, when it is not there, and
// starts the metastore.
func (m *metastore) up(h *Home) error {
	if h.Running(m.daemon) {
		return h.Start(Daemon{Name: m.daemon})
	}
	dist, err := h.Unpacked(m.coordinate)
	if err != nil {
		return err
	}
	classPath, err := h.ClassPath(Source("poms", "hms", "pom.xml"))
	if err != nil {
		return err
	}
	dir, err := h.Data(filepath.Join("hms", m.daemon))
	if err != nil {
		return err
	}
	if err := m.configure(h, dir); err != nil {
		return err
	}
	options := []string{"-Dderby.system.durability=test", "-Dderby.stream.error.file=" + filepath.Join(dir, "derby.log"),
		"-Dlog4j.configurationFile=" + filepath.Join(dir, "log4j2.properties"), "-Dlog4j2.formatMsgNoLookups=true"}
	options = append(options, hadoopUser...)
	java, err := Java(strings.Join([]string{dir, h.hadoopConf(), dist + "/lib/*", classPath}, ":"), "384m", options...)
	if err != nil {
		return err
	}
	env := []string{"METASTORE_HOME=" + dist}
	if err := m.schema(h, dir, java, env); err != nil {
		return err
	}
	return h.Start(Daemon{Name: m.daemon, Dir: dir, Env: env, Ports: []int{m.port},
		Argv: append(java, "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", fmt.Sprint(m.port))})
}

// hadoopUser keeps Hadoop from asking who runs it.
var hadoopUser = []string{"-DHADOOP_USER_NAME=hive"}

// hadoopConf is the client configuration of the HDFS service, so that locations
// of its scheme mean something to the metastore. It may not be there.
func (h *Home) hadoopConf() string { return h.Path("data", "hdfs", "conf") }

// schema makes the tables of the metastore's database once. A Derby directory
// belongs to one JVM: first this, then the server.
func (m *metastore) schema(h *Home, dir string, java, env []string) error {
	done := filepath.Join(dir, "schema-ok")
	if _, err := os.Stat(done); err == nil {
		return nil
	}
	kind := "derby"
	if m.postgres {
		kind = "postgres"
		if err := h.createDatabase(m.database()); err != nil {
			return err
		}
	} else if err := os.RemoveAll(filepath.Join(dir, "derby")); err != nil {
		return err
	}
	if err := RunIn(dir, env, append(java, m.schemaTool, "-dbType", kind, "-initSchema")...); err != nil {
		return fmt.Errorf("the schema of %s: %w", m.daemon, err)
	}
	return os.WriteFile(done, nil, 0o644)
}

func (m *metastore) database() string { return strings.ReplaceAll(m.daemon, "-", "_") }

func (m *metastore) configure(h *Home, dir string) error {
	url, driver, user, password := "jdbc:derby:;databaseName="+filepath.Join(dir, "derby")+";create=true", "org.apache.derby.jdbc.EmbeddedDriver", "APP", "mine"
	if m.postgres {
		url, driver, user, password = "jdbc:postgresql://"+Postgres+"/"+m.database(), "org.postgresql.Driver", postgresUser, postgresPassword
	}
	warehouse := "file://" + filepath.Join(dir, "warehouse")
	properties := []string{
		"javax.jdo.option.ConnectionURL", url, "javax.jdo.option.ConnectionDriverName", driver,
		"javax.jdo.option.ConnectionUserName", user, "javax.jdo.option.ConnectionPassword", password,
		"metastore.thrift.port", fmt.Sprint(m.port), "metastore.thrift.bind.host", "127.0.0.1", "hive.metastore.thrift.bind.host", "127.0.0.1",
		"metastore.thrift.uris", fmt.Sprintf("thrift://127.0.0.1:%d", m.port),
		"metastore.warehouse.dir", warehouse, "metastore.warehouse.external.dir", warehouse, "metastore.schema.verification", "true",
		// The default one is in hive-exec, which the archive does not have.
		"metastore.expression.proxy", "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
		"metastore.task.threads.always", "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
		"metastore.server.min.threads", "4", "metastore.server.max.threads", "50", "metastore.housekeeping.threads.on", "false",
		"metastore.compactor.initiator.on", "false", "metastore.compactor.worker.threads", "0", "metastore.metrics.enabled", "false",
		"metastore.execute.setugi", "false", "datanucleus.connectionPoolingType", "HikariCP", "datanucleus.connectionPool.maxPoolSize", "6",
	}
	properties = append(properties, m.properties...)
	var site strings.Builder
	site.WriteString("<configuration>\n")
	for i := 0; i < len(properties); i += 2 {
		site.WriteString("  <property><name>" + properties[i] + "</name><value>")
		if err := xml.EscapeText(&site, []byte(properties[i+1])); err != nil {
			return err
		}
		site.WriteString("</value></property>\n")
	}
	site.WriteString("</configuration>\n")
	if err := os.WriteFile(filepath.Join(dir, "metastore-site.xml"), []byte(site.String()), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "log4j2.properties"), []byte(hmsLog4j), 0o644)
}

const hmsLog4j = `status = WARN
appender.c.type = Console
appender.c.name = c
appender.c.layout.type = PatternLayout
appender.c.layout.pattern = %d{ISO8601} %p %c{2}: %m%n
rootLogger.level = INFO
rootLogger.appenderRef.c.ref = c
`
