package s3fs

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
)

// TestProbe: what a store does not do is found out before anything depends on it,
// and is an error that names the remedy.
func TestProbe(t *testing.T) {
	composed := func(key string) string { return strings.ReplaceAll(key, "e\u0301", "\u00e9") }
	decoded := func(key string) string {
		if k, err := url.PathUnescape(key); err == nil {
			return k
		}
		return key
	}
	for name, c := range map[string]struct {
		s     *fake
		words string // "": nothing is wrong
	}{
		"good":                        {&fake{}, ""},
		"409 for a taken name":        {&fake{conflicts: true}, ""},
		"start-after is not known":    {&fake{anywhere: true}, ""},
		"ends are not cut":            {&fake{strict: true}, ""},
		"bodies are taken plain":      {&fake{plain: true}, ""},
		"uploads are gone unsaid":     {&fake{forgets: true}, ""},
		"conditions are ignored":      {&fake{ignores: true}, "overwrites where it must not"},
		"conditions are checked late": {&fake{late: rivals}, "at the same time 8 were not refused"},
		"new objects are not listed":  {&fake{hides: true}, "listing does not have the object"},
		"names are decoded":           {&fake{listed: decoded}, "listing does not have the object"},
		"names have no case":          {&fake{fold: strings.ToLower}, "upper and lower case"},
		"names are normalized":        {&fake{fold: composed}, "Unicode normalization"},
	} {
		for _, encrypted := range []bool{false, true} {
			err := c.s.start(t, encrypted).Probe(context.Background(), "/t/.hivesink")
			switch {
			case c.words == "" && err != nil:
				t.Errorf("%s: %v", name, err)
			case c.words == "":
				if len(c.s.objects)+len(c.s.uploads) > 0 {
					t.Errorf("%s: it leaves %v, %v", name, c.s.objects, c.s.uploads)
				}
			case err == nil || !strings.Contains(err.Error(), c.words) || fault.ClassOf(err) != fault.Config || hintOf(err) == "":
				t.Errorf("%s: class %s, hint %q: %v", name, fault.ClassOf(err), hintOf(err), err)
			}
		}
	}
}

// TestShortEnds: an object that is shorter than the end which is asked for is
// read all the same, where a store gives no more of an end than there is; an
// empty one is empty.
func TestShortEnds(t *testing.T) {
	for _, mute := range []bool{false, true} {
		for _, text := range []string{"", "text"} {
			f := (&fake{strict: true, mute: mute}).start(t, false)
			if err := f.Overwrite("/name", []byte(text)); err != nil {
				t.Fatal(err)
			}
			r, err := f.Open("/name")
			if err != nil {
				t.Errorf("%q: %v", text, err)
				continue
			}
			p := make([]byte, len(text))
			_, err = r.ReadAt(p, 0)
			if r.Size() != int64(len(text)) || string(p) != text || err != nil {
				t.Errorf("%q: %q, size %d, %v", text, p, r.Size(), err)
			}
		}
	}
}

// TestNoCopy: where the store does not copy into uploads the bytes go by way of
// this process.
func TestNoCopy(t *testing.T) {
	f := (&fake{noCopy: true}).start(t, false)
	if err := f.Make("/from", []byte("text")); err != nil {
		t.Fatal(err)
	}
	id, err := f.UploadCopy(context.Background(), "/to", "/from", 4)
	if err == nil {
		err = f.Complete("/to", id)
	}
	if data, rerr := f.ReadFile("/to"); err != nil || rerr != nil || string(data) != "text" {
		t.Errorf("%q, %v, %v", data, err, rerr)
	}
}

// TestTwiceListed: a directory that a listing has on two pages is one.
func TestTwiceListed(t *testing.T) {
	f := (&fake{twice: true}).start(t, false)
	if err := f.Make("/dir/p=1/x", nil); err != nil {
		t.Fatal(err)
	}
	if infos, err := f.List("/dir"); err != nil || len(infos) != 1 || !infos[0].Dir {
		t.Errorf("%v, %v", infos, err)
	}
}

// TestGoneUnsaid: of an upload that is gone some stores say that it has no parts.
func TestGoneUnsaid(t *testing.T) {
	f := (&fake{forgets: true}).start(t, false)
	id, err := f.Upload(context.Background(), "/name", strings.NewReader("text"), 4)
	if err == nil {
		err = f.Abort("/name", id)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Uploaded("/name", id); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("its size: %v", err)
	}
	if err := f.Complete("/name", id); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("completing it: %v", err)
	}
}
