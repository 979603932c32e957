//go:build integration

package kafkatest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
)

// A password that is changed while a run goes on, on the brokers first and later
// in its file, does not end the run: it goes on when both agree again.
func TestRenewedPassword(t *testing.T) {
	w := newWorld(t, 1, nil)
	file := filepath.Join(w.dir, "password")
	user := "u" + unique
	onBroker := func(password string) {
		t.Helper()
		res, err := w.admin.AlterUserSCRAMs(w.ctx(), nil, []kadm.UpsertSCRAM{{User: user, Mechanism: kadm.ScramSha512, Iterations: 4096, Password: password}})
		if err == nil {
			err = res.Error()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	inFile := func(password string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	onBroker("first-password")
	inFile("first-password")
	w.options = []string{"brokers: [" + strings.Join(w.cluster.SASL(), ",") + "]", "sasl: {mechanism: SCRAM-SHA-512, username: " + user + ", password: {file: " + file + "}}"}
	w.produce(numbered(0, 10, 1)...)
	p := w.start()
	eventually(t, "the first rows", func() error { return w.committed(10) })
	onBroker("second-password")
	h := home(t)
	broker := w.cluster.Daemon(1)
	if err := h.Kill(broker); err != nil { // connections that are open are not asked again
		t.Fatal(err)
	}
	if err := h.Again(broker); err != nil {
		t.Fatal(err)
	}
	p.await("SASL_AUTHENTICATION_FAILED")
	w.reconnect()
	w.produce(numbered(10, 10, 1)...)
	inFile("second-password")
	eventually(t, "the rows behind the change", func() error { return w.committed(20) })
	if log := p.Log(); strings.Contains(log, "first-password") || strings.Contains(log, "second-password") {
		t.Error("a password is in the log")
	}
	p.stop()
	w.wantIDs(0, 19)
	w.fsck()
}
