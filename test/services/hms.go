package services

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Addresses of the Hive Metastores.
const (
	HMS4 = "127.0.0.1:19083" // 4.0.1 on Derby
	HMS3 = "127.0.0.1:19084" // 3.1.3 on Derby
)

// Addresses of those with something special each, 4.0.1 unless it says so.
const (
	HMSKrb      = "localhost:19085" // Kerberos: service hms-krb
	HMSKrb3     = "localhost:19088" // the same, 3.1.3
	HMSPassword = "127.0.0.1:19086" // user and password, SASL PLAIN: service hms-plain
	HMSPostgres = "127.0.0.1:19087" // on PostgreSQL: service hms-pg
	HMSTLS      = "localhost:19089" // TLS: service hms-tls
	HMSExpired  = "localhost:19090" // TLS with a certificate that has expired: service hms-tls
)

// Who may ask the metastore of HMSPassword.
const (
	HMSUser   = "announcer"
	HMSSecret = "announcers-secret"
)

// metastore is one Hive Metastore.
type metastore struct {
	service    string
	daemon     string
	coordinate string
	schemaTool string
	port       int
	postgres   bool
	kerberos   bool
	properties []string // name, value, name, value, …
}

// variant is a metastore 4.0.1 with something special.
func variant(service string, port int) *metastore {
	return &metastore{service: service, daemon: strings.ReplaceAll(service, "-", "") + "-4", coordinate: hive4, schemaTool: schemaTool4, port: port}
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
				{service: "hms", daemon: "hms-4", coordinate: hive4, schemaTool: schemaTool4, port: 19083},
				{service: "hms", daemon: "hms-3", coordinate: hive3, schemaTool: schemaTool3, port: 19084},
			} {
				if err := m.up(h); err != nil {
					return err
				}
			}
			return nil
		},
	})
	register(Service{Name: "hms-krb", About: "Hive Metastore 4.0.1 and 3.1.3 with Kerberos: " + HMSKrb + ", " + HMSKrb3, Needs: []string{"krb5"}, Prefix: "hmskrb",
		Up: func(h *Home) error {
			old := hmsKerberos(h, "authentication")
			old.daemon, old.coordinate, old.schemaTool, old.port = "hmskrb-3", hive3, schemaTool3, 19088
			return errors.Join(hmsKerberos(h, "authentication").up(h), old.up(h))
		}})
	password := variant("hms-plain", 19086)
	password.properties = []string{"metastore.authentication", "CONFIG",
		"metastore.authentication.config.username", HMSUser, "metastore.authentication.config.password", HMSSecret}
	register(Service{Name: "hms-plain", About: "Hive Metastore 4.0.1 with user and password: " + HMSPassword, Prefix: "hmsplain", Up: password.up})
	register(Service{Name: "hms-tls", About: "Hive Metastore 4.0.1 with TLS: " + HMSTLS + "; with an expired certificate: " + HMSExpired, Prefix: "hmstls",
		Up: func(h *Home) error {
			good, err := hmsTLS(h, "hmstls-4", 19089, "-validity", "3650")
			if err != nil {
				return err
			}
			expired, err := hmsTLS(h, "hmstls-old", 19090, "-startdate", "-10d", "-validity", "5")
			if err != nil {
				return err
			}
			return errors.Join(good.up(h), expired.up(h))
		}})
	postgres := variant("hms-pg", 19087)
	postgres.postgres = true
	register(Service{Name: "hms-pg", About: "Hive Metastore 4.0.1 on PostgreSQL: " + HMSPostgres, Needs: []string{"postgres"}, Prefix: "hmspg", Up: postgres.up})
}

// hmsKerberos is the metastore with Kerberos; protection is its
// hadoop.rpc.protection.
func hmsKerberos(h *Home, protection string) *metastore {
	m := variant("hms-krb", 19085)
	m.kerberos = true
	m.properties = []string{"metastore.sasl.enabled", "true", "hive.metastore.sasl.enabled", "true",
		"metastore.kerberos.principal", "hive/localhost@" + KrbRealm, "hive.metastore.kerberos.principal", "hive/localhost@" + KrbRealm,
		"metastore.kerberos.keytab.file", Keytab(h, "hive"), "hive.metastore.kerberos.keytab.file", Keytab(h, "hive"),
		"hadoop.security.authentication", "kerberos", "hadoop.rpc.protection", protection}
	return m
}

// hmsTLS is a metastore with TLS, and a certificate of its own that the JDK's
// tool makes.
func hmsTLS(h *Home, daemon string, port int, validity ...string) (*metastore, error) {
	m := variant("hms-tls", port)
	m.daemon = daemon
	dir, err := h.Data(filepath.Join(m.service, daemon))
	if err != nil {
		return nil, err
	}
	store := filepath.Join(dir, "keystore.p12")
	m.properties = []string{"metastore.use.SSL", "true", "hive.metastore.use.SSL", "true",
		"metastore.keystore.path", store, "metastore.keystore.password", hmsStorePassword}
	pem := hmsCertificate(h, daemon)
	if _, err := os.Stat(pem); err == nil {
		return m, nil
	}
	if err := os.RemoveAll(store); err != nil {
		return nil, err
	}
	key := []string{"-keystore", store, "-storetype", "PKCS12", "-storepass", hmsStorePassword, "-alias", "hms"}
	if err := RunIn(dir, nil, slices.Concat([]string{"keytool", "-genkeypair", "-keyalg", "EC", "-dname", "CN=localhost", "-ext", "san=dns:localhost"}, key, validity)...); err != nil {
		return nil, fmt.Errorf("a certificate for %s: %w", daemon, err)
	}
	if err := RunIn(dir, nil, slices.Concat([]string{"keytool", "-exportcert", "-rfc", "-file", pem}, key)...); err != nil {
		return nil, fmt.Errorf("the certificate of %s: %w", daemon, err)
	}
	return m, nil
}

const hmsStorePassword = "of-no-importance"

// HMSCertificate is the certificate of HMSTLS, which is its own authority, and
// that of HMSExpired.
func HMSCertificate(h *Home) (good, expired string) {
	return hmsCertificate(h, "hmstls-4"), hmsCertificate(h, "hmstls-old")
}

func hmsCertificate(h *Home, daemon string) string {
	return h.Path("data", "hms-tls", daemon, "certificate.pem")
}

// ProtectHMS restarts the metastore with Kerberos with another protection of
// its messages: authentication, integrity or privacy.
func ProtectHMS(h *Home, protection string) error {
	m := hmsKerberos(h, protection)
	if err := h.Kill(m.daemon); err != nil {
		return err
	}
	return m.up(h)
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
	dir, err := h.Data(filepath.Join(m.service, m.daemon))
	if err != nil {
		return err
	}
	if err := m.configure(h, dir); err != nil {
		return err
	}
	options := []string{"-Dderby.system.durability=test", "-Dderby.stream.error.file=" + filepath.Join(dir, "derby.log"),
		"-Dlog4j.configurationFile=" + filepath.Join(dir, "log4j2.properties"), "-Dlog4j2.formatMsgNoLookups=true"}
	if m.kerberos {
		options = append(options, "-Djava.security.krb5.conf="+Krb5Strict(h))
	} else {
		options = append(options, hadoopUser...)
	}
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

// s3aProperties let a metastore look at locations in the stores' buckets.
var s3aProperties = []string{
	"fs.s3a.access.key", S3AccessKey, "fs.s3a.secret.key", S3SecretKey, "fs.s3a.path.style.access", "true",
	"fs.s3a.endpoint.region", "us-east-1", "fs.s3a.connection.ssl.enabled", "false",
	"fs.s3a.endpoint", local(versityPort), "fs.s3a.bucket." + MinIOBucket + ".endpoint", local(minioPort),
}

func (m *metastore) database() string { return strings.ReplaceAll(m.daemon, "-", "_") }

func (m *metastore) configure(h *Home, dir string) error {
	url, driver, user, password := "jdbc:derby:;databaseName="+filepath.Join(dir, "derby")+";create=true", "org.apache.derby.jdbc.EmbeddedDriver", "APP", "mine"
	if m.postgres {
		url, driver, user, password = "jdbc:postgresql://"+Postgres+"/"+m.database(), "org.postgresql.Driver", postgresUser, postgresPassword
	}
	warehouse := "file://" + filepath.Join(dir, "warehouse")
	site := []string{
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
	site = slices.Concat(site, s3aProperties, HDFSPair.names(), m.properties)
	if err := os.WriteFile(filepath.Join(dir, "metastore-site.xml"), []byte(properties(site).xml()), 0o644); err != nil {
		return err
	}
	if m.kerberos {
		core := properties(m.properties).xml()
		if err := os.WriteFile(filepath.Join(dir, "core-site.xml"), []byte(core), 0o644); err != nil {
			return err
		}
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
