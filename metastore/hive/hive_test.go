package hive_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	hms "github.com/beltran/gohive/hive_metastore"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/metastore/hive"
	"github.com/hivesink/hivesink/metastore/hivetest"
	"github.com/hivesink/hivesink/metastore/metastoretest"
)

func fields(t *testing.T, text ...string) []hivetype.Field {
	t.Helper()
	var out []hivetype.Field
	for _, c := range text {
		f, err := hivetype.ParseColumn(c)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

func options(t *testing.T, s *hivetest.Server) hive.Options {
	return hive.Options{Addresses: []string{s.Address()}, Timeout: 3 * time.Minute, ConnectTimeout: time.Minute, CreateTable: true, Database: "web",
		Tables: map[string]hive.Table{ledger.MainTable: {Name: "t", Location: "file:/t", Columns: fields(t, "id bigint"), Keys: fields(t, "dt string")}}}
}

func open(t *testing.T, o hive.Options) *hive.Catalog {
	t.Helper()
	c := hive.New(o)
	t.Cleanup(func() { c.Close() })
	return c
}

func days(n int) []ledger.Announcement {
	as := make([]ledger.Announcement, n)
	for i := range as {
		v := []string{fmt.Sprintf("d%04d", i)}
		as[i] = ledger.Announcement{Partition: layout.PartitionPath([]string{"dt"}, v), Values: v, Number: 1, Cut: 1, Files: 1, Rows: 10, Bytes: 100}
	}
	return as
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The server of the tests is a metastore as far as the suite goes, without
// frames and within those of SASL PLAIN.
func TestConformance(t *testing.T) {
	for name, user := range map[string]string{"raw": "", "plain": "announcer"} {
		t.Run(name, func(t *testing.T) {
			metastoretest.Run(t, func(t *testing.T, partitioned bool) metastoretest.Fixture {
				s := hivetest.New(t)
				s.AskFor(user, "secret")
				o := options(t, s)
				if user != "" {
					o.Auth = hive.Auth{Mechanism: hive.Plain, User: user, Password: func() (string, error) { return "secret", nil }}
				}
				spec := o.Tables[ledger.MainTable]
				spec.Keys = fields(t, "dt string", "country string")
				if !partitioned {
					spec.Keys = nil
				}
				for _, side := range []string{ledger.MainTable, ledger.LateTable, ledger.DeadTable} {
					one := spec
					if side != ledger.MainTable {
						one.Name, one.Location = "t_"+side, "file:/t_"+side
					}
					if side == ledger.DeadTable {
						one.Keys = nil
					}
					o.Tables[side] = one
				}
				var now int64
				o.Now = func() int64 { return now }
				c := open(t, o)
				must(t, c.Check(t.Context()))
				return metastoretest.Fixture{Catalog: c, Database: "web", Name: "t", Location: "file:/t", Clock: func(us int64) { now = us }}
			})
		})
	}
}

// MS-04: 2,500 new partitions, and a server that refuses calls about more than
// 1,000. All are added, and no call lists the table (HM5).
func TestManyPartitions(t *testing.T) {
	for _, batch := range []int{100, 1000, 2000} { // the last is more than the server takes
		s := hivetest.New(t)
		var refused atomic.Bool
		s.Before(func(call string) error {
			err := hivetest.TooMany(call)
			if err != nil {
				refused.Store(true)
			}
			return err
		})
		o := options(t, s)
		o.Batch = batch
		c := open(t, o)
		must(t, c.Announce(t.Context(), days(2500)))
		if n := len(s.Partitions("web.t")); n != 2500 {
			t.Errorf("batches of %d: %d partitions", batch, n)
		}
		calls := s.Calls()
		if slices.Contains(calls, "get_partition_names") || len(calls) > 4*2500/100 {
			t.Errorf("batches of %d: %d calls: %v", batch, len(calls), calls)
		}
		if refused.Load() != (batch > hivetest.MostPartitions) {
			t.Errorf("batches of %d: refused %t", batch, refused.Load())
		}
	}
}

// HM1: a call ends with its time limit, and with its context; HM2: the next one
// has another connection, and gets its own answer.
func TestHangingCall(t *testing.T) {
	s := hivetest.New(t)
	hang, hung := make(chan struct{}), make(chan string, 10)
	var first atomic.Bool
	first.Store(true)
	s.Before(func(call string) error {
		if strings.HasPrefix(call, "add_partitions") && first.CompareAndSwap(true, false) {
			hung <- call
			<-hang
		}
		return nil
	})
	defer close(hang)
	o := options(t, s)
	var err error
	for o.Timeout = 200 * time.Millisecond; len(hung) == 0; o.Timeout *= 4 {
		if err = open(t, o).Announce(t.Context(), days(3)); o.Timeout > time.Minute && len(hung) == 0 {
			t.Fatal("nothing hung")
		} // a busy machine may take longer for the calls before
	}
	if fault.ClassOf(err) != fault.Retry || !strings.Contains(err.Error(), "metastore.timeout") || !hive.Unreachable(err) {
		t.Fatalf("class %s: %v", fault.ClassOf(err), err)
	}
	o.Timeout = time.Minute
	patient := open(t, o)
	must(t, patient.Check(t.Context()))
	first.Store(true)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("told to stop")
	done := make(chan error, 1)
	<-hung
	go func() { done <- patient.Announce(ctx, days(3)) }()
	<-hung
	cancel(gone)
	if err := <-done; !errors.Is(err, gone) {
		t.Fatalf("got %v", err)
	}
	must(t, patient.Announce(t.Context(), days(3)))
	if n := len(s.Partitions("web.t")); n != 3 {
		t.Errorf("%d partitions", n)
	}
}

// MS-03: the server is restarted between two calls, and while one is under way;
// it is away for a while.
func TestRestarts(t *testing.T) {
	s := hivetest.New(t)
	c := open(t, options(t, s))
	must(t, c.Announce(t.Context(), days(1)))
	s.Stop()
	s.Start(t)
	must(t, c.Announce(t.Context(), days(2)))
	var cut atomic.Bool
	s.Before(func(call string) error {
		if strings.HasPrefix(call, "add_partitions") && cut.CompareAndSwap(false, true) {
			s.Cut() // its answer is lost
		}
		return nil
	})
	must(t, c.Announce(t.Context(), days(3)))
	if !cut.Load() {
		t.Fatal("nothing was cut")
	}
	s.Stop()
	err := c.Announce(t.Context(), days(4))
	if fault.ClassOf(err) != fault.Retry || !hive.Unreachable(err) || !strings.Contains(err.Error(), s.Address()) {
		t.Fatalf("class %s: %v", fault.ClassOf(err), err)
	}
	s.Start(t)
	must(t, c.Announce(t.Context(), days(4)))
	if n := len(s.Partitions("web.t")); n != 4 {
		t.Errorf("%d partitions", n)
	}
}

// A partition the server refuses is found by halving; the others are announced.
func TestOneRefused(t *testing.T) {
	s := hivetest.New(t)
	o := options(t, s)
	spec := o.Tables[ledger.MainTable]
	spec.Keys = fields(t, "dt int")
	o.Tables[ledger.MainTable] = spec
	c := open(t, o)
	as := days(5)
	for i := range as {
		as[i].Values = []string{fmt.Sprint(i)}
		as[i].Partition = "dt=" + as[i].Values[0]
	}
	as[2].Values, as[2].Partition = []string{"two"}, "dt=two" // HM7
	err := c.Announce(t.Context(), as)
	var some interface{ FailedAt(int) error }
	if !errors.As(err, &some) || some.FailedAt(2) == nil || fault.ClassOf(some.FailedAt(2)) != fault.Retry {
		t.Fatalf("got %v", err)
	}
	if n := len(s.Partitions("web.t")); n != 4 {
		t.Errorf("%d partitions", n)
	}
}

// Who loses the table between two calls of one batch makes the first only (HM6).
func TestFencedWithinABatch(t *testing.T) {
	s := hivetest.New(t)
	s.Before(func(call string) error {
		if strings.HasPrefix(call, "add_partitions") {
			return &hms.MetaException{Message: "one of them is wrong"} // so that halves are tried
		}
		return nil
	})
	o := options(t, s)
	asked := 0
	c := open(t, o)
	must(t, c.Check(t.Context()))
	o.Owner = func() error {
		if asked++; asked > 1 {
			return fault.New(fault.Fenced, "", "epoch 9 owns it")
		}
		return nil
	}
	c = open(t, o)
	if err := c.Announce(t.Context(), days(8)); fault.ClassOf(err) != fault.Fenced {
		t.Fatalf("class %s: %v", fault.ClassOf(err), err)
	}
	changes := 0
	for _, call := range s.Calls() {
		if strings.HasPrefix(call, "add_partitions") || strings.HasPrefix(call, "alter_partitions") {
			changes++
		}
	}
	if changes != 1 {
		t.Fatalf("%d changes after the table was lost, in %v", changes-1, s.Calls())
	}
}

// What the server says is passed on in words; its class is retry.
func TestServerErrors(t *testing.T) {
	for _, said := range []error{&hms.MetaException{Message: "the disk is full"}, &hms.InvalidObjectException{Message: "the disk is full"}} {
		s := hivetest.New(t)
		s.Before(func(call string) error {
			if strings.HasPrefix(call, "add_partitions") {
				return said
			}
			return nil
		})
		err := open(t, options(t, s)).Announce(t.Context(), days(1))
		if fault.ClassOf(err) != fault.Retry || !strings.Contains(fmt.Sprint(err), "the disk is full") || !strings.Contains(fmt.Sprint(err), s.Address()) || hive.Unreachable(err) {
			t.Errorf("%T: class %s: %v", said, fault.ClassOf(err), err)
		}
	}
}

// What a start may take for an outage, of a metastore that has answered an
// earlier one, and what not.
func TestPassing(t *testing.T) {
	closes, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer closes.Close()
	go func() { // ends with the listener: a proxy without anything behind it
		for {
			c, err := closes.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	s := hivetest.New(t)
	at := func(change func(*hive.Options)) hive.Options {
		o := options(t, s)
		change(&o)
		return o
	}
	plain := hive.Auth{Mechanism: hive.Plain, User: "u", Password: func() (string, error) { return "planted", nil }}
	said := make(map[string]error)
	for name, o := range map[string]hive.Options{
		"closes":      at(func(o *hive.Options) { o.Addresses = []string{closes.Addr().String()} }),
		"closes SASL": at(func(o *hive.Options) { o.Addresses, o.Auth = []string{closes.Addr().String()}, plain }),
		"no table":    at(func(o *hive.Options) { o.CreateTable = false; o.Database = "elsewhere" }),
	} {
		said[name] = open(t, o).Check(t.Context())
	}
	s.Before(func(string) error { return &hms.MetaException{Message: "the database is down"} })
	said["exception"] = open(t, at(func(*hive.Options) {})).Check(t.Context())
	s.Before(func(string) error { return nil })
	s.AskFor("u", "another")
	said["refused"] = open(t, at(func(o *hive.Options) { o.Auth = plain })).Check(t.Context())
	for name, want := range map[string]bool{"closes": true, "closes SASL": true, "exception": true, "no table": false, "refused": false} {
		if err := said[name]; err == nil || hive.Passing(err) != want {
			t.Errorf("%s: passing %v, want %v: %v", name, hive.Passing(err), want, err)
		}
	}
}

// Who is not let in hears it in one error, without the password; the same for a
// server that does not ask, or asks otherwise.
func TestAuthentication(t *testing.T) {
	s := hivetest.New(t)
	s.AskFor("announcer", "secret")
	plain := func(user, password string) hive.Options {
		o := options(t, s)
		o.Auth = hive.Auth{Mechanism: hive.Plain, User: user, Password: func() (string, error) { return password, nil }}
		return o
	}
	must(t, open(t, plain("announcer", "secret")).Check(t.Context()))
	open2 := hivetest.New(t) // asks for nothing
	toOpen := plain("announcer", "secret")
	toOpen.Addresses, toOpen.ConnectTimeout = []string{open2.Address()}, 2*time.Second // it waits for more
	none := plain("", "")
	none.Auth, none.Timeout = hive.Auth{}, 2*time.Second // so does this one
	secret := plain("announcer", "")
	secret.Auth.Password = func() (string, error) {
		return "", fault.New(fault.Config, "", "metastore.sasl.password: no such file")
	}
	for name, f := range map[string]struct {
		o    hive.Options
		want string
	}{
		"wrong password":  {plain("announcer", "planted"), "refuses PLAIN"},
		"wrong user":      {plain("nobody", "secret"), "refuses PLAIN"},
		"not asked for":   {toOpen, "metastore.sasl"},
		"asked for":       {none, "metastore.sasl"},
		"no password":     {secret, "metastore.sasl.password"},
		"other mechanism": {func() hive.Options { o := plain("a", "b"); o.Auth.Mechanism = "DIGEST-MD5"; return o }(), "metastore.sasl.mechanism"},
	} {
		err := open(t, f.o).Check(t.Context())
		if err == nil || !strings.Contains(err.Error(), f.want) || strings.Contains(err.Error(), "planted") {
			t.Errorf("%s: %v", name, err)
		}
		if name != "asked for" && name != "not asked for" && hive.Unreachable(err) {
			t.Errorf("%s counts as an outage: %v", name, err)
		}
	}
}

// A server of another kind must not make us wait for ever, or allocate what it
// says.
func TestGarbage(t *testing.T) {
	for name, answer := range map[string]string{
		"web server": "HTTP/1.1 400 Bad Request\r\n\r\n", "huge frame": "\x05\x00\x00\x00\x00\xff\xff\xff\xff", "huge refusal": "\x03\xff\xff\xff\xff",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer l.Close()
		go func() { // ends with the listener
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Write([]byte(answer))
			}
		}()
		o := options(t, hivetest.New(t))
		o.Addresses, o.Timeout, o.ConnectTimeout = []string{l.Addr().String()}, time.Second, time.Second
		o.Auth = hive.Auth{Mechanism: hive.Plain, User: "u", Password: func() (string, error) { return "p", nil }}
		if err := open(t, o).Check(t.Context()); err == nil || !strings.Contains(err.Error(), "metastore.") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
