package localfs

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Identity tells a file from all others of its file system, whatever its name: the
// number of its inode and when that was made, so that a number that is used again
// is no other file's. "" where the file system does not say when.
func Identity(f *os.File) string {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Btim.Sec == 0 {
		return ""
	}
	return fmt.Sprintf("%d:%d.%09d", st.Ino, st.Btim.Sec, st.Btim.Nsec)
}
