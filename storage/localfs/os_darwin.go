package localfs

import "golang.org/x/sys/unix"

func renameNoReplace(from, to string) error {
	return unix.RenamexNp(from, to, unix.RENAME_EXCL)
}

func renameExchange(a, b string) error {
	return unix.RenamexNp(a, b, unix.RENAME_SWAP)
}

func networkKind(st *unix.Statfs_t) string {
	switch unix.ByteSliceToString(st.Fstypename[:]) {
	case "nfs":
		return "nfs"
	case "smbfs":
		return "smb"
	case "cifs":
		return "cifs"
	}
	return ""
}

func blockSize(st *unix.Statfs_t) uint64 { return uint64(st.Bsize) }
