//go:build integration

package kafkatest

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hivesink/hivesink/test/services"
)

// secretFile keeps a secret where a reference finds it.
func (w *world) secretFile(value string) string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(value+"\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func certificates(t *testing.T) string {
	t.Helper()
	h, err := services.DefaultHome()
	if err != nil {
		t.Fatal(err)
	}
	dir := os.Getenv("HIVESINK_KAFKA_CERTIFICATES")
	if dir == "" {
		dir = services.KafkaSingle.Certificates(h)
	}
	return dir
}

// Every way in works.
func TestSecurity(t *testing.T) {
	c, tlsDir := services.KafkaSingle, certificates(t)
	sasl := func(mechanism string) []string {
		return []string{"brokers: [" + strings.Join(c.SASL(), ",") + "]", "sasl: {mechanism: " + mechanism + ", username: alice, password: {env: KAFKA_TEST_PASSWORD}}"}
	}
	t.Setenv("KAFKA_TEST_PASSWORD", services.KafkaPassword)
	for name, options := range map[string][]string{
		"plain":     sasl("PLAIN"),
		"scram 256": sasl("SCRAM-SHA-256"),
		"scram 512": sasl("SCRAM-SHA-512"),
		"tls":       {"brokers: [" + strings.Join(c.TLS(), ",") + "]", "tls: {ca: " + tlsDir + "/ca.pem}"},
		"mutual": {"brokers: [" + strings.Join(c.Mutual(), ",") + "]",
			"tls: {ca: " + tlsDir + "/ca.pem, cert: " + tlsDir + "/client.pem, key: {file: " + tlsDir + "/client.key}}"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, nil)
			w.produce(numbered(0, 10, 1)...)
			w.options = append(options, "until: end")
			p := w.start()
			if s := p.summary(); s.RowsRead != 10 {
				t.Errorf("%+v", s)
			}
			if strings.Contains(p.Log()+p.End().Out, services.KafkaPassword) {
				t.Error("the password is in the output")
			}
		})
	}
}

// expiredServer speaks TLS with a certificate that is over.
func expiredServer(t *testing.T, dir string) string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(dir+"/expired.pem", dir+"/expired.key")
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "localhost:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go io.Copy(io.Discard, c)
		}
	}()
	return l.Addr().String()
}

// silentServer accepts and never answers.
func silentServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go io.Copy(io.Discard, c)
		}
	}()
	return l.Addr().String()
}

// What is wrong at the start is one error, soon, that names the option.
func TestStartFailures(t *testing.T) {
	c, tlsDir := services.KafkaSingle, certificates(t)
	planted := "planted-wrong-password"
	for name, f := range map[string]struct {
		options []string
		want    []string
	}{
		"refused":       {[]string{"brokers: [\"localhost:1\"]"}, []string{"source.kafka.brokers: localhost:1:", "is a broker listening there?"}},
		"no such host":  {[]string{"brokers: [\"no-such-host.invalid:9092\"]"}, []string{"source.kafka.brokers: no-such-host.invalid:9092", "no such host"}},
		"silent":        {[]string{"brokers: [\"" + silentServer(t) + "\"]"}, []string{"source.kafka.brokers", "does not answer"}},
		"no topic":      {[]string{"topics: [there-is-none]"}, []string{"source.kafka.topics", "there-is-none"}},
		"bad password":  {[]string{"brokers: [" + c.SASL()[0] + "]", "sasl: {username: alice, password: {file: SECRET}}"}, []string{"source.kafka.sasl", "check username, password"}},
		"bad plain":     {[]string{"brokers: [" + c.SASL()[0] + "]", "sasl: {mechanism: PLAIN, username: alice, password: {file: SECRET}}"}, []string{"source.kafka.sasl", "check username, password"}},
		"sasl missing":  {[]string{"brokers: [" + c.SASL()[0] + "]"}, []string{"source.kafka.tls", "wants TLS or SASL"}},
		"tls missing":   {[]string{"brokers: [" + c.TLS()[0] + "]"}, []string{"source.kafka.tls", "wants TLS or SASL"}},
		"tls to plain":  {[]string{"brokers: [" + c.Brokers()[0] + "]", "tls: {ca: " + tlsDir + "/ca.pem}"}, []string{"source.kafka.tls", "TLS"}},
		"unknown ca":    {[]string{"brokers: [" + c.TLS()[0] + "]", "tls: {}"}, []string{"source.kafka.tls.ca", "unknown authority"}},
		"other name":    {[]string{"brokers: [" + c.TLS()[0] + "]", "tls: {ca: " + tlsDir + "/ca.pem, server_name: elsewhere}"}, []string{"source.kafka.tls.server_name", "elsewhere"}},
		"expired":       {[]string{"brokers: [\"" + expiredServer(t, tlsDir) + "\"]", "tls: {ca: " + tlsDir + "/ca.pem}"}, []string{"source.kafka.tls", "expired"}},
		"mine expired":  {[]string{"brokers: [" + c.Mutual()[0] + "]", "tls: {ca: " + tlsDir + "/ca.pem, cert: " + tlsDir + "/expired.pem, key: {file: " + tlsDir + "/expired.key}}"}, []string{"source.kafka.tls.cert", "has expired"}},
		"no cert":       {[]string{"brokers: [" + c.Mutual()[0] + "]", "tls: {ca: " + tlsDir + "/ca.pem}"}, []string{"source.kafka.tls", "certificate"}},
		"secret absent": {[]string{"brokers: [" + c.SASL()[0] + "]", "sasl: {username: alice, password: {env: KAFKA_TEST_NOT_SET}}"}, []string{"source.kafka.sasl.password", "KAFKA_TEST_NOT_SET is not set"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, nil)
			timeout := "20s"
			if name == "refused" || name == "no such host" || name == "silent" {
				timeout = "3s" // these are waited for
			}
			w.options = append([]string{"start_timeout: " + timeout}, f.options...)
			secret := w.secretFile(planted)
			for i := range w.options {
				w.options[i] = strings.ReplaceAll(w.options[i], "SECRET", secret)
			}
			began := time.Now()
			p := w.start()
			code := p.wait()
			if took := time.Since(began); took > time.Minute {
				t.Errorf("it took %s", took)
			}
			if code != 2 {
				t.Errorf("exit code %d", code)
			}
			for _, want := range f.want {
				if !strings.Contains(p.Log(), want) {
					t.Errorf("the error does not say %q:\n%s", want, p.Log())
				}
			}
			if strings.Contains(p.Log(), planted) {
				t.Error("the password is in the output")
			}
			if n := strings.Count(strings.TrimSpace(p.Log()), "\n") + 1; n > 2 {
				t.Errorf("%d lines for one error:\n%s", n, p.Log())
			}
		})
	}
}
