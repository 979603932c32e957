package s3fs

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// fake is a small store in memory whose answers can be bent to those of stores
// that are not quite S3.
type fake struct {
	fold      func(key string) string // keys that are the same have the same
	listed    func(key string) string // what a listing makes of a key
	ignores   bool                    // If-None-Match
	late      int                     // so many PUTs have their conditions checked before the first of them is done
	conflicts bool                    // says 409 of a name that is taken
	hides     bool                    // what is new, from listings
	anywhere  bool                    // start-after is not known
	strict    bool                    // of an object no longer end is given than it has
	mute      bool                    // 416 has no body
	noCopy    bool                    // UploadPartCopy is not known
	forgets   bool                    // that an upload is gone: it has no parts
	twice     bool                    // a listing's directories come twice
	plain     bool                    // bodies are taken as they come: no aws-chunked

	mu      sync.Mutex
	objects map[string]string
	uploads map[string]string // content by id
	arrived int               // PUTs
	all     chan struct{}     // the late ones are there
}

// start serves the bucket bkt, encrypted or not.
func (s *fake) start(t *testing.T, encrypted bool) *FS {
	t.Helper()
	s.objects, s.uploads = make(map[string]string), make(map[string]string)
	s.arrived, s.all = 0, make(chan struct{})
	same := func(key string) string { return key }
	if s.fold == nil {
		s.fold = same
	}
	if s.listed == nil {
		s.listed = same
	}
	srv := httptest.NewUnstartedServer(s)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // it says of a handshake that was not needed that it failed
	o := options("")
	if encrypted {
		srv.StartTLS()
		o.TLS = srv.Client().Transport.(*http.Transport).TLSClientConfig
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	o.Endpoint = srv.URL
	f, err := New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (s *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, _ := strings.CutPrefix(r.URL.Path, "/bkt/")
	key = s.fold(key)
	q := r.URL.Query()
	if s.plain && strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING") {
		say(http.StatusNotImplemented, "NotImplemented")(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	switch {
	case q.Has("list-type"):
		s.list(w, q)
	case q.Has("uploads"):
		s.mu.Lock()
		id := strconv.Itoa(len(s.uploads) + 1)
		s.uploads[id] = ""
		s.mu.Unlock()
		fmt.Fprintf(w, `<InitiateMultipartUploadResult><UploadId>%s</UploadId></InitiateMultipartUploadResult>`, id)
	case q.Has("uploadId"):
		s.upload(w, r, key, q.Get("uploadId"), body)
	case r.Method == http.MethodPut:
		s.put(w, r, key, string(body))
	case r.Method == http.MethodDelete:
		s.mu.Lock()
		delete(s.objects, key)
		s.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	default:
		s.get(w, r, key)
	}
}

func (s *fake) put(w http.ResponseWriter, r *http.Request, key, content string) {
	s.mu.Lock()
	_, there := s.objects[key]
	if s.arrived++; s.arrived <= s.late {
		if s.arrived == s.late {
			close(s.all)
		}
		s.mu.Unlock()
		<-s.all
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	switch {
	case there && r.Header.Get("If-None-Match") == "*" && !s.ignores && s.conflicts:
		say(http.StatusConflict, "FileAlreadyExists")(w, r)
	case there && r.Header.Get("If-None-Match") == "*" && !s.ignores:
		say(http.StatusPreconditionFailed, "PreconditionFailed")(w, r)
	default:
		s.objects[key] = content
		w.Header().Set("ETag", `"e"`)
		if r.Method == http.MethodPost {
			fmt.Fprint(w, `<CompleteMultipartUploadResult><ETag>"e"</ETag></CompleteMultipartUploadResult>`)
		}
	}
}

func (s *fake) upload(w http.ResponseWriter, r *http.Request, key, id string, body []byte) {
	s.mu.Lock()
	content, there := s.uploads[id]
	s.mu.Unlock()
	switch {
	case r.Method == http.MethodGet && (there || s.forgets):
		fmt.Fprintf(w, `<ListPartsResult><UploadId>%s</UploadId>`, id)
		if there {
			fmt.Fprint(w, `<Part><ETag>"p"</ETag><PartNumber>1</PartNumber></Part>`)
		}
		fmt.Fprint(w, `</ListPartsResult>`)
	case r.Method == http.MethodDelete && s.forgets && !there:
		w.WriteHeader(http.StatusNoContent)
	case !there:
		say(http.StatusNotFound, "NoSuchUpload")(w, r)
	case r.Method == http.MethodPost:
		s.put(w, r, key, content)
	case r.Method == http.MethodDelete:
		s.mu.Lock()
		delete(s.uploads, id)
		s.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	case r.Header.Get("X-Amz-Copy-Source") != "" && s.noCopy:
		say(http.StatusNotImplemented, "NotImplemented")(w, r)
	default:
		s.mu.Lock()
		s.uploads[id] = content + string(body)
		s.mu.Unlock()
		w.Header().Set("ETag", `"p"`)
	}
}

func (s *fake) list(w http.ResponseWriter, q url.Values) {
	s.mu.Lock()
	keys := slices.Sorted(maps.Keys(s.objects))
	s.mu.Unlock()
	var b, dirs bytes.Buffer
	seen := ""
	for _, k := range keys {
		k = s.listed(k)
		rest, ok := strings.CutPrefix(k, q.Get("prefix"))
		if !ok || s.hides || k <= q.Get("start-after") && !s.anywhere {
			continue
		}
		if dir, _, ok := strings.Cut(rest, "/"); ok && q.Get("delimiter") != "" {
			if dir != seen {
				for range map[bool]int{false: 1, true: 2}[s.twice] {
					dirs.WriteString("<CommonPrefixes><Prefix>")
					_ = xml.EscapeText(&dirs, []byte(q.Get("prefix")+dir+"/"))
					dirs.WriteString("</Prefix></CommonPrefixes>")
				}
			}
			seen = dir
			continue
		}
		b.WriteString("<Contents><Key>")
		_ = xml.EscapeText(&b, []byte(k))
		b.WriteString("</Key><Size>1</Size></Contents>")
	}
	fmt.Fprintf(w, "<ListBucketResult><Name>bkt</Name>%s%s</ListBucketResult>", b.String(), dirs.String())
}

func (s *fake) get(w http.ResponseWriter, r *http.Request, key string) {
	s.mu.Lock()
	content, there := s.objects[key]
	s.mu.Unlock()
	var from int
	to := len(content) - 1
	if n, suffix := 0, r.Header.Get("Range"); suffix != "" {
		if _, err := fmt.Sscanf(suffix, "bytes=-%d", &n); err == nil {
			from = len(content) - n
		} else if _, err := fmt.Sscanf(suffix, "bytes=%d-%d", &from, &to); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
	}
	switch {
	case !there && r.Method == http.MethodHead:
		w.WriteHeader(http.StatusNotFound)
		return
	case !there:
		say(http.StatusNotFound, "NoSuchKey")(w, r)
		return
	case r.Header.Get("Range") != "" && (s.strict && from < 0 || len(content) == 0):
		say(http.StatusRequestedRangeNotSatisfiable, map[bool]string{false: "InvalidRange"}[s.mute])(w, r)
		return
	}
	from, to = max(0, from), min(to, len(content)-1)
	w.Header().Set("ETag", `"e"`)
	w.Header().Set("Content-Length", strconv.Itoa(to+1-from))
	if r.Header.Get("Range") != "" {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(content)))
		w.WriteHeader(http.StatusPartialContent)
	}
	if r.Method == http.MethodGet {
		fmt.Fprint(w, content[from:to+1])
	}
}
