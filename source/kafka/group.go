package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// group shows lag tools how far the table is: it commits the offsets of
// complete checkpoints under the name of source.kafka.group. Nothing is ever
// read from it (K2).
type group struct {
	s      *Source
	cancel context.CancelFunc
	done   chan struct{}
	wake   chan struct{}
	pause  time.Duration // after a commit that failed, the first time
	every  time.Duration // the offsets of idle partitions are committed again

	mu      sync.Mutex
	waiting kadm.Offsets // of partitions that have moved since the last commit
	all     kadm.Offsets // what was offered last of each
	foreign bool         // somebody else uses the group; said once
}

// maxCommitPause is the longest pause between two commits of which the first has
// failed.
const maxCommitPause = 5 * time.Minute

func newGroup(s *Source) *group {
	ctx, cancel := context.WithCancel(context.Background())
	g := &group{s: s, cancel: cancel, done: make(chan struct{}), wake: make(chan struct{}, 1), waiting: make(kadm.Offsets), all: make(kadm.Offsets), every: 24 * time.Hour, pause: time.Second}
	go g.run(ctx) // joined by close
	return g
}

// report says who else is in the group: nobody has any business there, for the
// run assigns itself all partitions.
func (g *group) report(ctx context.Context) {
	d, err := g.s.admin.DescribeGroups(ctx, g.s.c.Group)
	if err == nil {
		err = d.Error()
	}
	if err != nil {
		if !errors.Is(err, kerr.GroupIDNotFound) {
			g.s.log.Warn("the group cannot be looked at", "group", g.s.c.Group, "error", err)
		}
		return
	}
	members := d[g.s.c.Group].Members
	if len(members) == 0 {
		return
	}
	var names []string
	for _, m := range members {
		names = append(names, fmt.Sprintf("%s at %s", m.ClientID, m.ClientHost))
	}
	g.foreignMembers(strings.Join(names, ", "))
}

func (g *group) foreignMembers(who string) {
	g.mu.Lock()
	said := g.foreign
	g.foreign = true
	g.mu.Unlock()
	if !said {
		g.s.log.Warn("others are members of source.kafka.group: they take nothing from this run, and its offsets cannot be shown; use a group of its own", "group", g.s.c.Group, "members", who)
	}
}

// offer notes positions that are durable; the latest are committed.
func (g *group) offer(positions map[string]string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, text := range positions {
		topic, n, ok := parseSplitID(id)
		p, err := parsePosition(id, text)
		if !ok || err != nil {
			continue
		}
		g.waiting.AddOffset(topic, n, p.Offset, p.Epoch)
		g.all.AddOffset(topic, n, p.Offset, p.Epoch)
	}
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

func (g *group) run(ctx context.Context) {
	defer close(g.done)
	pause := g.pause
	t := time.NewTicker(g.every)
	defer t.Stop()
	for {
		select {
		case <-g.wake:
		case <-t.C:
			g.refresh()
		case <-ctx.Done():
			// What the last checkpoint has is shown too, if that is quick.
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			g.commit(last) //nolint:errcheck // commit has said it
			return
		}
		if g.commit(ctx) == nil {
			pause = g.pause
			continue
		}
		if sleep(ctx, pause) == nil {
			g.again()
		}
		pause = min(2*pause, maxCommitPause) // it may never work, for want of permission
	}
}

// refresh has the offsets of all partitions committed again. Brokers forget those
// of a group without members, one by one, when each was not committed for
// offsets.retention.minutes, a week: an idle partition would have no lag any more.
func (g *group) refresh() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all.Each(g.waiting.Add)
}

func (g *group) again() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// commit commits what waits. What fails waits on, unless something newer has
// come.
func (g *group) commit(ctx context.Context) error {
	g.mu.Lock()
	offsets := g.waiting
	g.waiting = make(kadm.Offsets)
	g.mu.Unlock()
	if len(offsets) == 0 {
		return nil
	}
	res, err := g.s.admin.CommitOffsets(ctx, g.s.c.Group, offsets)
	if err == nil {
		err = res.Error()
	}
	if err == nil {
		return nil
	}
	g.mu.Lock()
	for topic, parts := range offsets {
		for n, o := range parts {
			if _, newer := g.waiting.Lookup(topic, n); !newer {
				g.waiting.Add(o)
			}
		}
	}
	g.mu.Unlock()
	switch {
	case errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.RebalanceInProgress), errors.Is(err, kerr.IllegalGeneration):
		g.foreignMembers("the coordinator refuses the commit: " + err.Error())
	case ctx.Err() == nil:
		g.s.log.Warn("the group's offsets could not be committed; lag tools show old ones", "group", g.s.c.Group, "error", err)
	}
	return err
}

func (g *group) close() {
	g.cancel()
	<-g.done
}
