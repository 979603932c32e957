package kafka

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hivesink/hivesink/config"
)

// A password that is renewed while a run goes on is that of the next connection;
// while its file is being replaced it is the one before.
func TestRenewedPassword(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first\n")
	m, err := mechanism(&config.SASL{Mechanism: config.MechanismPlain, Username: "u", Password: config.Secret{File: file}})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	got := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, got, _ = req.BasicAuth()
		w.Write([]byte(theSchema)) //nolint:errcheck // the client says so
	}))
	t.Cleanup(s.Close)
	r, err := newRegistry(&config.SchemaRegistry{URL: s.URL, Username: "u", Password: config.Secret{File: file}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"first", "second", "second"} {
		switch i {
		case 1:
			write("second\n")
		case 2:
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
		_, first, err := m.Authenticate(t.Context(), "broker:9092")
		if err != nil || !strings.HasSuffix(string(first), "\x00"+want) {
			t.Errorf("%d: the broker is shown another password: %v", i, err)
		}
		if _, err := r.ask(t.Context(), s.URL); err != nil || got != want {
			t.Errorf("%d: the registry is shown %q, want %q: %v", i, got, want, err)
		}
	}
}
