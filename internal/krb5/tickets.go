package krb5

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/hivesink/hivesink/internal/fault"
)

// Tickets hands out logged-in clients (KR1). It is safe for concurrent use.
type Tickets struct {
	id Identity

	mu    sync.Mutex
	last  *client.Client
	until time.Time // half of its ticket's life
}

// NewTickets makes the tickets of an identity. It asks for none yet.
func NewTickets(id Identity) *Tickets { return &Tickets{id: id} }

// Client is logged in, if need be just now. An error that only a person can mend
// has class Config.
func (t *Tickets) Client(ctx context.Context) (*client.Client, error) {
	return within(ctx, t, func() (*client.Client, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.current()
	})
}

func (t *Tickets) current() (*client.Client, error) {
	if t.last != nil && time.Now().Before(t.until) {
		return t.last, nil
	}
	c, began, end, err := t.login()
	if err != nil {
		return nil, err
	}
	t.last, t.until = c, began.Add(end.Sub(began)/2)
	return c, nil
}

// Forget makes the next Client log in anew: what it was given last did not work,
// or the keytab may have been exchanged.
func (t *Tickets) Forget() {
	t.mu.Lock()
	t.until = time.Time{}
	t.mu.Unlock()
}

// within waits for f as long as ctx lasts (KR2). The library's waits for a KDC
// have limits of their own, and no context.
func within[T any](ctx context.Context, t *Tickets, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() { // ends with the library's limits
		value, err := f()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, t.id.waited(context.Cause(ctx))
	}
}

func (t *Tickets) login() (c *client.Client, began, end time.Time, err error) {
	conf, err := t.id.loadConf()
	if err != nil {
		return nil, began, end, err
	}
	if t.id.TicketCache != "" {
		return t.fromCache(conf)
	}
	name, realm := t.id.name(conf)
	kt, err := t.id.loadKeytab(name, realm)
	if err != nil {
		return nil, began, end, err
	}
	fresh := client.NewWithKeytab(name, realm, kt, conf, client.DisablePAFXFAST(true))
	fail := func(err error) (*client.Client, time.Time, time.Time, error) {
		return nil, began, end, t.id.loginError(name+"@"+realm, err)
	}
	if ok, err := fresh.IsConfigured(); !ok {
		return nil, began, end, t.id.confError(err)
	}
	req, err := messages.NewASReqForTGT(realm, conf, fresh.Credentials.CName())
	if err != nil {
		return fail(err)
	}
	rep, err := fresh.ASExchange(realm, req, 0)
	if err != nil {
		return fail(err)
	}
	// Client.Login would do the same and start a goroutine that renews for ever.
	cache, err := cacheOf(fresh.Credentials, rep.Ticket, &rep.DecryptedEncPart)
	if err != nil {
		return fail(err)
	}
	if c, err = client.NewFromCCache(cache, conf, client.DisablePAFXFAST(true)); err != nil {
		return fail(err)
	}
	c.Credentials.WithKeytab(kt) // of use to who keeps the client for longer than the ticket
	return c, time.Now(), rep.DecryptedEncPart.EndTime, nil
}

// cacheOf is a ticket cache with one ticket-granting ticket.
func cacheOf(who *credentials.Credentials, tgt messages.Ticket, part *messages.EncKDCRepPart) (*credentials.CCache, error) {
	text, err := tgt.Marshal()
	if err != nil {
		return nil, err
	}
	c := new(credentials.CCache)
	c.DefaultPrincipal.Realm, c.DefaultPrincipal.PrincipalName = who.Domain(), who.CName()
	cred := &credentials.Credential{Key: part.Key, AuthTime: part.AuthTime, StartTime: part.StartTime, EndTime: part.EndTime,
		RenewTill: part.RenewTill, Ticket: text, TicketFlags: types.NewKrbFlags()}
	cred.Client = c.DefaultPrincipal
	cred.Server.Realm, cred.Server.PrincipalName = tgt.Realm, tgt.SName
	c.Credentials = []*credentials.Credential{cred}
	return c, nil
}

// fromCache takes the tickets that somebody else keeps fresh.
func (t *Tickets) fromCache(conf *config.Config) (c *client.Client, began, end time.Time, err error) {
	cache, err := t.id.loadCache()
	if err != nil {
		return nil, began, end, err
	}
	bad := func(hint, format string, args ...any) (*client.Client, time.Time, time.Time, error) {
		return nil, began, end, fault.New(fault.Config, hint, "%s.ticket_cache %s "+format, append([]any{t.id.At, t.id.cachePath()}, args...)...)
	}
	realm := cache.GetClientRealm()
	has := cache.GetClientPrincipalName().PrincipalNameString() + "@" + realm
	if t.id.Principal != "" {
		if name, r := t.id.name(conf); name+"@"+r != has {
			return bad("use the cache of that principal, or leave principal out", "is of %s, not of %s@%s (%s.principal)", has, name, r, t.id.At)
		}
	}
	for _, e := range cache.GetEntries() {
		if strings.HasPrefix(e.Server.PrincipalName.PrincipalNameString(), "krbtgt/"+realm) {
			end = e.EndTime
		}
	}
	now := time.Now()
	switch {
	case end.IsZero():
		return bad("log in with kinit -c", "has no ticket-granting ticket of %s", has)
	case !now.Before(end):
		return bad("log in again with kinit, or set "+t.id.At+".keytab for long runs", "has only a ticket that ended at %s", end.Local().Format(time.RFC3339))
	}
	if c, err = client.NewFromCCache(cache, conf, client.DisablePAFXFAST(true)); err != nil {
		return bad("make it with kinit -c", "%v", err)
	}
	// The file is read again after a minute at most: whoever keeps it fresh does
	// so long before the ticket ends.
	return c, now, now.Add(min(end.Sub(now), 2*time.Minute)), nil
}
