package s3fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/hivesink/hivesink/storage"
)

// key is the key of a name: names begin with a slash, keys do not.
func key(name string) (string, error) {
	if err := storage.CheckName(name); err != nil {
		return "", err
	}
	return name[1:], nil
}

// Limits are S3's: a key has 1024 bytes at most, a name one more.
func (f *FS) Limits() storage.Limits { return storage.Limits{Bytes: 1 + 1024, XML: true} }

// background is the context of the calls that have none: their requests are
// bounded by themselves (X1).
func background() context.Context { return context.Background() }

// ReadFile reads a whole object.
func (f *FS) ReadFile(name string) ([]byte, error) {
	k, err := key(name)
	if err != nil {
		return nil, wrap(storage.OpReadFile, name, err)
	}
	var data []byte
	err = f.do(background(), "GetObject", k, func(ctx context.Context) error {
		out, err := f.client.GetObject(ctx, &s3.GetObjectInput{Bucket: f.bucket, Key: &k})
		if err != nil {
			return err
		}
		defer out.Body.Close()
		if data, err = io.ReadAll(out.Body); err != nil {
			return err
		}
		return saidObject(out.ETag, out.LastModified)
	})
	return data, wrap(storage.OpReadFile, name, err)
}

// Stat describes an object, or a directory that has something in it.
func (f *FS) Stat(name string) (storage.Info, error) {
	k, err := key(name)
	if err != nil {
		return storage.Info{}, wrap(storage.OpStat, name, err)
	}
	info := storage.Info{Name: path.Base(name)}
	if k == "" {
		info.Dir = true
		return info, nil
	}
	err = f.do(background(), "HeadObject", k, func(ctx context.Context) error {
		out, err := f.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: f.bucket, Key: &k})
		if errors.Is(plain(err), storage.ErrNotExist) {
			return f.sayingSo(ctx, k, err)
		}
		if err != nil {
			return err
		}
		info.Size, info.ModTime = aws.ToInt64(out.ContentLength), aws.ToTime(out.LastModified)
		if out.ContentLength == nil {
			return said("the size of the object", false)
		}
		return saidObject(out.ETag, out.LastModified)
	})
	if errors.Is(err, storage.ErrNotExist) {
		var below bool
		var lerr error
		if !errors.Is(err, errNothing) {
			below, lerr = f.below(k)
		}
		switch {
		case lerr != nil:
			err = lerr
		case below:
			return storage.Info{Name: path.Base(name), Dir: true}, nil
		}
	}
	if err != nil {
		return storage.Info{}, wrap(storage.OpStat, name, err)
	}
	return info, nil
}

// errNothing: no key begins with the one that was asked for.
var errNothing = fmt.Errorf("nothing begins with that name: %w", storage.ErrNotExist)

// sayingSo takes the answer that there is no object only if a listing does not
// have it: the answer to a HEAD has no body, and "not found" may be a proxy's
// that does not reach the store (X5).
func (f *FS) sayingSo(ctx context.Context, k string, err error) error {
	out, lerr := f.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: f.bucket, Prefix: &k, MaxKeys: aws.Int32(1)})
	if lerr == nil {
		lerr = said("the bucket that it lists", aws.ToString(out.Name) == f.o.Bucket)
	}
	switch {
	case lerr != nil:
		return lerr
	case len(out.Contents) == 0 && !aws.ToBool(out.IsTruncated):
		return errNothing
	case len(out.Contents) > 0 && aws.ToString(out.Contents[0].Key) == k: // the first key of its prefix
		return said("that there is the object which a listing has", false)
	}
	return err
}

// below says whether there is an object in the directory of a key.
func (f *FS) below(k string) (found bool, err error) {
	prefix := k + "/"
	err = f.pages(&s3.ListObjectsV2Input{Bucket: f.bucket, Prefix: &prefix, MaxKeys: aws.Int32(1)}, func(p *s3.ListObjectsV2Output) (bool, error) {
		found = len(p.Contents) > 0
		return !found, nil
	})
	return found, err
}

// nextPage gives no page that does not name the bucket (X5): an empty one would
// prove that nothing is there.
func (f *FS) nextPage(in *s3.ListObjectsV2Input) (out *s3.ListObjectsV2Output, err error) {
	err = f.do(background(), "ListObjectsV2", *in.Prefix, func(ctx context.Context) (err error) {
		if out, err = f.client.ListObjectsV2(ctx, in); err != nil {
			return err
		}
		return said("the bucket that it lists", aws.ToString(out.Name) == f.o.Bucket)
	})
	return out, err
}

// text is nil for the empty text, which some stores take for something else.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// pageKeys is what S3 gives in one answer at most.
const pageKeys = 1000

// all is a listing of whatever begins with a prefix.
func (f *FS) all(prefix, delimiter string) *s3.ListObjectsV2Input {
	return &s3.ListObjectsV2Input{Bucket: f.bucket, Prefix: &prefix, Delimiter: text(delimiter), MaxKeys: aws.Int32(pageKeys)}
}

// pages calls fn for each page of a listing while it wants more. A page may have
// fewer objects than were asked for, or none, and not be the last: what was
// deleted in a bucket with versions counts.
func (f *FS) pages(in *s3.ListObjectsV2Input, fn func(*s3.ListObjectsV2Output) (more bool, err error)) error {
	for {
		out, err := f.nextPage(in)
		if err != nil {
			return err
		}
		if more, err := fn(out); err != nil || !more || !aws.ToBool(out.IsTruncated) {
			return err
		}
		if aws.ToString(out.NextContinuationToken) == "" || aws.ToString(out.NextContinuationToken) == aws.ToString(in.ContinuationToken) {
			return fmt.Errorf("the store says that its listing of %s goes on, and not where", *in.Prefix)
		}
		in.ContinuationToken = out.NextContinuationToken
	}
}

// List describes what is directly below dir, sorted (S8).
func (f *FS) List(dir string) ([]storage.Info, error) {
	prefix, err := dirKey(dir)
	if err != nil {
		return nil, wrap(storage.OpList, dir, err)
	}
	var infos []storage.Info
	var strays []string
	err = f.pages(f.all(prefix, "/"), func(p *s3.ListObjectsV2Output) (bool, error) {
		for i := range p.Contents {
			switch info, ok := describe(&p.Contents[i], prefix); {
			case ok && noName(info.Name):
				strays = append(strays, aws.ToString(p.Contents[i].Key))
			case ok:
				infos = append(infos, info)
			}
		}
		for _, c := range p.CommonPrefixes {
			info := storage.Info{Name: strings.TrimSuffix(strings.TrimPrefix(aws.ToString(c.Prefix), prefix), "/"), Dir: true}
			if noName(info.Name) {
				strays = append(strays, aws.ToString(c.Prefix))
				continue
			}
			infos = append(infos, info)
		}
		return true, nil
	})
	switch {
	case err != nil:
		return nil, wrap(storage.OpList, dir, err)
	case len(strays) > 0:
		err = &storage.StrayError{Keys: strays}
	case len(infos) == 0 && dir != "/":
		err = syscall.ENOENT
	}
	slices.SortFunc(infos, func(a, b storage.Info) int { return strings.Compare(a.Name, b.Name) })
	// A directory that a page ends in is on the next one too, with some stores.
	infos = slices.CompactFunc(infos, func(a, b storage.Info) bool { return a.Name == b.Name && a.Dir == b.Dir })
	return infos, wrap(storage.OpList, dir, err)
}

// ListAfter describes the first n objects in dir whose names sort after this
// one.
func (f *FS) ListAfter(dir, after string, n int) ([]storage.Info, error) {
	prefix, err := dirKey(dir)
	if err != nil {
		return nil, wrap(storage.OpList, dir, err)
	}
	in := f.all(prefix, "/")
	in.StartAfter, in.MaxKeys = text(prefix+after), aws.Int32(int32(min(n, pageKeys)))
	var infos []storage.Info
	err = f.pages(in, func(p *s3.ListObjectsV2Output) (bool, error) {
		for i := range p.Contents {
			// Some stores begin at the very key, or where they like.
			if info, ok := describe(&p.Contents[i], prefix); ok && info.Name > after && len(infos) < n {
				infos = append(infos, info)
			}
		}
		in.MaxKeys = aws.Int32(pageKeys)
		return len(infos) < n, nil
	})
	return infos, wrap(storage.OpList, dir, err)
}

// noName says whether an element of a key is one that names do not have.
func noName(element string) bool { return element == "" || element == "." || element == ".." }

func dirKey(dir string) (prefix string, err error) {
	k, err := key(dir)
	if err != nil || k == "" {
		return "", err
	}
	return k + "/", nil
}

// describe leaves out the empty objects that stand for directories in some
// programs.
func describe(o *types.Object, prefix string) (storage.Info, bool) {
	name := strings.TrimPrefix(aws.ToString(o.Key), prefix)
	return storage.Info{Name: name, Size: aws.ToInt64(o.Size), ModTime: aws.ToTime(o.LastModified)}, name != "" && !strings.HasSuffix(name, "/")
}

// Remove deletes an object. One that is not there is fine: S3 does not tell.
func (f *FS) Remove(name string) error {
	k, err := key(name)
	if err == nil {
		f.cache.dropKey(k)
		err = f.do(background(), "DeleteObject", k, func(ctx context.Context) error {
			_, err := f.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: f.bucket, Key: &k})
			return err
		})
	}
	if errors.Is(err, storage.ErrNotExist) {
		err = nil // some stores do tell
	}
	return wrap(storage.OpRemove, name, err)
}

// RemoveTree deletes an object and everything below its name.
func (f *FS) RemoveTree(name string) error {
	prefix, err := dirKey(name)
	if err == nil && prefix == "" {
		err = syscall.EBUSY // the whole bucket
	}
	if err != nil {
		return wrap(storage.OpRemove, name, err)
	}
	if err := f.Remove(name); err != nil {
		return err
	}
	return wrap(storage.OpRemove, name, f.pages(f.all(prefix, ""), func(p *s3.ListObjectsV2Output) (bool, error) {
		for i := range p.Contents {
			// One by one: what a store answers to many at once is a list of
			// errors of its own, and some do not have it.
			if err := f.Remove("/" + aws.ToString(p.Contents[i].Key)); err != nil {
				return false, err
			}
		}
		return true, nil
	}))
}

// Mkdir has nothing to do: a directory is there when something is in it.
func (f *FS) Mkdir(name string) error {
	_, err := key(name)
	return wrap(storage.OpMkdir, name, err)
}

// SyncDir has nothing to do: what was answered is durable.
func (f *FS) SyncDir(dir string) error {
	_, err := key(dir)
	return wrap(storage.OpSyncDir, dir, err)
}

// Rename is not to be had: copying and deleting is no rename, neither in one
// step nor exclusive.
func (f *FS) Rename(oldName, newName string) error { return none(storage.OpRename, oldName, newName) }

// Replace is not to be had; see Overwrite.
func (f *FS) Replace(oldName, newName string) error { return none(storage.OpReplace, oldName, newName) }

// Lock is not to be had: ownership is decided by the log.
func (f *FS) Lock(name string) (io.Closer, error) { return nil, none(storage.OpLock, name, "") }

func none(op storage.OpKind, name, to string) error {
	err := storage.CheckName(name)
	if err == nil && to != "" {
		err = storage.CheckName(to)
	}
	if err == nil {
		err = errors.ErrUnsupported
	}
	return &storage.Error{Op: op, Name: name, To: to, Err: err}
}

// busyError is a conflict that a further try clears up.
type busyError struct{ err error }

func (e *busyError) Error() string { return e.err.Error() }
