package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/internal/fault"
)

// registry asks a schema registry. What it has answered is kept for ever: a
// schema's id never means another one.
type registry struct {
	urls     []string
	client   *http.Client
	user     string
	password string
	log      *slog.Logger

	mu    sync.Mutex
	known map[int32]*writerSchema
}

// writerSchema is a schema and those it refers to, each before who needs it.
type writerSchema struct {
	text   string
	others []string
	wrong  error // why it cannot be used, for ever; the rest is empty
}

// Limits of a schema.
const (
	maxSchemaBytes = 8 << 20
	maxReferences  = 256
)

const registryOption = "source.kafka.schema_registry"

func newRegistry(c *config.SchemaRegistry, log *slog.Logger) (*registry, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if c.TLS != nil {
		cfg, err := tlsConfig(registryOption+".tls", c.TLS)
		if err != nil {
			return nil, err
		}
		t.TLSClientConfig = cfg
	}
	r := &registry{client: &http.Client{Transport: t, Timeout: requestTimeout}, user: c.Username, log: log, known: make(map[int32]*writerSchema)}
	for u := range strings.SplitSeq(c.URL, ",") {
		r.urls = append(r.urls, strings.TrimRight(strings.TrimSpace(u), "/"))
	}
	if c.Password.IsSet() {
		var err error
		if r.password, err = c.Password.Read(registryOption + ".password"); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// check finds out at the start whether a registry answers.
func (r *registry) check(ctx context.Context) error {
	for {
		var any json.RawMessage
		err := r.get(ctx, "/schemas/types", &any)
		var status statusError
		if errors.As(err, &status) && status.code < 500 && !status.refused() {
			err = nil // it answers, if not this
		}
		if err == nil {
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
			return fault.Wrap(fault.Config, "is the registry running there?", fmt.Errorf("%s.url: %w", registryOption, err))
		}
	}
}

// schema is that of an id. A registry that does not answer is asked again and
// again, with a bounded pause, until ctx ends; the log says so.
func (r *registry) schema(ctx context.Context, id int32) (*writerSchema, error) {
	r.mu.Lock()
	s := r.known[id]
	r.mu.Unlock()
	if s != nil {
		return s, nil
	}
	said := false
	for backoff := minBackoff; ; backoff = min(2*backoff, maxBackoff) {
		s, err := r.fetch(ctx, id)
		if err == nil {
			if said {
				r.log.Warn("the schema registry answers again")
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.known[id] = s
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		said = true
		r.log.Warn("asking the schema registry failed; trying again", "schema", id, "in", backoff, "error", err)
		if serr := sleep(ctx, backoff); serr != nil {
			return nil, serr
		}
	}
}

// fetch asks for a schema and what it refers to.
func (r *registry) fetch(ctx context.Context, id int32) (*writerSchema, error) {
	var a answer
	err := r.get(ctx, "/schemas/ids/"+strconv.Itoa(int(id)), &a)
	var status statusError
	if errors.As(err, &status) && status.code == http.StatusNotFound {
		return &writerSchema{wrong: fmt.Errorf("the registry has no schema %d", id)}, nil
	}
	if err != nil {
		return nil, err
	}
	if a.Type != "" && a.Type != "AVRO" {
		return &writerSchema{wrong: fmt.Errorf("schema %d of the registry is %s, not AVRO", id, a.Type)}, nil
	}
	s := &writerSchema{text: a.Schema}
	seen := make(map[reference]bool)
	err = r.follow(ctx, a.References, seen, s)
	if errors.As(err, &status) && status.code == http.StatusNotFound {
		return &writerSchema{wrong: fmt.Errorf("schema %d of the registry refers to one that is not there: %w", id, err)}, nil
	}
	return s, err
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
			return fmt.Errorf("a schema refers to more than %d others", maxReferences)
		}
		var a answer
		if err := r.get(ctx, "/subjects/"+url.PathEscape(ref.Subject)+"/versions/"+strconv.Itoa(ref.Version), &a); err != nil {
			return err
		}
		if err := r.follow(ctx, a.References, seen, s); err != nil {
			return err
		}
		s.others = append(s.others, a.Schema)
	}
	return nil
}

// statusError is an answer that is none.
type statusError struct {
	code int
	text string
}

func (e statusError) Error() string { return fmt.Sprintf("HTTP status %d: %s", e.code, e.text) }

func (e statusError) refused() bool {
	return e.code == http.StatusUnauthorized || e.code == http.StatusForbidden
}

// get asks the registries in turn until one answers.
func (r *registry) get(ctx context.Context, path string, to any) error {
	var errs []error
	for _, base := range r.urls {
		err := r.ask(ctx, base+path, to)
		var status statusError
		if err == nil || errors.As(err, &status) && status.code < 500 {
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (r *registry) ask(ctx context.Context, address string, to any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/vnd.schemaregistry.v1+json, application/json")
	if r.user != "" {
		req.SetBasicAuth(r.user, r.password)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxSchemaBytes+1))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return statusError{resp.StatusCode, string(body[:min(len(body), 200)])}
	}
	if len(body) > maxSchemaBytes {
		return fmt.Errorf("%s: the answer is larger than %d bytes", address, maxSchemaBytes)
	}
	return json.Unmarshal(body, to)
}
