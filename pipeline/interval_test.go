package pipeline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hivesink/hivesink/storage/memfs"
)

// TestShortestInterval: a checkpoint that is always due already, as of an interval
// in nanoseconds that was meant in seconds, keeps nothing from its end.
func TestShortestInterval(t *testing.T) {
	s := &sim{yaml: strings.Replace(fmt.Sprintf(besideYAML, t.TempDir()), "interval: 1h", "interval: 1ns", 1)}
	policy := newService()
	policy.works()
	p, err := Open(t.Context(), Options{Config: s.config(t), Version: "test", FS: memfs.New(), NoLock: true, Random: s.random, catalog: policy})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { // joined through ended
		err := p.Stop(t.Context())
		if rerr := p.Release(); err == nil {
			err = rerr
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
}
