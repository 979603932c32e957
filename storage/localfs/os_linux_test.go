package localfs

import (
	"testing"

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
