package services

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// S3-compatible stores: versitygw, small and correct, which says 200 to the
// second completion of an upload, and MinIO, which says NoSuchUpload and lists
// uploads of one exact key only. Both are built from their modules.
const (
	VersityVersion = "v1.8.0"
	MinIOVersion   = "v0.0.0-20260212201848-7aac2a2c5b7c"

	versityPort      = 17070
	minioPort        = 17080
	minioConsolePort = 17081

	// S3Bucket is there in both. MinIOBucket is MinIO's alone, so that a client
	// of both, like a metastore, can tell by the bucket where an object lies.
	S3Bucket    = "hivesink"
	MinIOBucket = "hivesink-minio"
	// S3AccessKey and S3SecretKey are those of both.
	S3AccessKey = "hivesink"
	S3SecretKey = "hivesink-planted-secret"
)

// Names of the daemons.
const (
	Versity = "versitygw"
	MinIO   = "minio"
)

// VersityURL is where versitygw answers.
func VersityURL() string { return Address("HIVESINK_S3_VERSITYGW", local(versityPort)) }

// MinIOURL is where MinIO answers.
func MinIOURL() string { return Address("HIVESINK_S3_MINIO", local(minioPort)) }

func local(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }

func init() {
	register(Service{Name: Versity, About: "S3: versitygw " + VersityVersion + ", port " + fmt.Sprint(versityPort), Default: true, Up: upVersity})
	register(Service{Name: MinIO, About: "S3: MinIO " + MinIOVersion + ", port " + fmt.Sprint(minioPort), Default: true, Up: upMinIO})
}

func upVersity(h *Home) error {
	bin, err := h.GoInstall("github.com/versity/versitygw/cmd/versitygw", VersityVersion)
	if err != nil {
		return err
	}
	data, err := h.Data(Versity)
	if err != nil {
		return err
	}
	// Its metadata lives in extended attributes, which the file system must have.
	err = h.Start(Daemon{Name: Versity, Ports: []int{versityPort}, Dir: data,
		Argv: []string{bin, "--port", fmt.Sprintf("127.0.0.1:%d", versityPort), "--region", "us-east-1", "posix", data},
		Env:  []string{"ROOT_ACCESS_KEY_ID=" + S3AccessKey, "ROOT_SECRET_ACCESS_KEY=" + S3SecretKey}})
	if err != nil {
		return err
	}
	return makeBucket(patience, VersityURL(), S3Bucket)
}

func upMinIO(h *Home) error {
	bin, err := h.GoInstall("github.com/minio/minio", MinIOVersion)
	if err != nil {
		return err
	}
	data, err := h.Data(MinIO)
	if err != nil {
		return err
	}
	err = h.Start(Daemon{Name: MinIO, Ports: []int{minioPort}, Dir: data,
		Argv: []string{bin, "server", "--quiet", "--address", fmt.Sprintf("127.0.0.1:%d", minioPort),
			"--console-address", fmt.Sprintf("127.0.0.1:%d", minioConsolePort), data},
		Env: []string{"MINIO_ROOT_USER=" + S3AccessKey, "MINIO_ROOT_PASSWORD=" + S3SecretKey, "MINIO_UPDATE=off"}})
	if err != nil {
		return err
	}
	return errors.Join(makeBucket(patience, MinIOURL(), S3Bucket), makeBucket(patience, MinIOURL(), MinIOBucket))
}

// MakeBuckets makes the buckets of the tests, in stores that were started by
// others, and are up.
func MakeBuckets() error {
	const patience = 30 * time.Second
	return errors.Join(makeBucket(patience, VersityURL(), S3Bucket), makeBucket(patience, MinIOURL(), S3Bucket), makeBucket(patience, MinIOURL(), MinIOBucket))
}

// makeBucket makes a bucket. A port that accepts may belong to a store that is
// not ready yet.
func makeBucket(patience time.Duration, url, bucket string) error {
	return Until(patience, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, url+"/"+bucket, bytes.NewReader(nil))
		if err != nil {
			return err
		}
		SignS3(req, S3AccessKey, S3SecretKey, time.Now())
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusConflict { // 409: it is there
			return fmt.Errorf("make bucket %s at %s: %s", bucket, url, res.Status)
		}
		return nil
	})
}
