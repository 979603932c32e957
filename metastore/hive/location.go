package hive

import (
	"path"
	"strings"
)

// sameLocation compares two URIs as Hadoop's file systems do: file:/a, file:///a
// and /a are one place, a trailing slash says nothing, s3, s3a and s3n are one
// scheme, a missing authority is the default one, whatever that is, and a name
// node's port is 8020 unless it is said.
func sameLocation(a, b string) bool {
	as, aa, ap := splitLocation(a)
	bs, ba, bp := splitLocation(b)
	return as == bs && ap == bp && (aa == ba || as == "hdfs" && (aa == "" || ba == ""))
}

func splitLocation(uri string) (scheme, authority, dir string) {
	scheme, rest, ok := strings.Cut(uri, ":")
	if !ok || strings.Contains(scheme, "/") {
		return "file", "", path.Clean(uri)
	}
	scheme = strings.ToLower(scheme)
	if scheme == "s3a" || scheme == "s3n" {
		scheme = "s3"
	}
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		authority, rest, _ = strings.Cut(after, "/")
		rest = "/" + rest
	}
	authority = strings.ToLower(authority)
	if scheme == "hdfs" {
		authority = strings.TrimSuffix(authority, ":8020")
	}
	return scheme, authority, path.Clean(rest)
}
