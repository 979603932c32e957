package s3fs

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestKeysWrittenAnew: keys of a file of the AWS configuration, which have no end
// that the SDK knows, expire; somebody writes the file anew. Whatever request
// meets that goes on with the new ones, and one that does not meet it looks for
// them all the same after a while.
func TestKeysWrittenAnew(t *testing.T) {
	file := filepath.Join(t.TempDir(), "credentials")
	for _, v := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"} {
		t.Setenv(v, "")
		_ = os.Unsetenv(v) // Setenv brings it back
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	write := func(t *testing.T, key string) {
		t.Helper()
		text := fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = secret\naws_session_token = token-%[1]s\n", key)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open := func(t *testing.T, every time.Duration) (f *FS, valid *atomic.Value, refused *atomic.Int64, onRefusal *atomic.Value) {
		t.Helper()
		write(t, "first")
		valid, refused, onRefusal = new(atomic.Value), new(atomic.Int64), new(atomic.Value)
		valid.Store("first")
		onRefusal.Store(func(int64) {})
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			key := valid.Load().(string)
			if !strings.Contains(r.Header.Get("Authorization"), "Credential="+key+"/") || r.Header.Get("X-Amz-Security-Token") != "token-"+key {
				onRefusal.Load().(func(int64))(refused.Add(1))
				say(http.StatusBadRequest, "ExpiredToken")(w, r)
				return
			}
			well(w, r)
		}))
		t.Cleanup(srv.Close)
		o := options(srv.URL)
		o.AccessKey, o.SecretKey, o.keysFor, o.RetryFor = nil, nil, every, time.Minute
		f, err := New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return f, valid, refused, onRefusal
	}
	for op, do := range operations {
		t.Run(op, func(t *testing.T) {
			f, valid, refused, _ := open(t, time.Hour)
			if err := do(f); err != nil {
				t.Fatal(err)
			}
			write(t, "second")
			valid.Store("second")
			if err := do(f); err != nil || refused.Load() == 0 {
				t.Fatalf("refused %d times: %v", refused.Load(), err)
			}
		})
	}
	t.Run("written late", func(t *testing.T) {
		f, valid, refused, onRefusal := open(t, time.Hour)
		onRefusal.Store(func(n int64) {
			if n == 3 {
				write(t, "second")
			}
		})
		valid.Store("second")
		if err := f.Make("/dir/late", []byte("x")); err != nil || refused.Load() < 3 {
			t.Fatalf("refused %d times: %v", refused.Load(), err)
		}
	})
	t.Run("in time", func(t *testing.T) {
		f, valid, refused, _ := open(t, time.Nanosecond)
		write(t, "second")
		valid.Store("second")
		if err := f.Make("/dir/name", []byte("x")); err != nil || refused.Load() != 0 {
			t.Fatalf("refused %d times: %v", refused.Load(), err)
		}
	})
}
