package services

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Kafka is one cluster: its daemons are named Prefix-1 and so on.
type Kafka struct {
	Service string
	Prefix  string
	base    int // port 0 of broker 1; the next broker has ten more
	brokers int
	secure  bool // listeners with Kerberos, too
}

// The clusters.
var (
	KafkaSingle = Kafka{Service: "kafka", Prefix: "kafka", base: 19090, brokers: 1}
	KafkaThree  = Kafka{Service: "kafka-3", Prefix: "kafka3", base: 19100, brokers: 3}
	KafkaSecure = Kafka{Service: "kafka-krb", Prefix: "kafkakrb", base: 19140, brokers: 1, secure: true}
)

// User of the SASL listener, by PLAIN and by SCRAM.
const (
	KafkaUser     = "alice"
	KafkaPassword = "alice-secret"
)

// Offsets of a broker's ports.
const (
	kafkaPlain      = 2
	kafkaController = 3
	kafkaSASL       = 4
	kafkaTLS        = 5
	kafkaMutual     = 6
	kafkaKrb        = 7
	kafkaKrbTLS     = 8
)

// KafkaReauth is how often the listeners with Kerberos want to hear who one is.
const KafkaReauth = 2 * time.Second

func init() {
	for _, c := range []Kafka{KafkaSingle, KafkaThree} {
		register(Service{Name: c.Service, About: fmt.Sprintf("Apache Kafka 4.4.0, %d brokers, %s", c.brokers, strings.Join(c.Brokers(), ",")),
			Default: true, Prefix: c.Prefix, Up: c.up})
	}
	register(Service{Name: KafkaSecure.Service, About: "Apache Kafka 4.4.0 with Kerberos, " + strings.Join(KafkaSecure.Kerberos(), ","), Needs: []string{"krb5"},
		Prefix: KafkaSecure.Prefix, Up: KafkaSecure.up})
}

// variable is the environment variable that has other addresses.
func (c Kafka) variable(listener string) string {
	return "HIVESINK_" + strings.ToUpper(strings.ReplaceAll(c.Service, "-", "_")) + listener
}

func (c Kafka) addresses(listener string, port int) []string {
	own := make([]string, c.brokers)
	for i := range own {
		own[i] = fmt.Sprintf("localhost:%d", c.base+10*i+port)
	}
	return Addresses(c.variable(listener), own...)
}

// Brokers are the addresses without encryption or authentication; SASL those
// that want KafkaUser, TLS those that encrypt, Mutual those that also want a
// certificate.
func (c Kafka) Brokers() []string { return c.addresses("", kafkaPlain) }
func (c Kafka) SASL() []string    { return c.addresses("_SASL", kafkaSASL) }
func (c Kafka) TLS() []string     { return c.addresses("_TLS", kafkaTLS) }
func (c Kafka) Mutual() []string  { return c.addresses("_MTLS", kafkaMutual) }

// Kerberos are the addresses of a secure cluster that want a ticket, KerberosTLS
// those that encrypt besides.
func (c Kafka) Kerberos() []string    { return c.addresses("_KRB", kafkaKrb) }
func (c Kafka) KerberosTLS() []string { return c.addresses("_KRB_TLS", kafkaKrbTLS) }

// Daemon is the name of a broker, from 1.
func (c Kafka) Daemon(broker int) string { return c.Prefix + "-" + strconv.Itoa(broker) }

// Certificates is the directory of ca.pem, client.pem and client.key.
func (c Kafka) Certificates(h *Home) string { return h.Path("data", c.Service, "tls") }

func (c Kafka) up(h *Home) error {
	cp, err := h.ClassPath(Source("poms", "kafka", "pom.xml"))
	if err != nil {
		return err
	}
	data, err := h.Data(c.Service)
	if err != nil {
		return err
	}
	tls := c.Certificates(h)
	if _, err := os.Stat(filepath.Join(tls, "ca.pem")); err != nil {
		if err := MakeCertificates(tls, "localhost"); err != nil {
			return err
		}
	}
	id, err := clusterID(filepath.Join(data, "cluster-id"))
	if err != nil {
		return err
	}
	return c.answer(func() error {
		for i := range c.brokers { // those that run are left alone
			if err := c.start(h, data, cp, id, i); err != nil {
				return err
			}
		}
		return nil
	})
}

// clusterID is made at the first start and kept.
func clusterID(file string) (string, error) {
	if text, err := os.ReadFile(file); err == nil {
		return string(text), nil
	}
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	b[0] |= 1 // the tools take a leading hyphen for an option
	id := "A" + base64.RawURLEncoding.EncodeToString(b[:])[1:]
	return id, os.WriteFile(file, []byte(id), 0o644)
}

func (c Kafka) start(h *Home, data, cp, id string, i int) error {
	if h.Running(c.Daemon(i + 1)) {
		return nil
	}
	dir := filepath.Join(data, strconv.Itoa(i+1))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	conf := filepath.Join(dir, "server.properties")
	if err := os.WriteFile(conf, []byte(c.properties(h, dir, i)), 0o644); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "log", "meta.properties")); err != nil {
		format, err := Java(cp, "128m")
		if err != nil {
			return err
		}
		format = append(format, "kafka.tools.StorageTool", "format", "-t", id, "-c", conf)
		for _, m := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
			format = append(format, "--add-scram", m+"=[name="+KafkaUser+",password="+KafkaPassword+"]")
		}
		if err := Run(format...); err != nil {
			return err
		}
	}
	var options []string
	if c.secure {
		options = append(options, "-Djava.security.krb5.conf="+Krb5Strict(h))
	}
	argv, err := Java(cp, "320m", options...)
	if err != nil {
		return err
	}
	d := Daemon{Name: c.Daemon(i + 1), Argv: append(argv, "kafka.Kafka", conf), Dir: dir}
	if at := c.base + 10*i; c.brokers == 1 { // one of several opens its ports when most of them run
		d.Ports = []int{at + kafkaPlain, at + kafkaSASL, at + kafkaTLS, at + kafkaMutual}
		if c.secure {
			d.Ports = append(d.Ports, at+kafkaKrb, at+kafkaKrbTLS)
		}
	}
	return h.Start(d)
}

func (c Kafka) properties(h *Home, dir string, i int) string {
	var voters []string
	for k := range c.brokers {
		voters = append(voters, fmt.Sprintf("%d@localhost:%d", k+1, c.base+10*k+kafkaController))
	}
	at := c.base + 10*i
	listeners := fmt.Sprintf("PLAINTEXT://localhost:%d,SASL_PLAINTEXT://localhost:%d,SSL://localhost:%d,MUTUAL://localhost:%d",
		at+kafkaPlain, at+kafkaSASL, at+kafkaTLS, at+kafkaMutual)
	protocols := "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL,MUTUAL:SSL"
	if c.secure {
		listeners += fmt.Sprintf(",KRB://localhost:%d,KRBTLS://localhost:%d", at+kafkaKrb, at+kafkaKrbTLS)
		protocols += ",KRB:SASL_PLAINTEXT,KRBTLS:SASL_SSL"
	}
	replicas, inSync := c.brokers, max(1, c.brokers-1)
	jaas := "org.apache.kafka.common.security."
	tls := c.Certificates(h)
	lines := []string{
		"process.roles=broker,controller",
		"node.id=" + strconv.Itoa(i+1),
		"controller.quorum.voters=" + strings.Join(voters, ","),
		"controller.listener.names=CONTROLLER",
		fmt.Sprintf("listeners=%s,CONTROLLER://localhost:%d", listeners, at+kafkaController),
		"advertised.listeners=" + listeners,
		"listener.security.protocol.map=" + protocols,
		"inter.broker.listener.name=PLAINTEXT",
		"log.dirs=" + filepath.Join(dir, "log"),
		"sasl.enabled.mechanisms=SCRAM-SHA-256,SCRAM-SHA-512,PLAIN",
		"listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config=" + jaas + "scram.ScramLoginModule required;",
		"listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config=" + jaas + "scram.ScramLoginModule required;",
		"listener.name.sasl_plaintext.plain.sasl.jaas.config=" + jaas + "plain.PlainLoginModule required user_" + KafkaUser + "=\"" + KafkaPassword + "\";",
		"ssl.keystore.type=PEM", "ssl.keystore.location=" + filepath.Join(tls, "server.both"),
		"ssl.truststore.type=PEM", "ssl.truststore.location=" + filepath.Join(tls, "ca.pem"),
		"listener.name.mutual.ssl.client.auth=required",
		"auto.create.topics.enable=false", "delete.topic.enable=true",
		"num.partitions=1", fmt.Sprintf("default.replication.factor=%d", replicas), fmt.Sprintf("min.insync.replicas=%d", inSync),
		"offsets.topic.num.partitions=4", fmt.Sprintf("offsets.topic.replication.factor=%d", replicas),
		"transaction.state.log.num.partitions=4", fmt.Sprintf("transaction.state.log.replication.factor=%d", replicas),
		fmt.Sprintf("transaction.state.log.min.isr=%d", inSync),
		fmt.Sprintf("share.coordinator.state.topic.replication.factor=%d", replicas), fmt.Sprintf("share.coordinator.state.topic.min.isr=%d", inSync),
		"group.initial.rebalance.delay.ms=0",
		// A busy machine takes long to start three of them.
		"initial.broker.registration.timeout.ms=600000",
		// Compaction and retention that a test can wait for.
		"log.cleaner.backoff.ms=500", "log.cleaner.dedupe.buffer.size=4194304", "log.retention.check.interval.ms=500", "log.initial.task.delay.ms=500",
		"num.network.threads=2", "num.io.threads=4", "message.max.bytes=33554432", "replica.fetch.max.bytes=33554432",
	}
	if c.secure {
		lines = append(lines, "sasl.kerberos.service.name=kafka")
		for _, listener := range []string{"krb", "krbtls"} {
			name := "listener.name." + listener + "."
			lines = append(lines, name+"sasl.enabled.mechanisms=GSSAPI", name+"gssapi.connections.max.reauth.ms="+strconv.FormatInt(KafkaReauth.Milliseconds(), 10),
				name+"gssapi.sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true keyTab=\""+
					Keytab(h, "kafka")+"\" principal=\"kafka/localhost@"+KrbRealm+"\";")
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// answer waits until the cluster has all its brokers and a controller. Each
// question is a new client's: one that asks often is answered from its cache. A
// broker that ends meanwhile, as one does that found no controller, is started again.
func (c Kafka) answer(start func() error) error {
	return Until(patience, func() error {
		if err := start(); err != nil {
			return Fatal(err)
		}
		client, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...))
		if err != nil {
			return Fatal(err)
		}
		defer client.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		md, err := kadm.NewClient(client).BrokerMetadata(ctx)
		if err == nil && (len(md.Brokers) < c.brokers || md.Controller < 0) {
			err = fmt.Errorf("%s has %d of %d brokers", c.Service, len(md.Brokers), c.brokers)
		}
		return err
	})
}
