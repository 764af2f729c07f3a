package sol013

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// versionHeader has the version of an API, in requests and in responses.
const versionHeader = "Version"

// versions are those of the APIs, by the prefixes of their paths.
var versions = map[string]string{
	"/vnflcm/v1/": "1.3.0",
	"/vnflcm/v2/": "2.0.0",

	"/vnflcm/api_versions/": "2.0.0",

	"/vnffm/v1/": "1.3.0",
	"/vnfpm/v2/": "2.1.0",
}

// VersionOf returns the version of the API that has a path, or "" if the path has none.
func VersionOf(path string) string {
	api, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	major, _, _ := strings.Cut(rest, "/")
	return versions["/"+api+"/"+major+"/"]
}

var versionForm = regexp.MustCompile(`^([0-9]{1,5}\.[0-9]{1,5}\.[0-9]{1,5})(?:-impl:[0-9A-Za-z._~:-]{1,200})?$`)

// ParseVersion returns the version in a Version header, such as 2.0.0, without the
// implementation that may follow it: 2.0.0-impl:example:product:1. It returns nf.Invalid.
func ParseVersion(text string) (string, error) {
	parts := versionForm.FindStringSubmatch(text)
	if parts == nil {
		return "", invalid(versionHeader, "must be a version such as 2.0.0")
	}
	return parts[1], nil
}

// Versioned returns a handler for requests that name the version of their path's API and
// accept JSON. It answers others with 400 and 406.
func Versioned(h northbound.Handler) http.Handler {
	return negotiated(h, func(r *http.Request) error {
		if r.Header.Get(versionHeader) == "" {
			return invalid(versionHeader, "is missing; the version of the API is "+VersionOf(r.URL.Path))
		}
		return checkVersion(r)
	})
}

// Unversioned returns a handler that does the same, except that requests need not name a
// version.
func Unversioned(h northbound.Handler) http.Handler {
	return negotiated(h, func(r *http.Request) error {
		if r.Header.Get(versionHeader) == "" {
			return nil
		}
		return checkVersion(r)
	})
}

func negotiated(h northbound.Handler, check func(*http.Request) error) http.Handler {
	return northbound.Handler(func(w http.ResponseWriter, r *http.Request) error {
		if err := check(r); err != nil {
			return err
		}
		if !Accepts(r, mediaJSON) {
			return northbound.Refusal(http.StatusNotAcceptable, "the response is "+mediaJSON)
		}
		return h(w, r)
	})
}

const mediaJSON = "application/json"

func checkVersion(r *http.Request) error {
	given := r.Header.Values(versionHeader)
	if len(given) > 1 {
		return invalid(versionHeader, "is given twice")
	}
	version, err := ParseVersion(given[0])
	if err != nil {
		return err
	}
	if has := VersionOf(r.URL.Path); version != has {
		return northbound.Refusal(http.StatusNotAcceptable, fmt.Sprintf("the API has version %s, not %s", has, nf.Clip(version, maxQuote)))
	}
	return nil
}

const maxQuote = 40

// Formats returns a handler that sets the headers that ETSI requires on every response
// below a path with a version, errors of the server included. In requests for ETSI's APIs it accepts
// the selector "exclude-fields", as a client spells it, for "exclude_fields", and semicolons in
// values, which separate the conditions of a filter.
func Formats(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if version := VersionOf(r.URL.Path); version != "" {
			w.Header().Set(versionHeader, version)
			w.Header().Set("Accept-Ranges", "none")
		}
		if !strings.HasPrefix(r.URL.Path, "/vnf") {
			next.ServeHTTP(w, r)
			return
		}
		spelled := spell(r.URL.RawQuery)
		if spelled == r.URL.RawQuery {
			next.ServeHTTP(w, r)
			return
		}
		inner, address := *r, *r.URL // not a deep copy: nothing else changes
		address.RawQuery = spelled
		inner.URL = &address
		// For its side effect: the server does not log a warning of each semicolon.
		http.AllowQuerySemicolons(next).ServeHTTP(w, &inner)
	})
}

const dashed = "exclude-fields"

// spell replaces the name of the parameter in a query, and encodes semicolons.
func spell(query string) string {
	parts := strings.Split(strings.ReplaceAll(query, ";", "%3B"), "&")
	for i, part := range parts {
		if name, _, _ := strings.Cut(part, "="); name == dashed {
			parts[i] = "exclude_fields" + strings.TrimPrefix(part, dashed)
		}
	}
	return strings.Join(parts, "&")
}
