package compactor

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestThrottle: n bytes at a limit take their time, all callers together; an
// end of ctx ends the wait.
func TestThrottle(t *testing.T) {
	th := NewThrottle(1 << 20)
	start := time.Now()
	done := make(chan error, 4)
	for range 4 {
		go func() { // joined through done
			var err error
			for range 4 {
				err = errors.Join(err, th.take(context.Background(), 32<<10))
			}
			done <- err
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	// 512 KB at 1 MB/s, less the last read's share and the burst.
	if took := time.Since(start); took < 300*time.Millisecond {
		t.Fatalf("512 KB at 1 MB/s took %s", took)
	}
	th.free = time.Now().Add(time.Hour)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := th.take(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled: %v", err)
	}
	if NewThrottle(0) != nil {
		t.Fatal("0 is no limit")
	}
}
