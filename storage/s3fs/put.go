package s3fs

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/hivesink/hivesink/storage"
)

// Make makes an object in one request (storage O1).
func (f *FS) Make(name string, data []byte) error {
	return wrap(storage.OpCreate, name, f.put(name, bytes.NewReader(data), int64(len(data)), true))
}

// Overwrite makes an object, or replaces it.
func (f *FS) Overwrite(name string, data []byte) error {
	return wrap(storage.OpReplace, name, f.put(name, bytes.NewReader(data), int64(len(data)), false))
}

func (f *FS) put(name string, content io.ReaderAt, size int64, exclusive bool) error {
	k, err := key(name)
	if err != nil {
		return err
	}
	sum, err := crc32Of(io.NewSectionReader(content, 0, size))
	if err != nil {
		return err
	}
	tries := 0
	err = f.do(background(), "PutObject", k, func(ctx context.Context) error {
		tries++
		in := &s3.PutObjectInput{Bucket: f.bucket, Key: &k, Body: io.NewSectionReader(content, 0, size), ContentLength: &size, ChecksumCRC32: &sum}
		if exclusive {
			in.IfNoneMatch = aws.String("*")
		}
		out, err := f.client.PutObject(ctx, in)
		if exclusive && errors.Is(plain(err), storage.ErrConflict) {
			if said := f.taken(ctx, k, err); errors.Is(said, storage.ErrExist) {
				return said
			}
			// Another change of the name was under way: the next try is told
			// which way that went.
			return &busyError{err}
		}
		if err != nil {
			return err
		}
		return saidETag(out.ETag)
	})
	if tries > 1 && errors.Is(err, storage.ErrExist) && f.holds(name, content, size) {
		return nil // by the try whose answer was lost
	}
	return err
}

// taken finds out what a conflict means. Some stores say so of a name that is
// taken, where S3 says that the precondition failed; no further try helps then.
func (f *FS) taken(ctx context.Context, k string, conflict error) error {
	if code(conflict) == "ConditionalRequestConflict" {
		return conflict // S3's own word
	}
	out, err := f.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: f.bucket, Key: &k})
	if err != nil || saidObject(out.ETag, out.LastModified) != nil {
		return conflict
	}
	return &s3Error{err: conflict, text: plain(conflict).Error(), is: storage.ErrExist}
}

// holds says whether an object has these bytes.
func (f *FS) holds(name string, content io.ReaderAt, size int64) bool {
	got, err := f.ReadFile(name)
	if err != nil || int64(len(got)) != size {
		return false
	}
	want := make([]byte, size)
	if _, err := content.ReadAt(want, 0); err != nil && err != io.EOF {
		return false
	}
	return bytes.Equal(got, want)
}

// crc32Of is the checksum of a body, as its header has it. It is known before the
// request is sent: else the SDK sends it behind the body when the connection is
// encrypted, in a framing (aws-chunked) that some stores refuse, and some take for
// a part of the object.
func crc32Of(body *io.SectionReader) (string, error) {
	sum := crc32.NewIEEE()
	if _, err := io.Copy(sum, io.NewSectionReader(body, 0, body.Size())); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum.Sum32())), nil
}
