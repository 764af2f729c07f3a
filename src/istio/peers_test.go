package istio_test

import (
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/istio"
)

func TestParsePeersRefuses(t *testing.T) {
	t.Parallel()
	for entry, reason := range map[string]string{
		"":                                           "an entry is not empty",
		"so":                                         "an id has the scheme",
		"https://cluster.local/x":                    "an id has the scheme spiffe",
		"SPIFFE://cluster.local/x":                   "the scheme is in lower case",
		"spiffe://":                                  "an id has a trust domain",
		"spiffe:///ns/x":                             "an id has a trust domain",
		"spiffe://Cluster.local/x":                   "a trust domain is in lower case",
		"spiffe://cluster.local:80/x":                "a trust domain has no port",
		"spiffe://u@cluster.local/x":                 "a trust domain has no user",
		"spiffe://cluster.local/a//b":                "a path has no empty segment",
		"spiffe://cluster.local//":                   "a path has no empty segment at its end",
		"spiffe://cluster.local/../x":                "a path has no dots",
		"spiffe://cluster.local/a%2Fb":               "a path is not encoded",
		"spiffe://cluster.local/a?b":                 "an id has no query",
		"spiffe://cluster.local/a#b":                 "an id has no fragment",
		"spiffe://cluster.local/ns/*/so":             "an entry is not a pattern",
		"spiffe://x/" + strings.Repeat("a", 2048):    "an id is not too long",
		"spiffe://" + strings.Repeat("a", 256) + "/": "a trust domain is not too long",
	} {
		if _, err := istio.ParsePeers([]string{"spiffe://cluster.local/ok", entry}); err == nil {
			t.Errorf("%s: %q is accepted", reason, entry)
		}
	}
	for _, entry := range []string{"spiffe://a", "spiffe://a/", "spiffe://a.b-c_d/ns/x/sa/Y_1.2-3", "spiffe://a/ns/"} {
		if _, err := istio.ParsePeers([]string{entry}); err != nil {
			t.Errorf("%q: %v", entry, err)
		}
	}
}

func FuzzParsePeers(f *testing.F) {
	for _, seed := range []string{"spiffe://a/ns/b/sa/c", "spiffe://a/", "x", "spiffe://a/%2e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		if _, err := istio.ParsePeers([]string{entry}); err == nil && (strings.ContainsAny(entry, "%?#@: \n*") != strings.Contains(entry, ":") || strings.Count(entry, ":") != 1) {
			t.Errorf("%q is accepted", entry)
		}
	})
}
