package localfs

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
	"golang.org/x/sys/unix"
)

func TestNetworkKinds(t *testing.T) {
	for magic, want := range map[uint32]string{
		0x6969: "nfs", 0x517b: "smb", 0xfe534d42: "smb", 0xff534d42: "cifs",
		0xef53: "", 0x58465342: "", 0x01021994: "", 0x794c7630: "", 0x01021997: "",
	} {
		if got := networkKind(&unix.Statfs_t{Type: int64(magic)}); got != want {
			t.Errorf("file system %#x is %q, want %q", magic, got, want)
		}
	}
}

// /dev/full is a device of the kernel that is always full.
func TestDiskFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := &file{f: full, name: "/table/part"}
	_, err = f.Write([]byte("x"))
	if !errors.Is(err, storage.ErrNoSpace) || !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("write: %v, want ErrNoSpace and ENOSPC", err)
	}
	if c := fault.ClassOf(storage.Classify(err)); c != fault.Retry {
		t.Errorf("class is %s, want retry", c)
	}
	if !strings.Contains(err.Error(), "write /table/part: ") {
		t.Errorf("error is %q", err)
	}
	// S5: nothing more can be had from it.
	if _, err := f.Write([]byte("x")); !errors.Is(err, storage.ErrCondemned) {
		t.Errorf("second write: %v", err)
	}
	if err := f.Sync(); !errors.Is(err, storage.ErrCondemned) {
		t.Errorf("sync: %v", err)
	}
	if err := f.Close(); !errors.Is(err, storage.ErrCondemned) {
		t.Errorf("close: %v", err)
	}
	if err := full.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the descriptor is still open: %v", err)
	}
}

// TestSyncDirUnsupported: some file systems have no sync of a directory.
func TestSyncDirUnsupported(t *testing.T) {
	err := New().SyncDir("/proc")
	if !errors.Is(err, errors.ErrUnsupported) || !errors.Is(err, unix.EINVAL) || !strings.Contains(err.Error(), "sync-dir /proc") {
		t.Fatalf("got %v", err)
	}
}
