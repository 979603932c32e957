package s3fs

import (
	"crypto/tls"
	"time"
)

// Options of a file system. Zero values have the defaults of package config.
type Options struct {
	Bucket   string
	Endpoint string // URL; empty: AWS
	Region   string // empty: as the AWS configuration says, else us-east-1
	// PathStyle: the bucket is the first element of the path, not part of the
	// host name. Most stores that are not AWS want it.
	PathStyle bool
	// AccessKey and SecretKey are called when they are needed first. nil: the
	// AWS credential chain.
	AccessKey, SecretKey func() (string, error)
	TLS                  *tls.Config // nil: the system's authorities
	ConnectTimeout       time.Duration
	RequestTimeout       time.Duration // of one try
	RetryFor             time.Duration // of all tries of one request
	PartSize             int64
	Concurrency          int // parts of one object sent at the same time
	// Notify is told of a request that failed and is tried again, and of its
	// success after that (err nil). May be nil.
	Notify func(what string, err error)

	keysFor  time.Duration // how long AccessKey and SecretKey are not asked again
	startFor time.Duration // how long New may take to find out that nothing works
}

// minPart is the least S3 takes for a part that is not the last.
const minPart = 5 << 20

// maxParts is the most S3 takes for one object.
const maxParts = 10_000

func (o *Options) defaults() {
	set(&o.ConnectTimeout, 10*time.Second)
	set(&o.RequestTimeout, 2*time.Minute)
	set(&o.RetryFor, 5*time.Minute)
	set(&o.PartSize, 16<<20)
	set(&o.Concurrency, 4)
	set(&o.keysFor, 5*time.Minute) // no longer than a rotated file should take to be noticed
	set(&o.startFor, startFor)
	o.PartSize = max(o.PartSize, minPart)
}

func set[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}
