package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// statusError is an answer that is none.
type statusError struct {
	url  string
	code int
	said int // the registry's own error_code; -1: the answer has none
	text string
}

func (e statusError) Error() string {
	return fmt.Sprintf("%s: HTTP status %d: %s", e.url, e.code, e.text)
}

func (e statusError) refused() bool {
	return e.code == http.StatusUnauthorized || e.code == http.StatusForbidden
}

// missing says whether it is the registry itself that does not have a subject,
// version or schema: Confluent's, and those that do as it does, then have an
// error_code of 404 and two digits. A plain 404 comes from a proxy before it, or
// from a wrong path.
func (e statusError) missing() bool {
	return e.code == http.StatusNotFound && e.said/100 == http.StatusNotFound
}

// wrong says whether it is the registry itself that cannot do anything with what
// it was asked.
func (e statusError) wrong() bool {
	return (e.code == http.StatusBadRequest || e.code == http.StatusUnprocessableEntity) && e.said >= 0
}

// noSchema is what all registries say of a schema: asking again does not help,
// or may, when it is missing.
type noSchema struct {
	missing bool
	err     error
}

func (e *noSchema) Error() string { return e.err.Error() }
func (e *noSchema) Unwrap() error { return e.err }

var errLarge = errors.New("the answer is too large")

// answers says whether an error is, for all that, the answer of a registry.
func answers(err error) bool {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			if answers(e) {
				return true
			}
		}
		return false
	}
	var status statusError
	if no := (*noSchema)(nil); errors.As(err, &no) {
		return true
	}
	return errors.As(err, &status) && status.code < 500 && status.said >= 0 && !status.refused()
}

// answer asks for a schema.
func (r *registry) answer(ctx context.Context, path string) (answer, error) {
	var a answer
	err := r.get(ctx, path, func(body []byte) error {
		a = answer{}
		err := json.Unmarshal(body, &a)
		if err == nil && a.Schema == "" {
			err = errors.New("the answer has no schema")
		}
		return err
	})
	return a, err
}

func isJSON(body []byte) error {
	var some json.RawMessage
	return json.Unmarshal(body, &some)
}

// get asks the registries in turn until one gives what accept takes. Only what
// all of them say themselves is a *noSchema.
func (r *registry) get(ctx context.Context, path string, accept func([]byte) error) error {
	var errs []error
	no, missing := 0, false
	for _, base := range r.urls {
		body, err := r.ask(ctx, base+path)
		if err == nil {
			if err = accept(body); err != nil {
				err = fmt.Errorf("%s: %w", base+path, err)
			}
		}
		if err == nil {
			return nil
		}
		var status statusError
		if is := errors.As(err, &status); is && (status.missing() || status.wrong()) || errors.Is(err, errLarge) {
			no++
			missing = missing || is && status.missing()
		}
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	if no == len(r.urls) {
		return &noSchema{missing: missing, err: err}
	}
	return err
}

func (r *registry) ask(ctx context.Context, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/vnd.schemaregistry.v1+json, application/json")
	if r.user != "" && r.password != nil {
		req.SetBasicAuth(r.user, r.password.now())
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxSchemaBytes+1))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, statusError{address, resp.StatusCode, errorCode(body), string(body[:min(len(body), 200)])}
	}
	if len(body) > maxSchemaBytes {
		return nil, fmt.Errorf("%s: %w: larger than %d bytes", address, errLarge, maxSchemaBytes)
	}
	return body, nil
}

// errorCode is that of a registry's answer, -1: it has none.
func errorCode(body []byte) int {
	var e struct {
		Code *int `json:"error_code"`
	}
	if json.Unmarshal(body, &e) != nil || e.Code == nil {
		return -1
	}
	return *e.Code
}
