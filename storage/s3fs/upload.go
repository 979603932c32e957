package s3fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"github.com/hivesink/hivesink/storage"
)

// sentPart is a part that the store has acknowledged.
type sentPart = types.CompletedPart

// sentUpload is an upload with all its parts.
type sentUpload struct {
	key   string
	parts []sentPart
}

// Upload sends content to a hidden upload (storage O3).
func (f *FS) Upload(ctx context.Context, name string, content io.ReaderAt, size int64) (string, error) {
	id, err := f.upload(ctx, name, size, withCRC32, func(ctx context.Context, k, id string, n int32, off, length int64) (sentPart, error) {
		return f.sendPart(ctx, k, id, n, io.NewSectionReader(content, off, length), length)
	}, nil)
	return id, wrap(storage.OpWrite, name, err)
}

// UploadCopy lets the store copy the bytes of another object to a hidden upload.
func (f *FS) UploadCopy(ctx context.Context, name, from string, size int64) (string, error) {
	source, err := key(from)
	if err != nil {
		return "", wrap(storage.OpWrite, from, err)
	}
	source = escapePath(f.o.Bucket + "/" + source)
	id, err := f.upload(ctx, name, size, noChecksum, func(ctx context.Context, k, id string, n int32, off, length int64) (sentPart, error) {
		return f.copyPart(ctx, k, id, n, source, fmt.Sprintf("bytes=%d-%d", off, off+length-1))
	}, nil)
	if unknown(err) {
		return f.uploadAgain(ctx, name, from, size)
	}
	return id, wrap(storage.OpWrite, name, err)
}

// unknown says whether the store does not know a request at all.
func unknown(err error) bool {
	switch code(err) {
	case "NotImplemented", "MethodNotAllowed":
		return true
	}
	s := status(err)
	return s == http.StatusNotImplemented || s == http.StatusMethodNotAllowed
}

// uploadAgain is UploadCopy where the store does not copy into uploads: the bytes
// go by way of this process.
func (f *FS) uploadAgain(ctx context.Context, name, from string, size int64) (string, error) {
	r, err := f.Open(from)
	if err != nil {
		return "", err
	}
	defer r.Close()
	if r.Size() != size {
		return "", wrap(storage.OpWrite, name, fmt.Errorf("%s has %d bytes, not %d", from, r.Size(), size))
	}
	return f.Upload(ctx, name, r, size)
}

// checksum is what the parts of an upload are sent with.
type checksum types.ChecksumAlgorithm

const (
	withCRC32 = checksum(types.ChecksumAlgorithmCrc32)
	// noChecksum is for copies: the bytes do not leave the store, and stores
	// differ in the checksum that they give for a copied part, down to one that
	// they refuse when the upload is completed.
	noChecksum = checksum("")
)

// partFunc sends one part.
type partFunc func(ctx context.Context, key, id string, number int32, off, length int64) (sentPart, error)

// upload starts an upload and sends all its parts. started, if any, is told its
// id before the first part.
func (f *FS) upload(ctx context.Context, name string, size int64, sum checksum, send partFunc, started func(id string) error) (string, error) {
	k, err := key(name)
	if err != nil {
		return "", err
	}
	var id string
	err = f.do(ctx, "CreateMultipartUpload", k, func(ctx context.Context) error {
		out, err := f.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: f.bucket, Key: &k, ChecksumAlgorithm: types.ChecksumAlgorithm(sum)},
			func(o *s3.Options) { o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired }) // else it adds one
		if err != nil {
			return err
		}
		id = aws.ToString(out.UploadId)
		return said("the id of the upload", id != "")
	})
	if err != nil {
		return "", err
	}
	if started != nil {
		err = started(id)
	}
	var parts []sentPart
	if err == nil {
		parts, err = f.sendParts(ctx, k, id, size, send)
	}
	if err != nil {
		if aerr := f.Abort(name, id); aerr != nil {
			return "", errors.Join(err, aerr)
		}
		return "", err
	}
	f.mu.Lock()
	f.sent[id] = sentUpload{k, parts}
	f.mu.Unlock()
	return id, nil
}

func (f *FS) sendParts(ctx context.Context, k, id string, size int64, send partFunc) ([]sentPart, error) {
	each := f.o.PartSize
	for (size+each-1)/each > maxParts {
		each *= 2
	}
	n := max(1, int((size+each-1)/each))
	parts := make([]sentPart, n)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(f.o.Concurrency)
	for i := range n {
		g.Go(func() (err error) { // joined by Wait below
			off := int64(i) * each
			parts[i], err = send(gctx, k, id, int32(i+1), off, min(each, size-off))
			return err
		})
	}
	return parts, g.Wait()
}

func (f *FS) sendPart(ctx context.Context, k, id string, n int32, body *io.SectionReader, length int64) (part sentPart, err error) {
	sum, err := crc32Of(body)
	if err != nil {
		return part, err
	}
	err = f.do(ctx, "UploadPart", k, func(ctx context.Context) error {
		if _, err := body.Seek(0, io.SeekStart); err != nil {
			return err
		}
		out, err := f.client.UploadPart(ctx, &s3.UploadPartInput{Bucket: f.bucket, Key: &k, UploadId: &id, PartNumber: &n, Body: body,
			ContentLength: &length, ChecksumCRC32: &sum})
		if err != nil {
			return err
		}
		part = sentPart{ETag: out.ETag, PartNumber: &n, ChecksumCRC32: out.ChecksumCRC32}
		return saidETag(out.ETag)
	})
	return part, err
}

func (f *FS) copyPart(ctx context.Context, k, id string, n int32, source, bytes string) (part sentPart, err error) {
	err = f.do(ctx, "UploadPartCopy", k, func(ctx context.Context) error {
		out, err := f.client.UploadPartCopy(ctx, &s3.UploadPartCopyInput{Bucket: f.bucket, Key: &k, UploadId: &id, PartNumber: &n,
			CopySource: &source, CopySourceRange: &bytes})
		if err != nil {
			return err
		}
		if out.CopyPartResult == nil {
			return saidETag(nil)
		}
		part = sentPart{ETag: out.CopyPartResult.ETag, PartNumber: &n}
		return saidETag(part.ETag)
	})
	return part, err
}

// Complete makes an upload visible if there is no object of its name.
func (f *FS) Complete(name, id string) error {
	k, err := key(name)
	if err != nil {
		return wrap(storage.OpRename, name, err)
	}
	f.mu.Lock()
	parts := f.sent[id].parts
	f.mu.Unlock()
	if parts == nil {
		if parts, _, err = f.listParts(k, id); err != nil {
			return wrap(storage.OpRename, name, err)
		}
	}
	err = f.do(background(), "CompleteMultipartUpload", k, func(ctx context.Context) error {
		out, err := f.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: f.bucket, Key: &k, UploadId: &id,
			MultipartUpload: &types.CompletedMultipartUpload{Parts: parts}, IfNoneMatch: aws.String("*")})
		if errors.Is(plain(err), storage.ErrConflict) {
			return f.taken(ctx, k, err)
		}
		if err != nil {
			return err
		}
		return saidETag(out.ETag)
	})
	if err == nil {
		f.forget(id)
	}
	return wrap(storage.OpRename, name, err)
}

func (f *FS) forget(id string) {
	f.mu.Lock()
	delete(f.sent, id)
	f.mu.Unlock()
}

// Uploaded is the size of an upload that waits to be completed.
func (f *FS) Uploaded(name, id string) (size int64, err error) {
	k, err := key(name)
	if err == nil {
		_, size, err = f.listParts(k, id)
	}
	return size, wrap(storage.OpStat, name, err)
}

// listParts asks the store for the parts of an upload of another process, and
// how many bytes they have. None are no upload (X8).
func (f *FS) listParts(k, id string) (parts []sentPart, size int64, err error) {
	in := &s3.ListPartsInput{Bucket: f.bucket, Key: &k, UploadId: &id}
	for {
		var out *s3.ListPartsOutput
		err := f.do(background(), "ListParts", k, func(ctx context.Context) (err error) {
			if out, err = f.client.ListParts(ctx, in); err != nil {
				return err
			}
			whole := func(p types.Part) bool { return p.PartNumber != nil && p.ETag != nil }
			return said("the upload, and the number and the ETag of each part",
				aws.ToString(out.UploadId) == id && !slices.ContainsFunc(out.Parts, func(p types.Part) bool { return !whole(p) }))
		})
		if err != nil {
			return nil, 0, err
		}
		for _, p := range out.Parts {
			size += aws.ToInt64(p.Size)
			parts = append(parts, sentPart{ETag: p.ETag, PartNumber: p.PartNumber, ChecksumCRC32: p.ChecksumCRC32})
		}
		if !aws.ToBool(out.IsTruncated) {
			if len(parts) == 0 {
				return nil, 0, fmt.Errorf("upload %s has no parts: %w", id, storage.ErrNotExist) // X8
			}
			slices.SortFunc(parts, func(a, b sentPart) int { return int(*a.PartNumber - *b.PartNumber) })
			return parts, size, nil
		}
		if next := aws.ToString(out.NextPartNumberMarker); next == "" || next == aws.ToString(in.PartNumberMarker) {
			return nil, 0, fmt.Errorf("the store says that its list of the parts of upload %s goes on, and not where", id)
		}
		in.PartNumberMarker = out.NextPartNumberMarker
	}
}

// aborts is how often an upload is aborted whose parts come in again: those
// that were on their way when it was aborted.
const aborts = 5

// Abort ends an upload and sees that it is gone (storage O3).
func (f *FS) Abort(name, id string) error {
	k, err := key(name)
	if err != nil {
		return wrap(storage.OpRemove, name, err)
	}
	return wrap(storage.OpRemove, name, f.abort(background(), k, id))
}

func (f *FS) abort(ctx context.Context, k, id string) error {
	if id == "" {
		return errors.New("an upload without id cannot be aborted") // the request would be one to delete the object
	}
	f.forget(id)
	for range aborts {
		err := f.do(ctx, "AbortMultipartUpload", k, func(ctx context.Context) error {
			_, err := f.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: f.bucket, Key: &k, UploadId: &id})
			return err
		})
		if err != nil && !errors.Is(err, storage.ErrNotExist) {
			return err
		}
		if _, _, err = f.listParts(k, id); errors.Is(err, storage.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("upload %s is still there after it was aborted %d times", id, aborts)
}

// noteExt ends the name of the note of an upload that is being made (X3).
const noteExt = ".upload"

// AbortLeft aborts the uploads that the notes in dir name, and those below dir
// that the store lists, where it does.
func (f *FS) AbortLeft(dir string) error {
	infos, err := f.List(dir)
	if err != nil && !errors.Is(err, storage.ErrNotExist) {
		return err
	}
	for _, i := range infos {
		name, ok := strings.CutSuffix(i.Name, noteExt)
		if !ok || i.Dir {
			continue
		}
		note := path.Join(dir, i.Name)
		id, err := f.ReadFile(note)
		if errors.Is(err, storage.ErrNotExist) {
			continue
		}
		if err == nil {
			err = f.Abort(path.Join(dir, name), string(id))
		}
		if err == nil {
			err = f.Remove(note)
		}
		if err != nil {
			return err
		}
	}
	prefix, err := dirKey(dir)
	if err != nil {
		return wrap(storage.OpList, dir, err)
	}
	return f.abortListed(prefix, func(k string) bool { return strings.HasPrefix(k, prefix) })
}

// AbortAt aborts the uploads to this very name that the store lists.
func (f *FS) AbortAt(name string) error {
	k, err := key(name)
	if err != nil {
		return wrap(storage.OpRemove, name, err)
	}
	return f.abortListed(k, func(other string) bool { return other == k })
}

// abortListed goes by the store's listing of uploads. Nothing depends on it
// (storage O4): one that lists nothing, or fails once, leaves what it has to the
// bucket's lifecycle rule. It is asked for each unit, so one that fails is not
// tried for long, and never again by this process.
func (f *FS) abortListed(prefix string, ours func(key string) bool) error {
	var after *string
	for !f.unlisted.Load() {
		var out *s3.ListMultipartUploadsOutput
		err := f.once(background(), func(ctx context.Context) (err error) {
			out, err = f.client.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: f.bucket, Prefix: &prefix, KeyMarker: after})
			return err
		})
		if err != nil {
			f.unlisted.Store(true)
			return nil
		}
		for _, u := range out.Uploads {
			if !ours(aws.ToString(u.Key)) || aws.ToString(u.UploadId) == "" {
				continue // of a longer name, or of a store that does not know prefixes
			}
			if err := f.Abort("/"+aws.ToString(u.Key), aws.ToString(u.UploadId)); err != nil {
				return err
			}
		}
		if !aws.ToBool(out.IsTruncated) || aws.ToString(out.NextKeyMarker) == aws.ToString(after) {
			return nil
		}
		after = out.NextKeyMarker
	}
	return nil
}

// escapePath is a copy source: percent-encoded, but for the slashes.
func escapePath(s string) string {
	const upper = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_.~/", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(upper[c>>4])
			b.WriteByte(upper[c&15])
		}
	}
	return b.String()
}
