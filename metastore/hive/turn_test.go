package hive_test

import (
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/metastore/hive"
	"github.com/hivesink/hivesink/metastore/hivetest"
)

// Of two addresses the first takes connections and does not answer: it hangs, or
// nothing is behind it. The second one is asked, in the same call.
func TestNextAddress(t *testing.T) {
	for name, serve := range map[string]func(net.Conn){
		"hangs":  func(net.Conn) {},
		"closes": func(c net.Conn) { c.Close() },
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer l.Close()
		var taken atomic.Int64
		go func() { // ends with the listener
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				taken.Add(1)
				serve(c)
			}
		}()
		s := hivetest.New(t)
		o := options(t, s)
		o.Addresses = []string{l.Addr().String(), s.Address()}
		var c *hive.Catalog
		for o.Timeout = 300 * time.Millisecond; ; o.Timeout *= 4 { // a busy machine may take longer for a call
			taken.Store(0)
			c = open(t, o)
			if err = c.Check(t.Context()); err == nil || o.Timeout > time.Minute {
				break
			}
		}
		if err != nil || taken.Load() != 1 {
			t.Errorf("%s: %d connections to it: %v", name, taken.Load(), err)
		}
		s.Stop()
		err = c.Check(t.Context())
		if fault.ClassOf(err) != fault.Retry || !hive.Passing(err) || !strings.Contains(err.Error(), s.Address()) || !strings.Contains(err.Error(), l.Addr().String()) {
			t.Errorf("%s: with none that answers: class %s: %v", name, fault.ClassOf(err), err)
		}
	}
}

// An exception that the server does not declare is an answer as well: the
// partition that it is about is found by halving.
func TestUndeclared(t *testing.T) {
	s := hivetest.New(t)
	o := options(t, s)
	c := open(t, o)
	var refused atomic.Int64
	s.Before(func(call string) error {
		// days of four: all, the first two, the first
		if strings.HasPrefix(call, "add_partitions") && refused.Add(1) <= 3 {
			return errors.New("java.lang.IllegalStateException")
		}
		return nil
	})
	err := c.Announce(t.Context(), days(4))
	var some interface{ FailedAt(int) error }
	if !errors.As(err, &some) || some.FailedAt(0) == nil || some.FailedAt(1) != nil || fault.ClassOf(some.FailedAt(0)) != fault.Retry ||
		!strings.Contains(err.Error(), "IllegalStateException") {
		t.Fatalf("refused %d: %v", refused.Load(), err)
	}
	if n := len(s.Partitions("web." + o.Tables[ledger.MainTable].Name)); n != 3 {
		t.Errorf("%d partitions", n)
	}
}
