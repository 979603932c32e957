// Package s3fs is storage.Objects on an S3-compatible object store: AWS S3,
// MinIO, versitygw, Ceph, and whatever else keeps conditional writes. A file
// system is bound to one bucket; the name /a/b is the object with key a/b.
//
// # Invariants
//
//	X1  Every request has a deadline, and is repeated with growing pauses for
//	    Options.RetryFor at most. What is repeated may have been done by the
//	    try whose answer was lost; the callers' rules (storage O1, O2) allow
//	    for that.
//	X2  A body is sent from memory or a local file, never from a stream, so that
//	    a try that was cut can be repeated; each carries a checksum that the
//	    store verifies.
//	X3  An object that Put makes of more than Options.PartSize is sent in parts. While that
//	    goes on in a staging directory, a note beside it names the upload, so
//	    that the next owner finds and aborts it without listing uploads.
//	X4  A key, a secret or a header that is made of them is in no error.
//	X5  Success is what the answer proves, not its status: a listing names the
//	    bucket, a change has an ETag, an object that or a time, an upload an id.
//	    Else, and when the answer is cut, it is asked again (X1).
//	X6  ErrNoSpace is an error of a request of which each try was refused for
//	    that: nothing of it was done. A try without an answer may have been
//	    done, so after one it is an error like others.
//	X7  What was read is kept for all readers together, 64 MB at most, and no
//	    reader keeps anything itself: a merge has all its inputs open. Of a slice
//	    (storage.Slicer) no more is read than it has, but for rounding, and for
//	    its neighbours when those were read before it.
//	X8  An upload without parts is none: some stores say of one that was completed
//	    or aborted that it has none, rather than that it is not there. Nobody is
//	    told of an upload before it has all its parts, but for the note of X3,
//	    which is there to abort it.
//
// # Crash story
//
// Die inside Put of a large object: an upload without object and the note that
// names it, which AbortLeft removes; dying between the start of the upload and
// the note leaves an upload without parts, which takes no room. Die inside
// Upload: the same without a note, since who asked knows the final name; the
// bucket's lifecycle rule for incomplete uploads (docs/s3.md) removes it, and
// AbortLeft finds it where the store lists uploads.
package s3fs
