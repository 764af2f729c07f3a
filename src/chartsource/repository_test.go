package chartsource_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/chartsource"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// pages are an HTTP server's, by path with its escapes.
type pages map[string]string

func (p pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/private/") {
		user, pass, _ := r.BasicAuth()
		if (user != "ann" || pass != password) && r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
	}
	body, ok := p[r.URL.EscapedPath()]
	switch to, elsewhere := strings.CutPrefix(body, "-> "); {
	case elsewhere:
		http.Redirect(w, r, to, http.StatusFound)
	case strings.HasPrefix(body, "status "):
		var status int
		_, _ = fmt.Sscanf(body, "status %d", &status)
		w.WriteHeader(status)
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	default:
		if strings.HasSuffix(r.URL.Path, ".tgz") {
			w.Header().Set("Content-Encoding", "gzip") // as some servers say of what is gzipped anyway
		}
		_, _ = w.Write([]byte(body))
	}
}

func index(other string) string {
	return `apiVersion: v1
entries:
  other: [{version: 1.0.0}]
  web:
  - {version: 1.2.0, urls: [web-1.2.0.tgz], digest: ` + strings.TrimPrefix(digest(archive), "sha256:") + `}
  - {version: 1.10.0, urls: [files/web-1.10.0.tgz]}
  - {version: 2.0.0-rc.1, urls: [/elsewhere/web.tgz]}
  - {version: 3.0.0-a, urls: ["` + other + `"]}
  - {version: 3.0.0-lies, urls: [web-1.2.0.tgz], digest: "` + digest("other") + `"}
  - {version: 3.0.0-odd, urls: ["ftp://x/y"]}
  - {version: 3.0.0-nowhere}
  - {version: [1], urls: 7}
  - 7
  none: []
generated: 2026-11-20T09:00:00Z
`
}

func TestFetchFromRepository(t *testing.T) {
	t.Parallel()
	good := func(version, path string) outcome {
		return outcome{Archive: archive, Version: version, Source: "https://HOST" + path}
	}
	bad := func(kind nf.Kind, reason, field string) outcome {
		return outcome{Kind: kind, Reason: reason, Field: field, Failed: true}
	}
	ann := func(ref chartsource.ChartRef) chartsource.ChartRef {
		ref.Username, ref.Password = "ann", nf.Secret(password)
		return ref
	}
	cases := map[string]struct {
		reason string
		path   string // of the repository
		ref    chartsource.ChartRef
		want   outcome
	}{
		"Version":     {"a version of the index", "/charts", chartsource.ChartRef{Name: "web", Version: "1.2.0"}, good("1.2.0", "/charts/web-1.2.0.tgz")},
		"Slash":       {"with a slash or without", "/charts/", chartsource.ChartRef{Name: "web", Version: "1.2.0"}, good("1.2.0", "/charts/web-1.2.0.tgz")},
		"Escaped":     {"an escaped slash is part of a name", "/api/telco%2Fcharts/stable", chartsource.ChartRef{Name: "web", Version: "1.2.0"}, good("1.2.0", "/api/telco%2Fcharts/stable/web-1.2.0.tgz")},
		"Newest":      {"without a version it is the highest release", "/charts", chartsource.ChartRef{Name: "web"}, good("1.10.0", "/charts/files/web-1.10.0.tgz")},
		"Range":       {"the highest of a range", "/charts", chartsource.ChartRef{Name: "web", Version: "~1.2"}, good("1.2.0", "/charts/web-1.2.0.tgz")},
		"Absolute":    {"a path that begins at the root", "/charts", chartsource.ChartRef{Name: "web", Version: "2.0.0-rc.1"}, good("2.0.0-rc.1", "/elsewhere/web.tgz")},
		"Direct":      {"an archive by its own URL", "/charts/web-1.2.0.tgz", chartsource.ChartRef{}, good("", "/charts/web-1.2.0.tgz")},
		"Query":       {"whose query nobody is shown", "/charts/web-1.2.0.tgz?signature=s3cret", chartsource.ChartRef{}, good("", "/charts/web-1.2.0.tgz")},
		"Pinned":      {"the archive has the digest", "/charts", chartsource.ChartRef{Name: "web", Version: "1.10.0", Digest: digest(archive)}, good("1.10.0", "/charts/files/web-1.10.0.tgz")},
		"PinnedOther": {"or is not what was wanted", "/charts", chartsource.ChartRef{Name: "web", Version: "1.10.0", Digest: digest("other")}, bad(nf.Invalid, "", "chart.digest")},
		"Lies":        {"an archive that is not the index's", "/charts", chartsource.ChartRef{Name: "web", Version: "3.0.0-lies"}, bad(nf.Invalid, "", "")},
		"Elsewhere":   {"a host that is not allowed", "/charts", chartsource.ChartRef{Name: "web", Version: "3.0.0-a"}, bad(nf.Forbidden, "", "")},
		"Odd":         {"no URL of HTTP", "/charts", chartsource.ChartRef{Name: "web", Version: "3.0.0-odd"}, bad(nf.Invalid, "", "")},
		"Nowhere":     {"no URL at all", "/charts", chartsource.ChartRef{Name: "web", Version: "3.0.0-nowhere"}, bad(nf.Invalid, "", "")},
		"NoVersion":   {"no such version", "/charts", chartsource.ChartRef{Name: "web", Version: "7.0.0"}, bad(nf.NotFound, "", "")},
		"BadVersion":  {"neither version nor range", "/charts", chartsource.ChartRef{Name: "web", Version: "newest"}, bad(nf.Invalid, "", "chart.version")},
		"NoChart":     {"no such chart", "/charts", chartsource.ChartRef{Name: "app"}, bad(nf.NotFound, "", "")},
		"NoVersions":  {"a chart without versions", "/charts", chartsource.ChartRef{Name: "none"}, bad(nf.NotFound, "", "")},
		"NoName":      {"which chart?", "/charts", chartsource.ChartRef{}, bad(nf.Invalid, "", "chart.name")},
		"Archive":     {"an archive of any name", "/files/web.csar", chartsource.ChartRef{Archive: true}, good("", "/files/web.csar")},
		"ArchiveOf":   {"which is not in a repository", "/charts", chartsource.ChartRef{Archive: true, Name: "web"}, bad(nf.Invalid, "", "chart.url")},
		"NoIndex":     {"no repository", "/nothing", chartsource.ChartRef{Name: "web"}, bad(nf.NotFound, "", "")},
		"TextIndex":   {"an index that is none", "/text", chartsource.ChartRef{Name: "web"}, bad(nf.Invalid, "", "")},
		"EmptyIndex":  {"nor is nothing", "/empty", chartsource.ChartRef{Name: "web"}, bad(nf.Invalid, "", "")},
		"Login":       {"user and password", "/private", ann(chartsource.ChartRef{Name: "web", Version: "1.2.0"}), good("1.2.0", "/private/web-1.2.0.tgz")},
		"Token":       {"or a token", "/private", chartsource.ChartRef{Name: "web", Version: "1.2.0", Password: nf.Secret(token)}, good("1.2.0", "/private/web-1.2.0.tgz")},
		"NoLogin":     {"or nothing", "/private", chartsource.ChartRef{Name: "web", Version: "1.2.0"}, bad(nf.Unreachable, "unauthorized", "")},
		"Down":        {"a server that fails", "/down", chartsource.ChartRef{Name: "web"}, bad(nf.Unreachable, "unavailable", "")},
		"Loop":        {"a server that leads in circles", "/loop", chartsource.ChartRef{Name: "web"}, bad(nf.Unreachable, "unavailable", "")},
		"TooLarge":    {"an archive beyond the limit", "/charts/large.tgz", chartsource.ChartRef{}, bad(nf.TooLarge, "", "")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := pages{
				"/charts/index.yaml": index("https://charts.example.com/web.tgz"), "/charts/web-1.2.0.tgz": archive, "/charts/files/web-1.10.0.tgz": archive,
				"/elsewhere/web.tgz": archive, "/files/web.csar": archive, "/text/index.yaml": "{", "/empty/index.yaml": "", "/down/index.yaml": "status 503", "/loop/index.yaml": "-> /loop/index.yaml",
				"/api/telco%2Fcharts/stable/index.yaml": index(""), "/api/telco%2Fcharts/stable/web-1.2.0.tgz": archive,
				"/private/index.yaml": index(""), "/private/web-1.2.0.tgz": archive, "/charts/large.tgz": strings.Repeat("x", 2000),
			}
			u, roots := serve(t, site)
			tc.ref.URL = u.String() + tc.path
			s := newSource(t, chartsource.Config{Allow: []string{"127.0.0.1"}, Roots: roots, Limit: 1000})
			if diff := cmp.Diff(tc.want, fetch(t, s, tc.ref, u.Host)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// shared serves a repository and a registry at one origin.
type shared struct {
	pages    pages
	registry *registry
}

func (s shared) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/token" || strings.HasPrefix(r.URL.Path, "/v2/") {
		s.registry.ServeHTTP(w, r)
		return
	}
	s.pages.ServeHTTP(w, r)
}

// TestFetchFromIndexedRegistry fetches charts whose index refers to a registry.
func TestFetchFromIndexedRegistry(t *testing.T) {
	t.Parallel()
	const tag = "oci://HOST/charts/web:1.10.0_build.5"
	chart := digest(newRegistry().manifests["1.2.0"])
	good := func(source string) outcome {
		return outcome{Archive: archive, Version: "1.10.0+build.5", Source: source}
	}
	bad := func(kind nf.Kind, reason, field string) outcome {
		return outcome{Kind: kind, Reason: reason, Field: field, Failed: true}
	}
	cases := map[string]struct {
		reason string
		url    string // in the index; HOST is that of the registry
		digest string // in the index
		auth   string // of the registry
		apart  bool   // the registry has another port than the repository
		pinned string
		want   outcome
	}{
		"Tag":            {reason: "the URL has the tag", url: tag, want: good(tag)},
		"OtherTag":       {reason: "the tag can differ from the version", url: "oci://HOST/charts/web:0.9.0", want: good("oci://HOST/charts/web:0.9.0")},
		"Manifest":       {reason: "the URL has the digest", url: "oci://HOST/charts/web@" + chart, want: good("oci://HOST/charts/web@" + chart)},
		"NoTag":          {reason: "the version is the tag", url: "oci://HOST/charts/web", want: good(tag)},
		"Digest":         {reason: "the index has the digest of the archive", url: tag, digest: digest(archive)[7:], want: good(tag)},
		"ManifestDigest": {reason: "the index has the digest of the manifest", url: tag, digest: chart, want: good(tag)},
		"Lies":           {reason: "the index has another digest", url: tag, digest: digest("other"), want: bad(nf.Invalid, "", "")},
		"Pinned":         {reason: "the request has the digest of the archive", url: tag, pinned: digest(archive), want: good(tag)},
		"PinnedManifest": {reason: "the request has the digest of the manifest", url: tag, digest: digest(archive), pinned: chart, want: good(tag)},
		"PinnedOther":    {reason: "the request has another digest", url: tag, digest: digest(archive), pinned: digest("other"), want: bad(nf.Invalid, "", "chart.digest")},
		"Missing":        {reason: "the registry does not have the tag", url: "oci://HOST/charts/web:9.9.9", want: bad(nf.NotFound, "", "")},
		"NotAllowed":     {reason: "the operator must allow the registry", url: "oci://registry.example.com/charts/web:1.2.0", want: bad(nf.Forbidden, "", "")},
		"NoName":         {reason: "the URL must name a chart", url: "oci://HOST", want: bad(nf.Invalid, "", "")},
		"NoHost":         {reason: "the URL must name a host", url: "oci:charts/web", want: bad(nf.Invalid, "", "")},
		"Basic":          {reason: "a registry of the same origin gets the password", url: tag, auth: "basic", want: good(tag)},
		"Bearer":         {reason: "and its token service", url: tag, auth: "bearer", want: good(tag)},
		"Apart":          {reason: "another registry needs no password", url: tag, apart: true, want: good(tag)},
		"BasicApart":     {reason: "another registry does not get it", url: tag, auth: "basic", apart: true, want: bad(nf.Unreachable, "unauthorized", "")},
		"BearerApart":    {reason: "nor does its token service", url: tag, auth: "bearer", apart: true, want: bad(nf.Unreachable, "unauthorized", "")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRegistry()
			site := shared{pages{}, r}
			from, roots := serve(t, site)
			at := from
			if tc.apart {
				at, _ = serve(t, r)
			}
			r.url, r.auth = at.String(), tc.auth
			site.pages["/charts/index.yaml"] = fmt.Sprintf("entries: {web: [{version: 1.10.0+build.5, urls: [%q], digest: %q}]}", strings.Replace(tc.url, "HOST", at.Host, 1), tc.digest)
			s := newSource(t, chartsource.Config{Allow: []string{"127.0.0.1"}, Roots: roots}) // all of httptest have one certificate
			ref := chartsource.ChartRef{URL: from.String() + "/charts", Name: "web", Digest: tc.pinned, Username: "ann", Password: nf.Secret(password)}
			if diff := cmp.Diff(tc.want, fetch(t, s, ref, at.Host)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if tc.apart && slices.ContainsFunc(r.heard(), func(line string) bool { return strings.HasSuffix(line, " as ann") }) {
				t.Errorf("%s: the registry got a user", tc.reason)
			}
		})
	}
}

// TestCredentialsStay checks that only the host of the reference gets them,
// wherever its answers lead.
func TestCredentialsStay(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var told []string
	other, roots := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, r.URL.Path+" "+r.Header.Get("Authorization"))
		_, _ = w.Write([]byte(archive))
	}))
	u, _ := serve(t, pages{"/named/index.yaml": index(other.String() + "/a.tgz"), "/led/index.yaml": index("led.tgz"), "/led/led.tgz": "-> " + other.String() + "/b.tgz"})
	s := newSource(t, chartsource.Config{Allow: []string{"127.0.0.1"}, Roots: roots}) // all of httptest have one certificate
	for _, path := range []string{"/named", "/led"} {
		ref := chartsource.ChartRef{URL: u.String() + path, Name: "web", Version: "3.0.0-a", Username: "ann", Password: nf.Secret(password)}
		if _, err := fetchInto(t.Context(), s, ref); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff([]string{"/a.tgz ", "/b.tgz "}, told); diff != "" {
		t.Errorf("another server was told (-want +got):\n%s", diff)
	}
}

func FuzzIndex(f *testing.F) {
	for _, seed := range []string{index("x"), "", "entries: {web: [{version: 1.0.0, urls: [a]}]}", `entries: {web: [{version: 1.0.0, urls: ["oci://r/a:1"]}]}`, "entries: &a {web: *a}", "a: &a [b]\nentries: {web: [*a, *a]}", `{"entries":{"web":[{"version":"1"}]}}`, "entries: [web]", "- a", "entries:\n  web:\n    version: 1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		chartsource.ReadIndex(t, text)
	})
}
