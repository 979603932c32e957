package hdfsfs

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/internal/krb5"
	"github.com/hivesink/hivesink/storage"
)

// FS is a cluster. It is safe for concurrent use.
type FS struct {
	o       Options
	tickets *krb5.Tickets
	worked  atomic.Bool // an operation has been answered
	garbled atomic.Bool // an answer was no answer: what a cluster with Kerberos says to others
	doubted atomic.Bool // it was asked whether data can be read at all (doubt)
	waiting atomic.Int64

	mu      sync.Mutex
	current *session
	over    chan struct{}

	replication int
	blockSize   int64
	encrypts    bool // dfs.encrypt.data.transfer
}

var _ storage.Putter = (*FS)(nil)

// session is a client with what belongs to it. One that got no answer is
// replaced for new operations, and closed when the files that are being written
// over it are done.
type session struct {
	client *hdfs.Client
	calls  *calls
	dial   *dialer
	users  int
	old    bool
}

// New connects to a cluster and asks it for its defaults. Errors name the
// option to look at.
func New(ctx context.Context, o Options) (*FS, error) {
	if err := o.resolve(); err != nil {
		return nil, err
	}
	f := &FS{o: o, over: make(chan struct{})}
	if o.Kerberos != nil {
		k := o.Kerberos
		f.tickets = krb5.NewTickets(krb5.Identity{At: "hdfs.kerberos", Principal: k.Principal, Keytab: k.Keytab, TicketCache: k.TicketCache, Krb5Conf: k.Krb5Conf})
	}
	stop := context.AfterFunc(ctx, func() { f.shut() })
	defer stop()
	err := f.do("connect", func(s *session) error {
		var err error
		f.replication, f.blockSize, f.encrypts, err = s.calls.defaults()
		return err
	})
	if err != nil {
		f.shut()
		return nil, err
	}
	if o.Replication > 0 {
		f.replication = o.Replication
	}
	if o.BlockSize > 0 {
		f.blockSize = o.BlockSize
	}
	return f, nil
}

// who acts, for messages.
func (f *FS) who() string {
	if k := f.o.Kerberos; k != nil {
		return cmp.Or(k.Principal, "of the ticket cache")
	}
	return f.o.User
}

// connect makes a session.
func (f *FS) connect() (*session, error) {
	d := &dialer{connect: f.o.ConnectTimeout, call: f.o.CallTimeout}
	if !f.worked.Load() {
		d.connect, d.call = min(d.connect, f.o.StartTimeout), min(d.call, f.o.StartTimeout)
	}
	o := hdfs.ClientOptions{}
	if f.o.conf != nil {
		o = hdfs.ClientOptionsFromConf(f.o.conf)
	}
	o.Addresses, o.User, o.KerberosClient = f.o.NameNodes, f.o.User, nil
	o.NamenodeDialFunc, o.DatanodeDialFunc = d.nameNode, d.dataNode
	o.DataTransferProtection = f.o.Protection
	if f.tickets != nil {
		ctx, cancel := context.WithTimeout(context.Background(), d.connect+d.call)
		defer cancel()
		var err error
		if o.KerberosClient, err = f.tickets.Client(ctx); err != nil {
			return nil, f.loginError(err)
		}
		o.KerberosServicePrincipleName = f.o.Kerberos.Service
	}
	client, err := hdfs.NewClient(o)
	if err != nil {
		d.hangUp()
		if f.tickets != nil {
			f.tickets.Forget()
		}
		return nil, err
	}
	c, err := newCalls(client)
	if err != nil {
		_ = client.Close() // it is of no use
		return nil, fault.Wrap(fault.Halt, "", err)
	}
	return &session{client: client, calls: c, dial: d}, nil
}

// loginError is the error of a login. Once the cluster has answered, one that
// fails is waited for: somebody is changing the keytab. Only its words are kept
// then. A keytab that is not there, or not to be read, must not pass for a file
// of the cluster that is not.
func (f *FS) loginError(err error) error {
	if !f.worked.Load() {
		return err
	}
	var classed *fault.Error
	if errors.As(err, &classed) {
		err = classed.Err
	}
	return errors.New(err.Error())
}

// acquire is the current session, made if need be.
func (f *FS) acquire() (*session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed() {
		return nil, errClosed
	}
	if f.current == nil {
		s, err := f.connect()
		if err != nil {
			return nil, err
		}
		f.current = s
	}
	f.current.users++
	return f.current, nil
}

// giveBack ends the use of a session; broken: nothing may use it any more.
func (f *FS) giveBack(s *session, broken bool) {
	f.mu.Lock()
	s.users--
	if broken && f.current == s {
		f.current, s.old = nil, true
		if f.tickets != nil {
			f.tickets.Forget()
		}
	}
	end := s.old && s.users == 0
	f.mu.Unlock()
	if end {
		s.close()
	}
}

// close hangs up first: a call that waits for an answer holds the client's
// lock.
func (s *session) close() {
	s.dial.hangUp()
	_ = s.client.Close() // there is nothing left to lose
}

var errClosed = fault.New(fault.Halt, "", "the storage is closed")

func (f *FS) closed() bool {
	select {
	case <-f.over:
		return true
	default:
		return false
	}
}

// shut ends every wait, and lets operations fail.
func (f *FS) shut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed() {
		return
	}
	close(f.over)
	if s := f.current; s != nil {
		f.current, s.old = nil, true
		if s.users == 0 {
			go s.close() // not under the lock; ends at once, its connections are cut
		} else {
			s.dial.hangUp()
		}
	}
}

// Close gives up all connections. Operations that wait fail.
func (f *FS) Close() error {
	f.shut()
	return nil
}

const (
	firstWait  = 50 * time.Millisecond
	longWait   = 5 * time.Second // a new connection costs little, and outages end at any time
	quietTime  = time.Second     // waits shorter than this are nobody's business
	notifyEach = time.Minute
)

// patience counts the waits of one operation (H6).
type patience struct {
	f     *FS
	what  string
	limit time.Duration // 0: Options.Patience
	since time.Time
	wait  time.Duration
	told  time.Time
}

// pause waits before the next try after err; its error ends the operation.
func (p *patience) pause(err error) error {
	now := time.Now()
	if p.since.IsZero() {
		p.since, p.wait = now, firstWait
		p.f.waiting.Add(1)
	}
	if strings.Contains(err.Error(), garbledAnswer) {
		p.f.garbled.Store(true)
	}
	if err := p.f.doubt(p.what, err); err != nil {
		return err
	}
	limit := p.limit
	if limit == 0 {
		limit = p.f.o.Patience
	}
	if !p.f.worked.Load() {
		limit = p.f.o.StartTimeout
	}
	waited := now.Sub(p.since)
	if waited >= limit {
		return p.f.gaveUp(waited.Round(100*time.Millisecond).String(), err)
	}
	if waited >= quietTime && (p.told.IsZero() || now.Sub(p.told) >= notifyEach) {
		p.told = now
		p.f.o.Notify(p.what, err)
	}
	t := time.NewTimer(min(p.wait, limit-waited))
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.f.over:
		return errClosed
	}
	p.wait = min(2*p.wait, longWait)
	return nil
}

// done ends the waits.
func (p *patience) done() {
	if !p.since.IsZero() {
		p.f.waiting.Add(-1)
	}
}

// answered tells that what was waited for has come.
func (p *patience) answered() {
	if !p.told.IsZero() {
		p.f.o.Notify(p.what, nil)
	}
}

// Waiting is the number of operations that wait for the cluster now.
func (f *FS) Waiting() int { return int(f.waiting.Load()) }

// do runs an operation until it is answered. try is called again after an
// unknown outcome, too, and must know what to do then (H5).
func (f *FS) do(what string, try func(s *session) error) error {
	p := patience{f: f, what: what}
	defer p.done()
	for {
		s, err := f.acquire()
		var was outcome
		if err == nil {
			err = try(s)
			was, err = judge(err)
			f.giveBack(s, was == unknown)
		} else {
			was, err = judge(err)
		}
		if was == answered {
			if s != nil {
				f.worked.Store(true)
				p.answered()
			}
			return err
		}
		if err := p.pause(err); err != nil {
			return err
		}
	}
}

// HangUp drops the connections as a lost network does; the next operation makes
// new ones. For tests.
func (f *FS) HangUp() {
	f.mu.Lock()
	s := f.current
	if s != nil {
		f.current, s.old = nil, true
		s.users++
	}
	if f.tickets != nil {
		f.tickets.Forget()
	}
	f.mu.Unlock()
	if s != nil {
		f.giveBack(s, true)
	}
}
