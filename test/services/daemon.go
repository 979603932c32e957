package services

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Daemon is a process that outlives the one that starts it. What Start was
// given is kept, so that the daemon can be started again by its name.
type Daemon struct {
	Name string   `json:"name"`
	Argv []string `json:"argv"`
	Env  []string `json:"env,omitempty"` // beside the environment of `up`
	Dir  string   `json:"dir,omitempty"`
	// Ports of loopback that accept connections when the daemon is ready.
	Ports []int `json:"ports"`

	PID   int    `json:"pid"`
	Since string `json:"since"` // the process's start time, in clock ticks since boot
}

const patience = 5 * time.Minute

// Start starts a daemon unless it runs, and waits until its ports accept (V2).
func (h *Home) Start(d Daemon) error {
	if old, err := h.running(d.Name); err != nil {
		return err
	} else if old != nil {
		return h.ready(old)
	}
	log, err := os.OpenFile(h.log(d.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(d.Argv[0], d.Argv[1:]...)
	cmd.Env, cmd.Dir = append(os.Environ(), d.Env...), d.Dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", d.Name, err)
	}
	d.PID = cmd.Process.Pid
	// Reaped while this process lives, so that a daemon that dies is seen to.
	go cmd.Wait() //nolint:errcheck // how it ended is in its log
	if d.Since, err = since(d.PID); err != nil {
		return h.died(d.Name)
	}
	note, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(h.note(d.Name), note, 0o644); err != nil {
		return err
	}
	return h.ready(&d)
}

// Again starts a daemon that was killed or stopped, as it was started first.
func (h *Home) Again(name string) error {
	d, err := h.noted(name)
	if err != nil {
		return err
	}
	return h.Start(*d)
}

// ready waits until a daemon's ports accept (V3).
func (h *Home) ready(d *Daemon) error {
	for _, port := range d.Ports {
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		err := Until(patience, func() error {
			if !d.alive() {
				return Fatal(h.died(d.Name))
			}
			c, err := net.DialTimeout("tcp", addr, time.Second)
			if err == nil {
				c.Close()
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("%s is not ready: %w; its log: %s", d.Name, err, h.log(d.Name))
		}
	}
	return nil
}

func (h *Home) died(name string) error {
	out, _ := os.ReadFile(h.log(name))
	return fmt.Errorf("%s died while starting; the end of %s:\n%s", name, h.log(name), tail(out, 3000))
}

// Stop ends a daemon: TERM, and KILL when that takes more than 20 s.
func (h *Home) Stop(name string) error {
	if err := h.Signal(name, syscall.SIGTERM); err != nil {
		return err
	}
	if err := h.gone(name, 20*time.Second); err == nil {
		return nil
	}
	return h.Kill(name)
}

// Kill ends a daemon at once, as kill -9 does, and waits until it is gone.
func (h *Home) Kill(name string) error {
	if err := h.Signal(name, syscall.SIGKILL); err != nil {
		return err
	}
	return h.gone(name, time.Minute)
}

// Pause stops a daemon's clock; Resume lets it go on.
func (h *Home) Pause(name string) error  { return h.Signal(name, syscall.SIGSTOP) }
func (h *Home) Resume(name string) error { return h.Signal(name, syscall.SIGCONT) }

// Signal sends a signal to a daemon; one that does not run is no error (V1).
func (h *Home) Signal(name string, s syscall.Signal) error {
	d, err := h.running(name)
	if err != nil || d == nil {
		return err
	}
	if s == syscall.SIGTERM {
		// A paused process would sleep through it.
		syscall.Kill(d.PID, syscall.SIGCONT) //nolint:errcheck
	}
	if err := syscall.Kill(d.PID, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (h *Home) gone(name string, within time.Duration) error {
	return Until(within, func() error {
		if d, err := h.running(name); err != nil || d != nil {
			return fmt.Errorf("%s still runs", name)
		}
		return nil
	})
}

// Daemons are the names of all that were started and not taken down.
func (h *Home) Daemons() ([]string, error) {
	notes, err := filepath.Glob(h.Path("run", "*.json"))
	for i, note := range notes {
		notes[i] = strings.TrimSuffix(filepath.Base(note), ".json")
	}
	return notes, err
}

// Running says whether a daemon runs.
func (h *Home) Running(name string) bool {
	d, err := h.running(name)
	return err == nil && d != nil
}

func (h *Home) note(name string) string { return h.Path("run", name+".json") }
func (h *Home) log(name string) string  { return h.Path("log", name+".log") }

func (h *Home) noted(name string) (*Daemon, error) {
	text, err := os.ReadFile(h.note(name))
	if err != nil {
		return nil, fmt.Errorf("daemon %s was never started: %w", name, err)
	}
	d := new(Daemon)
	return d, json.Unmarshal(text, d)
}

// running is the daemon when it runs, else nil.
func (h *Home) running(name string) (*Daemon, error) {
	d, err := h.noted(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || !d.alive() {
		return nil, err
	}
	return d, nil
}

// alive: the process is there, is the one that was started, and is no zombie.
func (d *Daemon) alive() bool {
	s, err := since(d.PID)
	return err == nil && s == d.Since
}

// since is the start time of a process that has not ended.
func since(pid int) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The second field is the command's name in parentheses, which may hold any
	// character; the third is the state, the 22nd the start time.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if fields[0] == "Z" || fields[0] == "X" {
		// The first thread ends before the others, which still hold the ports:
		// whoever is started then would seem to be ready at once.
		if tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)); len(tasks) <= 1 {
			return "", fs.ErrNotExist
		}
	}
	return fields[19], nil
}

// Until calls f every 100 ms until it succeeds, fails for good (Fatal), or the
// time is over.
func Until(within time.Duration, f func() error) error {
	for end := time.Now().Add(within); ; time.Sleep(100 * time.Millisecond) {
		err := f()
		if err == nil {
			return nil
		}
		var fatal fatalError
		if errors.As(err, &fatal) {
			return fatal.error
		}
		if time.Now().After(end) {
			return fmt.Errorf("after %s: %w", within, err)
		}
	}
}

type fatalError struct{ error }

// Fatal marks an error that waiting does not mend.
func Fatal(err error) error { return fatalError{err} }
