package onap

import (
	"net/http"
	"net/url"
	"strings"
)

// Prefixes returns a handler that accepts the paths of ONAP's broker and of MSB, too, and
// removes their prefix once:
//
//	/api/multicloud/v1/{owner}/{region}/x, /api/multicloud-k8s/v1/{owner}/{region}/x
//	/api/multicloud/v0/{owner}_{region}/x, /api/multicloud-k8s/v0/{owner}_{region}/x
//
// The owner of v0 has no '_'. DELETE of a region becomes DELETE of its registry, because
// any path of two segments would be one of a region.
func Prefixes(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, found := withoutPrefix(r.Method, r.URL.EscapedPath())
		plain, err := url.PathUnescape(path)
		if found && err == nil {
			inner := *r // not a deep copy: nothing else changes
			address := *r.URL
			address.Path, address.RawPath = plain, path
			inner.URL = &address
			r = &inner
		}
		next.ServeHTTP(w, r)
	})
}

// withoutPrefix returns an escaped path without the prefix of the broker, and whether it
// has one.
func withoutPrefix(method, path string) (string, bool) {
	rest, found := strings.CutPrefix(path, "/api/multicloud")
	if !found {
		return path, false
	}
	rest = strings.TrimPrefix(rest, "-k8s")
	rest, slash := strings.CutPrefix(rest, "/")
	version, rest, found := strings.Cut(rest, "/")
	if !slash || !found || rest == "" {
		return path, false
	}
	switch version {
	case "v0":
		vim, tail, deeper := strings.Cut(rest, "/")
		owner, region, ok := strings.Cut(vim, "_")
		if !ok || owner == "" || region == "" {
			return path, false
		}
		rest = owner + "/" + region
		if deeper {
			rest += "/" + tail
		}
	case "v1":
	default:
		return path, false
	}
	if method == http.MethodDelete && strings.Count(rest, "/") == 1 && !strings.HasPrefix(rest, "v1/") {
		rest += "/registry"
	}
	return "/" + rest, true
}
