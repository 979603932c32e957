package services

import (
	"net"
	"os"
	"strings"
	"testing"
)

// sleeper registers nothing: its daemon is a shell.
func TestDaemon(t *testing.T) {
	t.Setenv("HIVESINK_SERVICES", t.TempDir())
	h, err := DefaultHome()
	if err != nil {
		t.Fatal(err)
	}
	d := Daemon{Name: "nap-1", Argv: []string{"sh", "-c", "echo up; exec sleep 1000"}}
	if err := h.Start(d); err != nil {
		t.Fatal(err)
	}
	first, _ := h.noted("nap-1")
	if err := h.Start(d); err != nil {
		t.Fatal(err)
	}
	if again, _ := h.noted("nap-1"); again.PID != first.PID {
		t.Fatal("V2: a second start made a second process")
	}
	if err := h.Pause("nap-1"); err != nil {
		t.Fatal(err)
	}
	if err := h.Stop("nap-1"); err != nil {
		t.Fatal(err)
	}
	if h.Running("nap-1") {
		t.Fatal("it runs after Stop")
	}
	if err := h.Again("nap-1"); err != nil {
		t.Fatal(err)
	}
	s := &Service{Name: "nap", Prefix: "nap"}
	if err := h.down(s); err != nil {
		t.Fatal(err)
	}
	if names, _ := h.Daemons(); len(names) != 0 || h.Running("nap-1") {
		t.Fatalf("after down: %v", names)
	}
}

// TestOnlyItsOwn: V1, a pid that now belongs to another process is left alone.
func TestOnlyItsOwn(t *testing.T) {
	t.Setenv("HIVESINK_SERVICES", t.TempDir())
	h, err := DefaultHome()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(Daemon{Name: "nap", Argv: []string{"sleep", "1000"}}); err != nil {
		t.Fatal(err)
	}
	defer h.Kill("nap") //nolint:errcheck
	note, _ := os.ReadFile(h.note("nap"))
	d, _ := h.noted("nap")
	other := strings.Replace(string(note), d.Since, "1", 1)
	if err := os.WriteFile(h.note("nap"), []byte(other), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := h.Kill("nap"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.note("nap"), note, 0o644); err != nil {
		t.Fatal(err)
	}
	if !h.Running("nap") {
		t.Fatal("V1: killed a process with another start time")
	}
}

// TestDeathIsSeen: V3.
func TestDeathIsSeen(t *testing.T) {
	t.Setenv("HIVESINK_SERVICES", t.TempDir())
	h, err := DefaultHome()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	err = h.Start(Daemon{Name: "brief", Argv: []string{"sh", "-c", "echo no room; exit 3"}, Ports: []int{port}})
	if err == nil || !strings.Contains(err.Error(), "no room") {
		t.Fatalf("got %v", err)
	}
}

func TestNeedsComeFirst(t *testing.T) {
	saved := all
	defer func() { all = saved }()
	all = nil
	register(Service{Name: "b", Needs: []string{"a"}, Default: true})
	register(Service{Name: "a", Needs: []string{"c"}})
	register(Service{Name: "c"})
	got, err := chosen(nil)
	if err != nil || len(got) != 3 || got[0].Name+got[1].Name+got[2].Name != "cab" {
		t.Fatalf("%v %v", got, err)
	}
	if _, err := chosen([]string{"d"}); err == nil || !strings.Contains(err.Error(), "there are: a, b, c") {
		t.Fatal(err)
	}
}

// TestLeaks: a secret is found wherever it stands, and not repeated.
func TestLeaks(t *testing.T) {
	for _, s := range Secrets {
		err := Leaks("the log", "level=INFO key="+s+" more")
		if err == nil || strings.Contains(err.Error(), s) {
			t.Errorf("%v", err)
		}
	}
	if err := Leaks("the log", "level=INFO key=***"); err != nil {
		t.Error(err)
	}
}
