package s3fs

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
)

// probeName ends the name of the object of Probe: it has what the names of
// partitions have. The other two are names that some stores take for the same.
const (
	probeName = "-a=%3A b+%2F&e\u0301"
	otherCase = "-A=%3A B+%2F&E\u0301"
	otherForm = "-a=%3A b+%2F&\u00e9"
)

// rivals is how many make the object of Probe at the same time.
const rivals = 8

// Probe does on an object of its own what the ledger and publishing rely on
// (storage O1): of many makers of a name one is not refused, by Put and by
// Complete, also when they come at the same time; and a listing has what was
// made, and under that name.
func (f *FS) Probe(ctx context.Context, dir string) error {
	var bits [8]byte
	_, _ = rand.Read(bits[:]) // never fails
	before := storage.ProbePrefix + hex.EncodeToString(bits[:])
	name := path.Join(dir, before+probeName)
	defer f.Remove(name) // as well as that goes; the next owner sweeps
	content, made, err := f.race(name)
	if err != nil {
		return err
	}
	if err := f.Make(name, []byte("2")); !errors.Is(err, storage.ErrExist) {
		return f.probeError("PUT with If-None-Match: * over an object", err)
	}
	if made != 1 {
		return fault.New(fault.Config, probeHint, "table.location: of %d that sent PUT with If-None-Match: * for one object at the same time %d were not refused, in place of one", rivals, made)
	}
	if err := f.probeOthers(path.Join(dir, before)); err != nil {
		return err
	}
	if err := f.probeListing(dir, before, name); err != nil {
		return err
	}
	id, err := f.Upload(ctx, name, strings.NewReader("3"), 1)
	if err != nil {
		return f.probeError("a multipart upload", err)
	}
	err = f.Complete(name, id)
	if aerr := f.Abort(name, id); aerr != nil && errors.Is(err, storage.ErrExist) {
		return f.probeError("aborting a multipart upload", aerr)
	}
	if !errors.Is(err, storage.ErrExist) {
		return f.probeError("CompleteMultipartUpload with If-None-Match: * over an object", err)
	}
	data, err := f.ReadFile(name)
	if err == nil && string(data) != content {
		return fault.New(fault.Config, "is there something between it and us that changes requests? Else use another store (docs/s3.md)",
			"table.location: the store does not give back what was written: %.40q was, %.40q is there", content, data)
	}
	return err
}

// race has several make an object, and says how many of them were not refused, and
// what the last of these has put into it.
func (f *FS) race(name string) (content string, made int, err error) {
	contents := make([]string, rivals)
	errs := make([]error, rivals)
	var g sync.WaitGroup
	for i := range rivals {
		contents[i] = fmt.Sprintf("maker %d", i)
		g.Go(func() { errs[i] = f.Make(name, []byte(contents[i])) }) // joined by Wait below
	}
	g.Wait()
	for i, e := range errs {
		switch {
		case e == nil:
			made, content = made+1, contents[i]
		case !errors.Is(e, storage.ErrExist):
			return "", 0, f.probeError("PUT with If-None-Match: *", e)
		}
	}
	return content, made, nil
}

// probeListing looks whether a listing has the object, and nothing that was not
// asked for.
func (f *FS) probeListing(dir, before, name string) error {
	infos, err := f.ListAfter(dir, before, 1)
	if err != nil {
		return f.probeError("ListObjectsV2 with start-after", err)
	}
	if len(infos) != 1 || infos[0].Name != path.Base(name) {
		return fault.New(fault.Config, "use a store whose listings have every object from the moment it is made, under the name it was made with (docs/s3.md)",
			"table.location: the store's listing does not have the object %q that was just made: after %q it has %.200q", path.Base(name), before, names(infos))
	}
	return nil
}

// probeOthers looks whether the store takes two names for one: rows of one
// partition would come into the directory of another.
func (f *FS) probeOthers(begin string) error {
	for other, what := range map[string]string{otherCase: "upper and lower case", otherForm: "composed and decomposed letters (Unicode normalization)"} {
		_, err := f.Stat(begin + other)
		switch {
		case err == nil:
			return fault.New(fault.Config, "partitions could be mixed up there; let the store take names as they are (rclone: --no-unicode-normalization, and a file system that tells case), or use another (docs/s3.md)",
				"table.location: the store takes names that differ in %s only for the same", what)
		case !errors.Is(err, storage.ErrNotExist):
			return f.probeError("HEAD of an object that is not there", err)
		}
	}
	return nil
}

func names(infos []storage.Info) []string {
	var list []string
	for _, i := range infos {
		list = append(list, i.Name)
	}
	return list
}

const probeHint = "two processes could overwrite each other's work there; use a store that keeps conditional writes (docs/s3.md)"

func (f *FS) probeError(what string, err error) error {
	if err == nil {
		return fault.New(fault.Config, probeHint, "table.location: the store overwrites where it must not: %s was not refused", what)
	}
	if errors.Is(err, storage.ErrPermission) {
		return fault.Wrap(fault.Config, "docs/s3.md has the permissions that are needed", fmt.Errorf("table.location: %s: %w", what, err))
	}
	if passes(err) {
		return fmt.Errorf("try the store: %s: %w", what, err)
	}
	return fault.Wrap(fault.Config, probeHint, fmt.Errorf("table.location: the store does not know %s: %w", what, err))
}
