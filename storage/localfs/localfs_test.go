//go:build linux || darwin

package localfs

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/storagetest"
	"golang.org/x/sys/unix"
)

// tempDir is t.TempDir without links in it.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) (storage.FS, string) { return New(), tempDir(t) })
}

// Without the kernel's rename without replacement all rules hold just the same.
func TestConformanceBySteps(t *testing.T) {
	for _, missing := range []error{unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP} {
		t.Run(unix.ErrnoName(missing.(unix.Errno)), func(t *testing.T) {
			calls := 0
			storagetest.Run(t, func(t *testing.T) (storage.FS, string) {
				calls++
				return localFS{noReplace: func(_, _ string) error { return missing }}, tempDir(t)
			})
			if calls == 0 {
				t.Error("no rule ran")
			}
		})
	}
}

// The machine the tests run on has the real thing, or the first suite would
// have tested the steps only.
func TestRenameNoReplaceIsThere(t *testing.T) {
	dir := tempDir(t)
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := renameNoReplace(filepath.Join(dir, "a"), filepath.Join(dir, "b"))
	if err != unix.EEXIST {
		t.Errorf("rename without replacement: %v, want EEXIST", err)
	}
}

func TestQuota(t *testing.T) {
	err := wrap(storage.OpWrite, "/f", &os.PathError{Op: "write", Path: "/f", Err: unix.EDQUOT})
	if !errors.Is(err, storage.ErrNoSpace) || !errors.Is(err, unix.EDQUOT) {
		t.Errorf("%v is not both ErrNoSpace and EDQUOT", err)
	}
	if got, want := err.Error(), "write /f: "+unix.EDQUOT.Error(); got != want {
		t.Errorf("error is %q, want %q", got, want)
	}
	if err := wrap(storage.OpWrite, "/f", unix.EIO); errors.Is(err, storage.ErrNoSpace) {
		t.Errorf("%v passes for ErrNoSpace", err)
	}
}

// New files are what any other program of the user makes.
func TestUmask(t *testing.T) {
	dir := tempDir(t)
	fsys := New()
	f, err := fsys.Create(filepath.Join(dir, "ours"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := fsys.Mkdir(filepath.Join(dir, "our-dir")); err != nil {
		t.Fatal(err)
	}
	theirs, err := os.Create(filepath.Join(dir, "theirs"))
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	if err := os.Mkdir(filepath.Join(dir, "their-dir"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, pair := range [][2]string{{"ours", "theirs"}, {"our-dir", "their-dir"}} {
		if a, b := mode(t, dir, pair[0]), mode(t, dir, pair[1]); a != b {
			t.Errorf("%s has mode %v, %s %v", pair[0], a, pair[1], b)
		}
	}
}

func mode(t *testing.T, dir, name string) os.FileMode {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

// S10.
func TestRemoveAllStopsAtLinks(t *testing.T) {
	dir := tempDir(t)
	fsys := New()
	precious := filepath.Join(dir, "precious")
	doomed := filepath.Join(dir, "doomed")
	for _, d := range []string{precious, doomed} {
		if err := fsys.Mkdir(d); err != nil {
			t.Fatal(err)
		}
	}
	if err := storage.WriteFile(fsys, precious+"/f", []byte("text")); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{doomed + "/link", dir + "/link"} {
		if err := os.Symlink(precious, link); err != nil {
			t.Fatal(err)
		}
		if err := storage.RemoveAll(fsys, filepath.Dir(link)+"/link"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(precious, link); err != nil {
			t.Fatalf("the link was not removed: %v", err)
		}
	}
	if err := storage.RemoveAll(fsys, doomed); err != nil {
		t.Fatal(err)
	}
	if ok, err := storage.Exists(fsys, doomed); ok || err != nil {
		t.Errorf("doomed exists: %v, %v", ok, err)
	}
	if _, err := fsys.ReadFile(precious + "/f"); err != nil {
		t.Error(err)
	}
}

const lockEnv = "LOCALFS_TEST_LOCK"

// TestMain is also the other process of TestLockOfOtherProcess: it takes a
// lock, says so, and holds it until it is killed or its input ends.
func TestMain(m *testing.M) {
	name := os.Getenv(lockEnv)
	if name == "" {
		os.Exit(m.Run())
	}
	if _, err := New().Lock(name); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("locked")
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// S7: another process is refused and told who holds it; kill -9 releases.
func TestLockOfOtherProcess(t *testing.T) {
	name := filepath.Join(tempDir(t), "lock")
	fsys := New()
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), lockEnv+"="+name)
	stdin, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "locked\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	_, err = fsys.Lock(name)
	if !errors.Is(err, storage.ErrLocked) {
		t.Fatalf("lock: %v, want ErrLocked", err)
	}
	if want := fmt.Sprintf("(process %d)", other.Process.Pid); !strings.Contains(err.Error(), want) {
		t.Errorf("error is %q, want it to say %s", err, want)
	}
	if c := fault.ClassOf(storage.Classify(err)); c != fault.Fenced {
		t.Errorf("class is %s, want fenced", c)
	}
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := other.Wait(); err == nil {
		t.Fatal("the other process ended well, though killed")
	}
	l, err := fsys.Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	b, err := fsys.ReadFile(name)
	if err != nil || string(b) != fmt.Sprintln(os.Getpid()) {
		t.Errorf("lock file holds %q, %v", b, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestFreeAndNetworkMount(t *testing.T) {
	dir := tempDir(t)
	for _, path := range []string{dir, dir + "/not/yet/there"} {
		if free, err := Free(path); err != nil || free == 0 {
			t.Errorf("free of %s: %d, %v", path, free, err)
		}
		if kind, network := NetworkMount(path); network || kind != "" {
			t.Errorf("%s passes for a network mount (%s)", path, kind)
		}
	}
	if err := os.WriteFile(dir+"/f", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Free(dir + "/f/below"); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("free below a file: %v", err)
	}
}
