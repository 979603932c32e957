package kafka

import (
	"context"
	"slices"
	"time"
)

// silence is since when a partition cannot be read, and why. Its rows wait, and
// it holds the watermark, for however long that is: somebody should know.
type silence struct {
	since time.Time
	why   string
}

// mute says that a partition cannot be read just now.
func (sp *split) mute(err error) {
	why := "it does not answer"
	if err != nil {
		why = err.Error()
	}
	was := sp.silent.Load()
	if was == nil {
		sp.silent.Store(&silence{time.Now(), why})
	} else if was.why != why {
		sp.silent.Store(&silence{was.since, why})
	}
}

// heard says that a partition can be read.
func (sp *split) heard() {
	if sp.silent.Load() != nil {
		sp.silent.Store(nil)
	}
}

// Waiting is how many partitions have not been readable for long.
func (s *Source) Waiting() int { return int(s.waiting.Load()) }

// crier logs which partitions cannot be read, once they have been silent for
// long, then every ten times as long; and when they are read again.
type crier struct {
	s      *Source
	cancel context.CancelFunc
	done   chan struct{}
	told   map[string]bool // of which the log says that they cannot be read
	said   time.Time
}

// newCrier begins with those that the start has told of.
func newCrier(s *Source) *crier {
	ctx, cancel := context.WithCancel(context.Background())
	c := &crier{s: s, cancel: cancel, done: make(chan struct{}), told: make(map[string]bool), said: time.Now()}
	s.mu.Lock()
	for id, sp := range s.splits {
		if sp.silent.Load() != nil {
			c.told[id] = true
		}
	}
	s.mu.Unlock()
	s.waiting.Store(int64(len(c.told)))
	go c.run(ctx) // joined by close
	return c
}

func (c *crier) run(ctx context.Context) {
	defer close(c.done)
	for sleep(ctx, c.s.patience/12) == nil {
		c.look(time.Now())
	}
}

func (c *crier) close() {
	c.cancel()
	<-c.done
}

// look looks once.
func (c *crier) look(now time.Time) {
	var silent, back []string
	longest, why, fresh := time.Duration(0), "", false
	c.s.mu.Lock()
	for id, sp := range c.s.splits {
		is := sp.silent.Load()
		if is == nil {
			if c.told[id] {
				delete(c.told, id)
				back = append(back, sp.name())
			}
			continue
		}
		lasts := now.Sub(is.since)
		if !c.told[id] && lasts < c.s.patience {
			continue
		}
		fresh = fresh || !c.told[id]
		c.told[id] = true
		silent = append(silent, sp.name())
		if lasts > longest {
			longest, why = lasts, is.why
		}
	}
	c.s.mu.Unlock()
	c.s.waiting.Store(int64(len(silent)))
	slices.Sort(silent)
	slices.Sort(back)
	if len(back) > 0 {
		c.s.log.Warn("partitions are read again", "count", len(back), "partitions", someOf(back), "silent", len(silent))
	}
	if len(silent) == 0 || !fresh && now.Sub(c.said) < 10*c.s.patience {
		return
	}
	c.said = now
	then := "it goes on with the others"
	if c.s.Bounded() {
		then = "it ends when they have come to their ends, too; SIGTERM ends it before, and keeps what was read"
	}
	c.s.log.Warn("partitions cannot be read: their rows wait, they hold the watermark, and delays do not begin", "count", len(silent), "partitions", someOf(silent),
		"for", longest.Round(time.Second), "error", why, "the_run", then)
}
