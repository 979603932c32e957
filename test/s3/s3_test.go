//go:build integration

// Package s3 tests hivesink on the object stores of test/services: versitygw,
// and MinIO for the other legal answers.
package s3

import (
	"context"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/s3fs"
	"github.com/hivesink/hivesink/test/engines"
	"github.com/hivesink/hivesink/test/mainjob"
	"github.com/hivesink/hivesink/test/services"
)

// TestMain makes the buckets, should others have started the stores
// (docker-compose.yml).
func TestMain(m *testing.M) {
	if err := services.MakeBuckets(); err != nil {
		fmt.Fprintln(os.Stderr, "are the stores up? go run ./test/services/cmd up", services.Versity, services.MinIO, ":", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// stores are the servers that a test runs on.
func stores() map[string]string {
	return map[string]string{services.Versity: services.VersityURL(), services.MinIO: services.MinIOURL()}
}

// onEach runs a test on each store.
func onEach(t *testing.T, test func(t *testing.T, url string)) {
	for _, name := range []string{services.Versity, services.MinIO} {
		t.Run(name, func(t *testing.T) { test(t, stores()[name]) })
	}
}

func given(s string) func() (string, error) { return func() (string, error) { return s, nil } }

// open connects to the bucket of the tests.
func open(t testing.TB, o s3fs.Options) *s3fs.FS {
	t.Helper()
	if o.Bucket == "" {
		o.Bucket = services.S3Bucket
	}
	if o.AccessKey == nil {
		o.AccessKey, o.SecretKey = given(services.S3AccessKey), given(services.S3SecretKey)
	}
	o.PathStyle, o.Region = true, "us-east-1"
	fs, err := s3fs.New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

// scratch is a directory of the test's own, removed at its end.
func scratch(t testing.TB, fs storage.Objects) string {
	t.Helper()
	name := strings.NewReplacer("/", "_", " ", "_").Replace(t.Name())
	dir := path.Join("/", fmt.Sprintf("test-%s-%d-%d", name, os.Getpid(), time.Now().UnixNano()))
	t.Cleanup(func() {
		if err := fs.RemoveTree(dir); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return dir
}

// env has the keys that settings refers to.
var env = []string{"TEST_S3_ACCESS=" + services.S3AccessKey, "TEST_S3_SECRET=" + services.S3SecretKey}

// settings is the section s3 of a configuration.
func settings(url, more string) string {
	return fmt.Sprintf("s3: {endpoint: %q, region: us-east-1, path_style: true, access_key: {env: TEST_S3_ACCESS}, secret_key: {env: TEST_S3_SECRET}, request_timeout: 20s%s}", url, more)
}

// jobPlace is a table on a store. The reader looks at it directly; the job may
// go by way of another address.
func jobPlace(t *testing.T, direct, job string) mainjob.Place {
	t.Helper()
	bucket := services.S3Bucket
	if direct == services.MinIOURL() {
		bucket = services.MinIOBucket // by which a metastore tells the stores apart
	}
	fs := open(t, s3fs.Options{Endpoint: direct, Bucket: bucket})
	root := path.Join(scratch(t, fs), "table")
	return mainjob.Place{FS: fs, Root: root, Location: "s3://" + bucket + root, Config: settings(job, ""), Env: env,
		CallsIt: "s3a://" + bucket + root,
		Readers: &engines.Table{S3: &engines.S3{Endpoint: direct, AccessKey: services.S3AccessKey, SecretKey: services.S3SecretKey}}}
}

// wantNoUploads: whatever was killed or fenced, no upload is left open. Only
// versitygw lists them by prefix.
func wantNoUploads(t *testing.T, root string) {
	t.Helper()
	c := s3.New(s3.Options{BaseEndpoint: aws.String(services.VersityURL()), Region: "us-east-1", UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(services.S3AccessKey, services.S3SecretKey, "")})
	out, err := c.ListMultipartUploads(context.Background(), &s3.ListMultipartUploadsInput{
		Bucket: aws.String(services.S3Bucket), Prefix: aws.String(strings.TrimPrefix(root, "/"))})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range out.Uploads {
		t.Errorf("an upload of %s is left", aws.ToString(u.Key))
	}
}

// TestKills: the state directory kept, lost and old.
func TestKills(t *testing.T) {
	p := jobPlace(t, services.VersityURL(), services.VersityURL())
	mainjob.Kills(t, p, 60_000, 12_000, 10)
	wantNoUploads(t, p.Root)
}

// TestKillsMinIO: the same where a second completion says NoSuchUpload.
func TestKillsMinIO(t *testing.T) {
	mainjob.Kills(t, jobPlace(t, services.MinIOURL(), services.MinIOURL()), 30_000, 12_000, 4)
}

// TestTakeOvers: SIGSTOP, take-over, SIGCONT.
func TestTakeOvers(t *testing.T) {
	p := jobPlace(t, services.VersityURL(), services.VersityURL())
	mainjob.TakeOvers(t, p, 100_000, 12_000, 3)
	wantNoUploads(t, p.Root)
}

// TestTakeOversMinIO is TestTakeOvers on the other store.
func TestTakeOversMinIO(t *testing.T) {
	mainjob.TakeOvers(t, jobPlace(t, services.MinIOURL(), services.MinIOURL()), 60_000, 12_000, 2)
}

// TestNoSecretInADump: stacks, logs, state and table hold no key.
func TestNoSecretInADump(t *testing.T) {
	mainjob.Dump(t, jobPlace(t, services.VersityURL(), services.VersityURL()), 200_000, 12_000)
}
