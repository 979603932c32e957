package s3fs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hivesink/hivesink/storage"
)

// well answers every operation as a store does that has one object of four
// bytes, "text", and one upload of one part.
func well(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	switch {
	case r.Method == http.MethodGet && q.Has("list-type"):
		fmt.Fprint(w, `<ListBucketResult><Name>bkt</Name><Contents><Key>dir/name</Key><Size>4</Size></Contents></ListBucketResult>`)
	case r.Method == http.MethodGet && q.Has("uploadId"):
		fmt.Fprintf(w, `<ListPartsResult><UploadId>%s</UploadId><Part><ETag>"p"</ETag><PartNumber>1</PartNumber></Part></ListPartsResult>`, q.Get("uploadId"))
	case r.Method == http.MethodPost && q.Has("uploads"):
		fmt.Fprint(w, `<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>`)
	case r.Method == http.MethodPost && q.Has("uploadId"):
		fmt.Fprint(w, `<CompleteMultipartUploadResult><ETag>"e"</ETag></CompleteMultipartUploadResult>`)
	case r.Method == http.MethodPut && r.Header.Get("X-Amz-Copy-Source") != "":
		fmt.Fprint(w, `<CopyPartResult><ETag>"p"</ETag></CopyPartResult>`)
	case r.Method == http.MethodPut:
		w.Header().Set("ETag", `"e"`)
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	default: // GET and HEAD of the object
		w.Header().Set("ETag", `"e"`)
		w.Header().Set("Content-Length", "4")
		if r.Header.Get("Range") != "" {
			w.Header().Set("Content-Range", "bytes 0-3/4")
			w.WriteHeader(http.StatusPartialContent)
		}
		if r.Method == http.MethodGet {
			fmt.Fprint(w, "text")
		}
	}
}

// operations are all that believe what an answer says.
var operations = map[string]func(f *FS) error{
	"PutObject": func(f *FS) error { return f.Make("/dir/name", []byte("text")) },
	"GetObject": func(f *FS) error {
		data, err := f.ReadFile("/dir/name")
		return expect(err, string(data), "text")
	},
	"GetObject of a range": func(f *FS) error {
		r, err := f.Open("/dir/name")
		if err != nil {
			return err
		}
		p := make([]byte, 4)
		_, err = r.ReadAt(p, 0)
		return expect(err, string(p), "text")
	},
	"HeadObject": func(f *FS) error {
		info, err := f.Stat("/dir/name")
		return expect(err, info.Size, 4)
	},
	"ListObjectsV2": func(f *FS) error {
		infos, err := f.List("/dir")
		return expect(err, len(infos), 1)
	},
	"ListObjectsV2 after a name": func(f *FS) error {
		infos, err := f.ListAfter("/dir", "a", 1)
		return expect(err, len(infos), 1)
	},
	"CreateMultipartUpload": func(f *FS) error {
		id, err := f.Upload(context.Background(), "/dir/name", strings.NewReader("text"), 4)
		return expect(err, id, "u")
	},
	"UploadPart": func(f *FS) error {
		part, err := f.sendPart(context.Background(), "dir/name", "u", 1, section("text"), 4)
		return expect(err, deref(part.ETag), `"p"`, `"e"`)
	},
	"UploadPartCopy": func(f *FS) error {
		part, err := f.copyPart(context.Background(), "dir/name", "u", 1, "bkt/from", "bytes=0-3")
		return expect(err, deref(part.ETag), `"p"`)
	},
	"ListParts": func(f *FS) error {
		parts, _, err := f.listParts("dir/name", "u")
		return expect(err, len(parts), 1)
	},
	"CompleteMultipartUpload": func(f *FS) error {
		f.sent["u"] = sentUpload{"dir/name", []sentPart{{}}}
		return f.Complete("/dir/name", "u")
	},
}

// TestEmptyAnswers: a 200 with nothing in it, which the SDK takes for success,
// proves nothing (X5). It is asked again.
func TestEmptyAnswers(t *testing.T) {
	for name, do := range operations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, n := answers(t, say(200, ""), well)
			if err := do(f); err != nil || n.Load() < 2 {
				t.Errorf("then answered well: %d requests, %v", n.Load(), err)
			}
			f, n = answers(t, say(200, ""))
			fedUp(f, n, 1)
			if err := do(f); err == nil || n.Load() < 2 {
				t.Errorf("never answered: %d requests, %v", n.Load(), err)
			}
		})
	}
}

// TestCutAnswers: a connection that breaks within an answer is no answer,
// whatever its status said.
func TestCutAnswers(t *testing.T) {
	for name, do := range operations {
		f, n := answers(t, cutShort(t), well)
		if err := do(f); err != nil || n.Load() < 2 {
			t.Errorf("%s: %d requests, %v", name, n.Load(), err)
		}
	}
}

// cutShort answers well, up to the middle of the body, or of the headers when
// there is none.
func cutShort(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		whole := &kept{header: make(http.Header), status: 200}
		well(whole, r)
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		var b bytes.Buffer
		fmt.Fprintf(&b, "HTTP/1.1 %d OK\r\n", whole.status)
		if whole.body.Len() > 0 {
			whole.header.Set("Content-Length", strconv.Itoa(whole.body.Len()))
			_ = whole.header.Write(&b)
			b.WriteString("\r\n")
			b.Write(whole.body.Bytes()[:whole.body.Len()/2])
		}
		_, _ = c.Write(b.Bytes())
	}
}

type kept struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (k *kept) Header() http.Header         { return k.header }
func (k *kept) WriteHeader(status int)      { k.status = status }
func (k *kept) Write(p []byte) (int, error) { return k.body.Write(p) }

// TestEndlessLists: a list that goes on, and not where, ends.
func TestEndlessLists(t *testing.T) {
	const more = `<IsTruncated>true</IsTruncated>`
	for name, text := range map[string]string{
		"no marker":       ``,
		"the same marker": `<NextPartNumberMarker>7</NextPartNumberMarker>`,
	} {
		f, _ := answers(t, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `<ListPartsResult><UploadId>u</UploadId>%s%s</ListPartsResult>`, more, text)
		})
		if _, _, err := f.listParts("name", "u"); err == nil || !strings.Contains(err.Error(), "not where") {
			t.Errorf("parts, %s: %v", name, err)
		}
	}
	f, _ := answers(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `<ListBucketResult><Name>bkt</Name>%s</ListBucketResult>`, more)
	})
	if _, err := f.List("/dir"); err == nil || !strings.Contains(err.Error(), "not where") {
		t.Errorf("objects: %v", err)
	}
}

// TestNoPartNumber: a part without a number cannot be completed.
func TestNoPartNumber(t *testing.T) {
	f, n := answers(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `<ListPartsResult><UploadId>u</UploadId><Part><ETag>"p"</ETag></Part><Part><ETag>"q"</ETag></Part></ListPartsResult>`)
	}, well)
	if err := f.Complete("/dir/name", "u"); err != nil || n.Load() != 3 {
		t.Errorf("%d requests, %v", n.Load(), err)
	}
}

// TestOtherRange: bytes from elsewhere are not taken for those that were asked
// for.
func TestOtherRange(t *testing.T) {
	const size = 3 << 20
	var first bool
	f, _ := answers(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"e"`)
		if !first {
			first = true
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", size-tailBytes, size-1, size))
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(make([]byte, tailBytes))
			return
		}
		_, _ = w.Write(make([]byte, size)) // the range is ignored
	})
	f.o.RetryFor = 150 * time.Millisecond
	r, err := f.Open("/name")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadAt(make([]byte, 8), 1<<20+5); err == nil {
		t.Error("the first bytes of the object are taken for those in its middle")
	}
}

func section(s string) *io.SectionReader {
	return io.NewSectionReader(strings.NewReader(s), 0, int64(len(s)))
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func expect[T comparable](err error, got T, want ...T) error {
	if err != nil {
		return err
	}
	for _, w := range want {
		if got == w {
			return nil
		}
	}
	return fmt.Errorf("it is %v, want %v", got, want)
}

// TestStrayKeys: a key with an element that names do not have is an error that
// names it, beside what else there is. Followed, it would lead to its own
// directory for ever.
func TestStrayKeys(t *testing.T) {
	for _, stray := range []string{
		`<CommonPrefixes><Prefix>dir//</Prefix></CommonPrefixes>`,
		`<CommonPrefixes><Prefix>dir/./</Prefix></CommonPrefixes>`,
		`<CommonPrefixes><Prefix>dir/../</Prefix></CommonPrefixes>`,
		`<Contents><Key>dir/..</Key><Size>4</Size></Contents>`,
	} {
		f, _ := answers(t, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `<ListBucketResult><Name>bkt</Name><Contents><Key>dir/</Key><Size>0</Size></Contents>%s<Contents><Key>dir/name</Key><Size>4</Size></Contents></ListBucketResult>`, stray)
		})
		_, key, _ := strings.Cut(stray, "dir/")
		key, _, _ = strings.Cut("dir/"+key, "<")
		infos, err := f.List("/dir")
		var strays *storage.StrayError
		if !errors.As(err, &strays) || fmt.Sprint(strays.Keys) != "["+key+"]" || !strings.Contains(err.Error(), `"`+key+`"`) {
			t.Errorf("%s: %v", key, err)
		}
		if len(infos) != 1 || infos[0].Name != "name" {
			t.Errorf("%s: beside it is %v", key, infos)
		}
	}
}
