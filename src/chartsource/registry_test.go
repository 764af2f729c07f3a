package chartsource_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/chartsource"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestFetchFromRegistry(t *testing.T) {
	t.Parallel()
	chart := digest(newRegistry().manifests["1.2.0"])
	good := func(version, reference string) outcome {
		return outcome{Archive: archive, Version: version, Source: "oci://HOST/charts/web" + reference}
	}
	bad := func(kind nf.Kind, reason, field string) outcome {
		return outcome{Kind: kind, Reason: reason, Field: field, Failed: true}
	}
	cases := map[string]struct {
		reason string
		edit   func(*registry)
		path   string // default: that of the repository
		ref    chartsource.ChartRef
		want   outcome
	}{
		"Tag":             {reason: "a version is a tag", ref: chartsource.ChartRef{Version: "1.2.0"}, want: good("1.2.0", ":1.2.0")},
		"Name":            {reason: "the name can be distinguished from the URL", path: "/charts", ref: chartsource.ChartRef{Name: "web", Version: "1.2.0"}, want: good("1.2.0", ":1.2.0")},
		"Build":           {reason: "no tag has a plus sign", ref: chartsource.ChartRef{Version: "1.10.0+build.5"}, want: good("1.10.0+build.5", ":1.10.0_build.5")},
		"Newest":          {reason: "without a version it is the highest release, on whatever page", want: good("1.10.0+build.5", ":1.10.0_build.5")},
		"Range":           {reason: "the highest of a range", ref: chartsource.ChartRef{Version: "^1.0.0"}, want: good("1.10.0+build.5", ":1.10.0_build.5")},
		"Prerelease":      {reason: "a range that names a prerelease has them", ref: chartsource.ChartRef{Version: ">=2.0.0-0"}, want: good("2.0.0-rc.1", ":2.0.0-rc.1")},
		"Latest":          {reason: "a tag that is no version is one all the same", ref: chartsource.ChartRef{Version: "latest"}, want: good("latest", ":latest")},
		"Manifest":        {reason: "a manifest can be named by its digest", ref: chartsource.ChartRef{Version: chart}, want: good("1.2.0", "@"+chart)},
		"TagInURL":        {reason: "the URL can have the tag", path: "/charts/web:0.9.0", want: good("0.9.0", ":0.9.0")},
		"DigestInURL":     {reason: "or the digest", path: "/charts/web@" + chart, want: good("1.2.0", "@"+chart)},
		"TwoTags":         {reason: "but not another than the version", path: "/charts/web:0.9.0", ref: chartsource.ChartRef{Version: "1.2.0"}, want: bad(nf.Invalid, "", "chart.url")},
		"Pinned":          {reason: "the archive has the digest", ref: chartsource.ChartRef{Version: "1.2.0", Digest: digest(archive)}, want: good("1.2.0", ":1.2.0")},
		"PinnedBare":      {reason: "as other tools write it", ref: chartsource.ChartRef{Version: "1.2.0", Digest: strings.ToUpper(digest(archive)[7:])}, want: good("1.2.0", ":1.2.0")},
		"PinnedManifest":  {reason: "what helm push prints is the manifest's", ref: chartsource.ChartRef{Version: "1.2.0", Digest: chart}, want: good("1.2.0", ":1.2.0")},
		"PinnedOther":     {reason: "another archive is not what was wanted", ref: chartsource.ChartRef{Version: "1.2.0", Digest: digest("other")}, want: bad(nf.Invalid, "", "chart.digest")},
		"Lies":            {reason: "a blob that is another is not taken", ref: chartsource.ChartRef{Version: "lies"}, want: bad(nf.Unreachable, "unavailable", "")},
		"Missing":         {reason: "no such tag", ref: chartsource.ChartRef{Version: "9.9.9"}, want: bad(nf.NotFound, "", "")},
		"NoneInRange":     {reason: "no tag in the range", ref: chartsource.ChartRef{Version: "^7"}, want: bad(nf.NotFound, "", "")},
		"NoRepository":    {reason: "no such repository", path: "/charts/other", ref: chartsource.ChartRef{Version: "1.2.0"}, want: bad(nf.NotFound, "", "")},
		"Image":           {reason: "an image is no chart", ref: chartsource.ChartRef{Version: "image"}, want: bad(nf.Invalid, "", "")},
		"NoManifest":      {reason: "nor is a text", ref: chartsource.ChartRef{Version: "text"}, want: bad(nf.Invalid, "", "")},
		"TooLarge":        {reason: "what is said to be too large is not asked for", ref: chartsource.ChartRef{Version: "large"}, want: bad(nf.TooLarge, "", "")},
		"Basic":           {reason: "user and password", edit: func(r *registry) { r.auth = "basic" }, ref: chartsource.ChartRef{Version: "1.2.0", Username: "ann", Password: nf.Secret(password)}, want: good("1.2.0", ":1.2.0")},
		"BasicWrong":      {reason: "a wrong password", edit: func(r *registry) { r.auth = "basic" }, ref: chartsource.ChartRef{Version: "1.2.0", Username: "ann", Password: nf.Secret("x")}, want: bad(nf.Unreachable, "unauthorized", "")},
		"BasicNobody":     {reason: "nobody", edit: func(r *registry) { r.auth = "basic" }, ref: chartsource.ChartRef{Version: "1.2.0"}, want: bad(nf.Unreachable, "unauthorized", "")},
		"Bearer":          {reason: "user and password get a token", edit: func(r *registry) { r.auth = "bearer" }, ref: chartsource.ChartRef{Version: "^1", Username: "ann", Password: nf.Secret(password)}, want: good("1.10.0+build.5", ":1.10.0_build.5")},
		"TokenBasic":      {reason: "a token is not a password", edit: func(r *registry) { r.auth = "basic" }, ref: chartsource.ChartRef{Version: "1.2.0", Password: nf.Secret(token)}, want: bad(nf.Unreachable, "unauthorized", "")},
		"BearerWrong":     {reason: "or not", edit: func(r *registry) { r.auth = "bearer" }, ref: chartsource.ChartRef{Version: "1.2.0", Username: "ann", Password: nf.Secret("x")}, want: bad(nf.Unreachable, "unauthorized", "")},
		"BearerNobody":    {reason: "anonymous access is not enough", edit: func(r *registry) { r.auth = "bearer" }, ref: chartsource.ChartRef{Version: "1.2.0"}, want: bad(nf.Unreachable, "unauthorized", "")},
		"Token":           {reason: "a token without a user", edit: func(r *registry) { r.auth = "bearer" }, ref: chartsource.ChartRef{Version: "1.2.0", Password: nf.Secret(token)}, want: good("1.2.0", ":1.2.0")},
		"RealmElsewhere":  {reason: "credentials do not go to a host that is not allowed", edit: func(r *registry) { r.auth, r.realm = "bearer", "https://198.51.100.7/token" }, ref: chartsource.ChartRef{Version: "1.2.0", Username: "ann", Password: nf.Secret(password)}, want: bad(nf.Forbidden, "", "")},
		"RealmPlain":      {reason: "nor to one without TLS", edit: func(r *registry) { r.auth, r.realm = "bearer", "http://127.0.0.1/token" }, ref: chartsource.ChartRef{Version: "1.2.0", Username: "ann", Password: nf.Secret(password)}, want: bad(nf.Forbidden, "", "")},
		"BlobElsewhere":   {reason: "nor does anything else", edit: func(r *registry) { r.redirect = "https://blobs.example.com/x" }, ref: chartsource.ChartRef{Version: "1.2.0"}, want: bad(nf.Forbidden, "", "")},
		"BlobUnencrypted": {reason: "nor without TLS", edit: func(r *registry) { r.redirect = "http://127.0.0.1/x" }, ref: chartsource.ChartRef{Version: "1.2.0"}, want: bad(nf.Forbidden, "", "")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRegistry()
			u, roots := serve(t, r)
			if r.url = u.String(); tc.edit != nil {
				tc.edit(r)
			}
			if tc.path == "" {
				tc.path = "/" + repository
			}
			tc.ref.URL = "oci://" + u.Host + tc.path
			s := newSource(t, chartsource.Config{Allow: []string{"127.0.0.1"}, Roots: roots})
			if diff := cmp.Diff(tc.want, fetch(t, s, tc.ref, u.Host)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if asked := r.heard(); name == "PinnedOther" && slices.ContainsFunc(asked, func(line string) bool { return strings.Contains(line, "/blobs/") }) {
				t.Errorf("the archive was downloaded in vain: %q", asked)
			}
		})
	}
}

// TestFetchEnds checks that a source which keeps silent is not waited for.
func TestFetchEnds(t *testing.T) {
	t.Parallel()
	u, roots := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	ref := chartsource.ChartRef{URL: "oci://" + u.Host + "/charts/web", Version: "1.2.0"}
	s := newSource(t, chartsource.Config{Allow: []string{"127.0.0.1"}, Roots: roots, Timeout: 50 * time.Millisecond})
	if _, err := fetchInto(t.Context(), s, ref); nf.KindOf(err) != nf.Unreachable || nf.ReasonOf(err) != "timeout" {
		t.Errorf("a source that keeps silent: %v", err)
	}
	s = newSource(t, chartsource.Config{Allow: []string{"127.0.0.1"}, Roots: roots})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := fetchInto(gone, s, ref); nf.KindOf(err) != nf.Cancelled {
		t.Errorf("a caller who has gone: %v", err)
	}
}
