//go:build integration

package s3

import (
	"net/http"
	"path"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/test/mainjob"
)

// off is a place with policy off: each part is an upload to its final name.
func off(t *testing.T, direct, job string) mainjob.Place {
	p := jobPlace(t, direct, job)
	p.Policy, p.Readers = "off", nil       // the engines read what other tests make
	p.Config += "\nrolling: {rows: 150}\n" // many files, also where a busy machine makes few checkpoints
	return p
}

// TestOffOneUpload counts what a store is asked for by a job with policy off: one
// upload a file, no copy, no part in the staging directory.
func TestOffOneUpload(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		staged := &fault{op: "PutObject", glob: "*.part", times: 1000, do: (*proxy).forward, mayRest: true}
		bundled := &fault{op: "PutObject", glob: "*.bundle", times: 1000, do: (*proxy).forward, mayRest: true}
		begun := &fault{op: "CreateMultipartUpload", glob: "part-*", times: 1000, do: (*proxy).forward}
		p := newProxy(t, url, staged, bundled, begun)
		at := off(t, url, p.URL)
		mainjob.Plain(t, at, 6_000, 4_000)
		files := 0
		must(t, storage.Walk(at.FS, at.Root, func(name string, i storage.Info) error {
			if !i.Dir && !strings.Contains(name, layout.MetaDir) && path.Ext(name) == layout.PartExt {
				files++
			}
			return nil
		}))
		p.mu.Lock()
		defer p.mu.Unlock()
		if files < 20 || begun.fired != files || p.counts["CompleteMultipartUpload"] != files+1 { // one of the probe
			t.Errorf("%d files, %d uploads, %d completions", files, begun.fired, p.counts["CompleteMultipartUpload"])
		}
		if n := p.counts["CopyObject"] + p.counts["UploadPartCopy"] + staged.fired + bundled.fired; n > 0 {
			t.Errorf("%d copies and staged parts: %v", n, p.counts)
		}
		t.Logf("%d files: %v", files, p.counts)
	})
}

// TestOffWithFaults is TestJobWithFaults with policy off.
func TestOffWithFaults(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		p := newProxy(t, url,
			&fault{op: "PutObject", glob: "*.uploads", nth: 2, do: loseAnswer},
			&fault{op: "PutObject", glob: "0000*", nth: 5, do: loseAnswer}, // log records
			&fault{op: "CreateMultipartUpload", glob: "part-*", nth: 4, do: loseAnswer},
			&fault{op: "UploadPart", nth: 5, do: loseAnswer},
			&fault{op: "CompleteMultipartUpload", glob: "part-*", nth: 2, do: loseAnswer},
			&fault{op: "CompleteMultipartUpload", glob: "part-*", nth: 5, do: twice},
			&fault{op: "CompleteMultipartUpload", glob: "part-*", nth: 8, do: refuse(http.StatusConflict, "ConditionalRequestConflict")},
			&fault{op: "CompleteMultipartUpload", glob: "part-*", nth: 10, do: refuse(http.StatusNotFound, "NoSuchUpload")},
			&fault{op: "DeleteObject", glob: "*.uploads", nth: 2, do: loseAnswer})
		mainjob.Plain(t, off(t, url, p.URL), 6_000, 4_000)
	})
}

// TestOffKills is TestKills with policy off.
func TestOffKills(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		p := off(t, url, url)
		mainjob.Kills(t, p, 24_000, 8_000, 4)
		if url == stores()["versitygw"] {
			wantNoUploads(t, p.Root)
		}
	})
}

// TestOffTakeOvers is TestTakeOvers with policy off.
func TestOffTakeOvers(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		p := off(t, url, url)
		mainjob.TakeOvers(t, p, 40_000, 8_000, 2)
		if url == stores()["versitygw"] {
			wantNoUploads(t, p.Root)
		}
	})
}
