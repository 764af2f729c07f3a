package native_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
)

// sharedKeys stands in for networks, and sitesKeys for sites. Both note the keys of requests,
// and reject them.
type sharedKeys struct {
	native.Shared
	native.KindOperations

	s *standIn
}

type (
	siteStore = native.Sites
	sitesKeys struct {
		siteStore

		s *standIn
	}
)

// noted notes a key.
func (s *standIn) noted(key nf.RequestKey) (nf.Operation, error) {
	s.ask(key)
	return nf.Operation{}, nf.E(nf.Busy, "change", "it", nil)
}

func (k sharedKeys) Change(_ context.Context, _ string, req nf.SharedChangeRequest) (nf.Operation, error) {
	return k.s.noted(req.Key)
}

func (k sharedKeys) Release(_ context.Context, _ string, req nf.SharedReleaseRequest) (nf.Operation, error) {
	return k.s.noted(req.Key)
}

func (k sitesKeys) RemoveSite(_ context.Context, _ string, req nf.SiteRemoveRequest, _ bool) (nf.Operation, error) {
	return k.s.noted(req.Key)
}

// TestKeysOfQueries makes requests that differ only in the options of their queries. A
// request without options has the digest of earlier releases.
func TestKeysOfQueries(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, request, header, body string
		earlier                       string // the end of what is hashed without options
		queries                       []string
	}{
		"Change":  {"a restart changes more", "PATCH /v1/networks/east.lan", asPatch, `{"keep": true}`, `{"keep":true}`, []string{"?restart=true"}},
		"Release": {"each holder has its hold", "DELETE /v1/networks/east.lan", asJSON, "", "null", []string{"?holder=a", "?holder=b", "?if_unused=true", "?holder=a&if_unused=true"}},
		"Site":    {"what remains is another end", "DELETE /v1/sites/edge", asJSON, "", "null", []string{"?keep_hosts=true", "?cascade=true", "?keep_hosts=true&cascade=true"}},
	}
	s := newStandIn()
	cfg, networks := config(s), sharedKeys{s: s}
	cfg.Networks, cfg.NetworkOperations, cfg.Sites, cfg.SiteOperations = networks, networks, sitesKeys{s: s}, networks
	api, err := native.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := northbound.New(northbound.Config{Swagger: k8splugin.Swagger, APIs: []northbound.API{api}})
	if err != nil {
		t.Fatal(err)
	}
	site := serveHandler(t, handler)
	for name, c := range cases {
		digest := func(query string) string {
			s.ask(nil)
			site.ask(t, c.request+query, c.body, c.header, "Idempotency-Key: k")
			return keyOf(t, s).Digest
		}
		sum := sha256.Sum256([]byte(c.request + "\n" + c.earlier))
		plain := "sha256:" + hex.EncodeToString(sum[:])
		if with := digest("?timeout=9m"); digest("") != plain || with != plain {
			t.Errorf("%s: without options, the digest is %s and not that of earlier releases", name, with)
		}
		seen := map[string]string{plain: "no options"}
		for _, query := range c.queries {
			d := digest(query)
			if other, taken := seen[d]; taken {
				t.Errorf("%s: %s: %s is the same request as %s", name, c.reason, query, other)
			}
			seen[d] = query
		}
	}
}
