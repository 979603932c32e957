package services

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Home is the directory that holds everything.
type Home struct{ Dir string }

// DefaultHome is HIVESINK_SERVICES, or hivesink/services in the user's cache.
func DefaultHome() (*Home, error) {
	dir := os.Getenv("HIVESINK_SERVICES")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("no place for the services: %w; set HIVESINK_SERVICES to a directory", err)
		}
		dir = filepath.Join(cache, "hivesink", "services")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	h := &Home{Dir: dir}
	for _, sub := range []string{"run", "log", "data", "fetched"} {
		if err := os.MkdirAll(h.Path(sub), 0o755); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// Path is a path below the home.
func (h *Home) Path(elem ...string) string {
	return filepath.Join(append([]string{h.Dir}, elem...)...)
}

// Data is the directory of a service's data, made when missing. It goes with
// `down`.
func (h *Home) Data(service string) (string, error) {
	dir := h.Path("data", service)
	return dir, os.MkdirAll(dir, 0o755)
}

// once makes a result that is kept: make is called with a temporary name,
// which takes its place when done. Others that want it wait.
func (h *Home) once(name string, make func(tmp string) error) (string, error) {
	path := h.Path("fetched", name)
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	tmp := path + ".tmp"
	if err := os.RemoveAll(tmp); err != nil {
		return "", err
	}
	if err := make(tmp); err != nil {
		return "", err
	}
	return path, os.Rename(tmp, path)
}

// ClassPath resolves the dependencies of a Maven project file once.
func (h *Home) ClassPath(pom string) (string, error) {
	text, err := os.ReadFile(pom)
	if err != nil {
		return "", err
	}
	name := filepath.Base(filepath.Dir(pom))
	path, err := h.once(fmt.Sprintf("%s-%.8x.classpath", name, sha256.Sum256(text)), func(tmp string) error {
		return Run("mvn", "-q", "-B", "-C", "-f", pom, "-Dmdep.outputFile="+tmp, "org.apache.maven.plugins:maven-dependency-plugin:3.6.0:build-classpath")
	})
	if err != nil {
		return "", fmt.Errorf("the class path of %s: %w (Debian: apt-get install maven openjdk-17-jre-headless)", pom, err)
	}
	out, err := os.ReadFile(path)
	return strings.TrimSpace(string(out)), err
}

// Artifact fetches one Maven artifact, group:artifact:version[:type[:classifier]].
func (h *Home) Artifact(coordinate string) (string, error) {
	dir, err := h.once(strings.ReplaceAll(coordinate, ":", "_"), func(tmp string) error {
		return Run("mvn", "-q", "-B", "-C", "org.apache.maven.plugins:maven-dependency-plugin:3.6.0:copy", "-Dartifact="+coordinate, "-DoutputDirectory="+tmp)
	})
	if err != nil {
		return "", fmt.Errorf("%s: %w", coordinate, err)
	}
	return onlyEntry(dir)
}

// Unpacked is the directory inside a .tar.gz artifact, or where it was unpacked
// when it holds more than one.
func (h *Home) Unpacked(coordinate string) (string, error) {
	archive, err := h.Artifact(coordinate)
	if err != nil {
		return "", err
	}
	dir, err := h.once(strings.ReplaceAll(coordinate, ":", "_")+".d", func(tmp string) error {
		if err := os.MkdirAll(tmp, 0o755); err != nil {
			return err
		}
		return Run("tar", "-xzf", archive, "-C", tmp)
	})
	if err != nil {
		return "", err
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 1 {
		return dir, nil
	}
	return onlyEntry(dir)
}

// GoInstall builds a command of a Go module at a version, without cgo.
func (h *Home) GoInstall(command, version string) (string, error) {
	dir, err := h.once(strings.NewReplacer("/", "_", ":", "_").Replace(command+"@"+version), func(tmp string) error {
		cmd := exec.Command("go", "install", command+"@"+version)
		cmd.Env = append(os.Environ(), "GOBIN="+tmp, "CGO_ENABLED=0", "GOFLAGS=")
		return run(cmd)
	})
	if err != nil {
		return "", err
	}
	return onlyEntry(dir)
}

func onlyEntry(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(entries) != 1 {
		return "", fmt.Errorf("%s holds %d entries, not one: remove it to fetch it again", dir, len(entries))
	}
	return filepath.Join(dir, entries[0].Name()), nil
}

// Run runs a command to its end; its output is in the error when it fails.
func Run(argv ...string) error { return run(exec.Command(argv[0], argv[1:]...)) }

// RunIn is Run in a directory, with more in its environment.
func RunIn(dir string, env []string, argv ...string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	return run(cmd)
}

func run(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, tail(out, 4000))
	}
	return nil
}

func tail(b []byte, n int) []byte {
	if len(b) > n {
		return b[len(b)-n:]
	}
	return b
}
