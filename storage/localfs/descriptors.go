package localfs

import "golang.org/x/sys/unix"

// Descriptors is how many files the process may have open at the same time.
func Descriptors() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > 1<<20 {
		return 1 << 20 // more than anybody asks for
	}
	return int(limit.Cur)
}

// Each is how many files each of so many workers may keep open, at most most:
// together they leave three of four descriptors to others.
func Each(workers, most int) int {
	return max(4, min(most, Descriptors()/4/max(1, workers)))
}
