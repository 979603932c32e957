//go:build integration

package s3

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
)

// fault is what a proxy does to some requests.
type fault struct {
	op    string // of S3's API
	glob  string // path.Match on the key's last element; empty: any
	nth   int    // the first match that is met, from 1; 0 means 1
	times int    // how many are met; 0 means 1
	do    action
	// mayRest: it need not fire, as what it stands for must not happen.
	mayRest bool
	seen    int
	fired   int
}

// action: what becomes of a request.
type action func(p *proxy, w http.ResponseWriter, r *http.Request)

// loseAnswer lets the store do it and cuts the connection in place of the
// answer.
func loseAnswer(p *proxy, w http.ResponseWriter, r *http.Request) {
	p.forward(httptest.NewRecorder(), r)
	cut(w)
}

// twice does it twice: the second answer is what a retry would get.
func twice(p *proxy, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		cut(w)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	p.forward(httptest.NewRecorder(), r)
	r.Body = io.NopCloser(bytes.NewReader(body))
	p.forward(w, r)
}

// cutBody takes half of what is sent, and cuts the connection.
func cutBody(_ *proxy, w http.ResponseWriter, r *http.Request) {
	_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2)
	cut(w)
}

// refuse answers as S3 does, without asking the store.
func refuse(status int, code string) action {
	return func(_ *proxy, w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>by the test</Message></Error>`, code)
	}
}

// hang keeps the connection and says nothing.
func hang(p *proxy, w http.ResponseWriter, r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-p.closed:
	}
	cut(w)
}

func cut(w http.ResponseWriter) {
	if h, ok := w.(http.Hijacker); ok {
		if c, _, err := h.Hijack(); err == nil {
			_ = c.Close()
		}
	}
}

// proxy stands before a store and counts what is asked of it.
type proxy struct {
	*httptest.Server
	target string
	client *http.Client
	closed chan struct{}

	mu     sync.Mutex
	faults []*fault
	counts map[string]int
}

func newProxy(t *testing.T, target string, faults ...*fault) *proxy {
	t.Helper()
	p := &proxy{target: target, faults: faults, counts: make(map[string]int), closed: make(chan struct{}),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}}
	p.Server = httptest.NewServer(p)
	t.Cleanup(func() {
		close(p.closed)
		p.Server.CloseClientConnections()
		p.Server.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, f := range p.faults {
			if f.fired == 0 && !f.mayRest {
				t.Errorf("the fault of %s %s never fired; %d requests of it came", f.op, f.glob, f.seen)
			}
		}
	})
	return p
}

func (p *proxy) count(op string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[op]
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	op := operation(r)
	p.mu.Lock()
	p.counts[op]++
	var met *fault
	for _, f := range p.faults {
		if f.op != op {
			continue
		}
		if ok, _ := path.Match(f.glob, path.Base(r.URL.Path)); f.glob != "" && !ok {
			continue
		}
		f.seen++
		if f.seen >= max(1, f.nth) && f.fired < max(1, f.times) && met == nil {
			f.fired++
			met = f
		}
	}
	p.mu.Unlock()
	if met != nil {
		met.do(p, w, r)
		return
	}
	p.forward(w, r)
}

// forward asks the store. The signature covers the host, so that it stays.
func (p *proxy) forward(w http.ResponseWriter, r *http.Request) {
	out, err := http.NewRequest(r.Method, p.target+r.URL.RequestURI(), r.Body)
	if err != nil {
		cut(w)
		return
	}
	out.Header, out.Host, out.ContentLength = r.Header.Clone(), r.Host, r.ContentLength
	if r.ContentLength == 0 {
		out.Body = http.NoBody
	}
	res, err := p.client.Do(out)
	if err != nil {
		cut(w)
		return
	}
	defer res.Body.Close()
	for k, v := range res.Header {
		w.Header()[k] = v
	}
	w.WriteHeader(res.StatusCode)
	_, _ = io.Copy(w, res.Body)
}

// operation is a request in the words of S3's API.
func operation(r *http.Request) string {
	q := r.URL.Query()
	object := strings.Contains(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.Method == http.MethodPost && q.Has("uploads"):
		return "CreateMultipartUpload"
	case r.Method == http.MethodPost && q.Has("uploadId"):
		return "CompleteMultipartUpload"
	case r.Method == http.MethodPut && q.Has("uploadId") && r.Header.Get("X-Amz-Copy-Source") != "":
		return "UploadPartCopy"
	case r.Method == http.MethodPut && q.Has("uploadId"):
		return "UploadPart"
	case r.Method == http.MethodPut && r.Header.Get("X-Amz-Copy-Source") != "":
		return "CopyObject"
	case r.Method == http.MethodPut:
		return "PutObject"
	case r.Method == http.MethodDelete && q.Has("uploadId"):
		return "AbortMultipartUpload"
	case r.Method == http.MethodDelete:
		return "DeleteObject"
	case r.Method == http.MethodHead:
		return "HeadObject"
	case q.Has("uploads"):
		return "ListMultipartUploads"
	case q.Has("uploadId"):
		return "ListParts"
	case !object:
		return "ListObjectsV2"
	}
	return "GetObject"
}
