package config

import (
	"net/url"
	"regexp"
	"strings"
)

// bucketName is AWS's rule, and that of stores which are compatible with it.
var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

func (v *validator) s3() {
	s, l := &v.c.S3, v.c.Table.Location
	if l.Scheme == "s3" && !bucketName.MatchString(l.Host) {
		v.add("table.location", "3 to 63 lower-case letters, digits, dots and dashes", "%q is not a bucket's name", l.Host)
	}
	if s.AccessKey.IsSet() != s.SecretKey.IsSet() {
		at, other := "s3.secret_key", "s3.access_key"
		if s.SecretKey.IsSet() {
			at, other = other, at
		}
		v.add(at, "give both, or none for the AWS credential chain", "is missing beside %s", other)
	}
	if s.Endpoint == "" {
		return
	}
	u, err := url.Parse(s.Endpoint)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		v.add("s3.endpoint", "http://host:port or https://host", "is not the URL of a store")
	case u.User != nil:
		v.add("s3.endpoint", "use s3.access_key and s3.secret_key", "has a user in it: secrets do not belong there")
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		v.add("s3.endpoint", "the bucket belongs into table.location, s3://bucket/path", "has more than a host in it")
	case u.Scheme == "http" && s.TLS != nil:
		v.add("s3.tls", "use an https:// endpoint", "is of no use with http")
	}
}
