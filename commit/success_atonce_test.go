package commit

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/faultfs"
	"github.com/hivesink/hivesink/storage/memfs"
)

// TestSuccessFilesAtOnce: many at once mark what one by one marks, durably; one
// that halts keeps the rest from being tried, and all that was marked counts.
func TestSuccessFilesAtOnce(t *testing.T) {
	for _, breakAt := range []int{0, 20} {
		synctest.Test(t, func(t *testing.T) { successFilesAtOnce(t, breakAt) })
	}
}

func successFilesAtOnce(t *testing.T, breakAt int) {
	const n = 50
	mem := memfs.New()
	dirs := make([]Announcement, n)
	for _, dir := range []string{"/t/.hivesink", "/t/.hivesink/e"} {
		if err := storage.MkdirAllSync(mem, "/", dir); err != nil {
			t.Fatal(err)
		}
	}
	for i := range dirs {
		dirs[i].Partition = fmt.Sprintf("p=%d", i)
		if err := storage.MkdirAllSync(mem, "/t", "/t/"+dirs[i].Partition); err != nil {
			t.Fatal(err)
		}
	}
	fs := faultfs.New(mem)
	if breakAt > 0 {
		fs.Inject(faultfs.Rule{Kind: storage.OpReplace, Nth: breakAt, Err: errors.New("broken")}).MustFire(t)
		// Those that are under way go on when it is known that one broke: the
		// test's clock moves when all others wait.
		fs.Inject(faultfs.Rule{Kind: storage.OpReplace, Nth: breakAt + 1, Times: faultfs.Always, Do: func(faultfs.Op) { time.Sleep(time.Second) }})
	}
	p := NewSuccessFile(fs, func(string) string { return "/t" }, func() string { return "/t/.hivesink/e" }, "_SUCCESS", 8)
	err := p.Announce(context.Background(), dirs)
	var some interface{ FailedAt(int) error }
	if breakAt == 0 && err != nil || breakAt > 0 && !errors.As(err, &some) {
		t.Fatal(err)
	}
	image := mem.Crash(memfs.SyncedOnly, 0)
	marked, broken := 0, 0
	for i := range dirs {
		there, lerr := storage.Exists(image, "/t/"+dirs[i].Partition+"/_SUCCESS")
		if lerr != nil {
			t.Fatal(lerr)
		}
		var failed error
		if some != nil {
			failed = some.FailedAt(i)
		}
		if failed == nil && !there {
			t.Errorf("%s is said to be marked and is not", dirs[i].Partition)
		}
		if failed != nil && !errors.Is(failed, errNotTried) {
			broken++
			if fault.ClassOf(failed) == fault.Retry {
				t.Errorf("class of %v", failed)
			}
		}
		if failed == nil {
			marked++
		}
	}
	if breakAt == 0 && marked != n || breakAt > 0 && (broken != 1 || marked < breakAt-1 || marked > n-10) {
		t.Errorf("break at %d: %d marked, %d broken", breakAt, marked, broken)
	}
	if left, lerr := mem.List("/t/.hivesink/e"); lerr != nil || len(left) > 1 {
		t.Errorf("left in staging: %v %v", left, lerr)
	}
}
