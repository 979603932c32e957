package s3fs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
)

// TestForeignNotFound: "not found" of a proxy that has no store behind it just
// now is no answer about an object.
func TestForeignNotFound(t *testing.T) {
	for kind, body := range map[string]string{
		"empty": "", "text": "default backend - 404", "page": "<html><body>404</body></html>", "no XML": "<html><br>404</html>",
	} {
		for name, do := range operations {
			t.Run(kind+", "+name, func(t *testing.T) {
				t.Parallel()
				f, n := answers(t, func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(http.StatusNotFound)
					fmt.Fprint(w, body)
				}, well)
				if err := do(f); err != nil || n.Load() < 2 {
					t.Errorf("%d requests, %v", n.Load(), err)
				}
			})
		}
	}
}

// TestNotThere: what the store itself says is believed at once.
func TestNotThere(t *testing.T) {
	var n atomic.Int64
	f, _ := answers(t, func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		if r.URL.Query().Has("list-type") {
			fmt.Fprint(w, `<ListBucketResult><Name>bkt</Name></ListBucketResult>`)
			return
		}
		say(404, "NoSuchKey")(w, r)
	})
	if _, err := f.Stat("/dir/name"); !errors.Is(err, storage.ErrNotExist) || n.Load() != 2 {
		t.Errorf("stat: %d requests, %v", n.Load(), err)
	}
	if _, err := f.ReadFile("/dir/name"); !errors.Is(err, storage.ErrNotExist) || n.Load() != 3 {
		t.Errorf("read: %d requests, %v", n.Load(), err)
	}
}

// TestKeysAreNoAnswer: a file of a key that is not there for a moment, while it is
// rotated, and a "not found" of who gives credentials out, say nothing about
// objects. They are waited for.
func TestKeysAreNoAnswer(t *testing.T) {
	_, missing := os.Open("/nowhere")
	for name, broken := range map[string]error{
		"file":      fault.Wrap(fault.Config, "", fmt.Errorf("s3.secret_key: %w", missing)),
		"not found": &s3Error{err: errors.New("404"), text: "no role", is: storage.ErrNotExist},
	} {
		for op, do := range operations {
			t.Run(name+", "+op, func(t *testing.T) {
				t.Parallel()
				f, n := answers(t, well)
				var tries atomic.Int64
				o := options("")
				o.keysFor = time.Nanosecond
				o.SecretKey = func() (string, error) {
					if tries.Add(1) == 1 {
						return "", broken
					}
					return planted, nil
				}
				f.client = withKeys(f, &keys{o})
				if err := do(f); err != nil || n.Load() < 1 || tries.Load() < 2 {
					t.Errorf("%d requests, keys asked %d times: %v", n.Load(), tries.Load(), err)
				}
			})
		}
	}
}

// TestKeysAtTheStart: there they are an error at once.
func TestKeysAtTheStart(t *testing.T) {
	_, missing := os.Open("/nowhere")
	o := options("http://127.0.0.1:1")
	asked := 0
	o.SecretKey = func() (string, error) {
		asked++
		return "", fault.Wrap(fault.Config, "", fmt.Errorf("s3.secret_key: %w", missing))
	}
	_, err := New(context.Background(), o)
	if fault.ClassOf(err) != fault.Config || asked != 1 {
		t.Errorf("class %s, asked %d times: %v", fault.ClassOf(err), asked, err)
	}
}

// TestEmptyPage: in a bucket with versions a page of a listing may be empty and
// not be the last. That nothing follows is known after the last one only.
func TestEmptyPage(t *testing.T) {
	f, _ := answers(t,
		func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `<ListBucketResult><Name>bkt</Name><IsTruncated>true</IsTruncated><NextContinuationToken>n</NextContinuationToken></ListBucketResult>`)
		},
		func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("continuation-token") == "n" {
				well(w, r)
			}
		})
	infos, err := f.ListAfter("/dir", "a", 1)
	if err != nil || len(infos) != 1 || infos[0].Name != "name" {
		t.Errorf("%v, %v", infos, err)
	}
}

// TestClock: a machine whose clock was set while the store is used is refused
// once; the next try goes by the store's clock.
func TestClock(t *testing.T) {
	for name, code := range map[string]string{"PutObject": "RequestTimeTooSkewed", "HeadObject": ""} {
		there := time.Now().Add(time.Hour)
		var signed atomic.Value
		f, n := answers(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Date", there.UTC().Format(http.TimeFormat))
			say(403, code)(w, r)
		}, func(w http.ResponseWriter, r *http.Request) {
			signed.Store(r.Header.Get("X-Amz-Date"))
			well(w, r)
		})
		if err := operations[name](f); err != nil || n.Load() != 2 {
			t.Errorf("%s: %d requests, %v", name, n.Load(), err)
			continue
		}
		at, err := time.Parse("20060102T150405Z", signed.Load().(string))
		if err != nil || at.Sub(there).Abs() > 5*time.Minute {
			t.Errorf("%s: signed for %s, it is %s there: %v", name, at, there, err)
		}
	}
}

// withKeys is the client of f with other credentials, which are asked each time.
func withKeys(f *FS, k aws.CredentialsProvider) *s3.Client {
	o := f.client.Options()
	f.logins = &logins{of: k}
	o.Credentials = f.logins
	return s3.New(o)
}
