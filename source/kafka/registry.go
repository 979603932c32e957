package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/internal/tlsopt"
)

// registry asks a schema registry. A schema is kept for ever: its id never means
// another one. That there is none may change (K11).
type registry struct {
	urls     []string
	client   *http.Client
	user     string
	password *secret // nil: there is none
	log      *slog.Logger

	backoff    time.Duration   // before a registry that fails is asked again, the first time
	pauses     []time.Duration // before it is asked again for a schema that it does not have
	missingFor time.Duration   // how long that is believed

	mu     sync.Mutex
	known  map[uint32]*writerSchema
	sweep  int       // how many there are when those that are over are looked for
	since  time.Time // of waited
	waited int       // ids that were asked for again
}

// writerSchema is a schema and those it refers to, each before who needs it.
type writerSchema struct {
	text   string
	others []string
	wrong  error     // why it cannot be used; the rest is empty
	until  time.Time // wrong is believed; zero: for ever
}

// idsAMinute is how many ids a minute are asked for again: others are believed to
// be nobody's at once, so that garbage does not stop a partition.
const idsAMinute = 5

// Limits of a schema.
const (
	maxSchemaBytes = 8 << 20
	maxReferences  = 256
)

const registryOption = "source.kafka.schema_registry"

func newRegistry(c *config.SchemaRegistry, log *slog.Logger) (*registry, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if c.TLS != nil {
		cfg, err := tlsopt.Client(registryOption+".tls", c.TLS)
		if err != nil {
			return nil, err
		}
		t.TLSClientConfig = cfg
	}
	r := &registry{client: &http.Client{Transport: t, Timeout: requestTimeout}, user: c.Username, log: log,
		backoff: minBackoff, pauses: []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}, missingFor: 30 * time.Second,
		known: make(map[uint32]*writerSchema), sweep: 1000}
	for u := range strings.SplitSeq(c.URL, ",") {
		r.urls = append(r.urls, strings.TrimRight(strings.TrimSpace(u), "/"))
	}
	if c.Password.IsSet() {
		var err error
		if r.password, err = newSecret(registryOption+".password", c.Password); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// check finds out at the start whether a registry answers.
func (r *registry) check(ctx context.Context) error {
	for {
		var status statusError
		err := r.get(ctx, "/schemas/types", isJSON)
		if errors.As(err, &status) && !status.refused() && !answers(err) { // registries before 5.5 have no types
			if other := r.get(ctx, "/schemas/ids/1", isJSON); other == nil || answers(other) {
				err = other
			}
		}
		if err == nil || answers(err) {
			return nil
		}
		if status.refused() {
			return fault.Wrap(fault.Config, "check username and password", fmt.Errorf("%s: %w", registryOption, err))
		}
		if option, hint := refusal(err); strings.HasPrefix(option, "source.kafka.tls") {
			return fault.Wrap(fault.Config, hint, fmt.Errorf("%s: %w", strings.Replace(option, "source.kafka", registryOption, 1), err))
		}
		if serr := sleep(ctx, 500*time.Millisecond); serr != nil {
			if context.Cause(ctx) != errStartTimeout {
				return serr
			}
			return fault.Wrap(fault.Config, "is a registry running there, and under this path?", fmt.Errorf("%s.url: %w", registryOption, err))
		}
	}
}

// schema is that of an id. A registry that does not answer is asked again and
// again, with a bounded pause, until ctx ends; the log says so. One that does not
// have the schema is asked again a few times: of several registries one may be
// behind, and so may a copy of one (K11).
func (r *registry) schema(ctx context.Context, id uint32) (*writerSchema, error) {
	if s := r.remembered(id); s != nil {
		return s, nil
	}
	failed, missing := false, 0
	backoff := r.backoff
	for {
		s, err := r.fetch(ctx, id)
		var no *noSchema
		is := errors.As(err, &no)
		if err == nil || is && (!no.missing || missing >= len(r.pauses) || missing == 0 && !r.patient()) {
			if is {
				s = &writerSchema{wrong: err, until: time.Now().Add(r.missingFor)}
			}
			if failed {
				r.log.Warn("the schema registry answers again")
			}
			r.remember(id, s)
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		pause := backoff
		if is {
			pause = r.pauses[missing]
			missing++
			r.log.Warn("the schema registry does not have a schema; asking again", "schema", id, "in", pause, "error", err)
		} else {
			failed = true
			backoff = min(2*backoff, maxBackoff)
			r.log.Warn("asking the schema registry failed; trying again", "schema", id, "in", pause, "error", err)
		}
		if serr := sleep(ctx, pause); serr != nil {
			return nil, serr
		}
	}
}

// remembered is what is known of an id, nil: nothing.
func (r *registry) remembered(id uint32) *writerSchema {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.known[id]; s != nil && (s.until.IsZero() || time.Now().Before(s.until)) {
		return s
	}
	return nil
}

func (r *registry) remember(id uint32, s *writerSchema) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= r.sweep {
		now := time.Now()
		maps.DeleteFunc(r.known, func(_ uint32, s *writerSchema) bool { return !s.until.IsZero() && !now.Before(s.until) })
		r.sweep = max(1000, 2*len(r.known))
	}
	r.known[id] = s
}

// patient says whether one more id may be asked for again.
func (r *registry) patient() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.since) > time.Minute {
		r.since, r.waited = now, 0
	}
	r.waited++
	return r.waited <= idsAMinute
}

// fetch asks for a schema and what it refers to.
func (r *registry) fetch(ctx context.Context, id uint32) (*writerSchema, error) {
	a, err := r.answer(ctx, "/schemas/ids/"+strconv.FormatUint(uint64(id), 10))
	if no := (*noSchema)(nil); errors.As(err, &no) && no.missing {
		return nil, fmt.Errorf("the registry has no schema %d: %w", id, err)
	}
	if err != nil {
		return nil, fmt.Errorf("schema %d of the registry: %w", id, err)
	}
	if a.Type != "" && a.Type != "AVRO" {
		return &writerSchema{wrong: fmt.Errorf("schema %d of the registry is %s, not AVRO", id, a.Type)}, nil
	}
	s := &writerSchema{text: a.Schema}
	err = r.follow(ctx, a.References, make(map[reference]bool), s)
	if no := (*noSchema)(nil); errors.As(err, &no) && no.missing {
		return nil, fmt.Errorf("schema %d of the registry refers to one that is not there: %w", id, err)
	}
	if err != nil {
		return nil, fmt.Errorf("what schema %d of the registry refers to: %w", id, err)
	}
	return s, nil
}

type answer struct {
	Schema     string      `json:"schema"`
	Type       string      `json:"schemaType"`
	References []reference `json:"references"`
}

type reference struct {
	Subject string `json:"subject"`
	Version int    `json:"version"`
}

func (r *registry) follow(ctx context.Context, refs []reference, seen map[reference]bool, s *writerSchema) error {
	for _, ref := range refs {
		if seen[ref] {
			continue
		}
		seen[ref] = true
		if len(seen) > maxReferences {
			return &noSchema{err: fmt.Errorf("it refers to more than %d others", maxReferences)}
		}
		a, err := r.answer(ctx, "/subjects/"+url.PathEscape(ref.Subject)+"/versions/"+strconv.Itoa(ref.Version))
		if err != nil {
			return err
		}
		if err := r.follow(ctx, a.References, seen, s); err != nil {
			return err
		}
		s.others = append(s.others, a.Schema)
	}
	return nil
}
