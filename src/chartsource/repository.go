package chartsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

// maxIndex is how large the index of a repository may be. The largest public
// ones have some 20 MiB.
const maxIndex = 32 << 20

// fromRepository fetches a chart from an HTTP chart repository, or an archive
// that is named by its own URL.
func (s *Source) fromRepository(ctx context.Context, want wanted) (fetched, error) {
	at, entry := want.url, indexEntry{Version: want.Version}
	if want.Name != "" {
		var err error
		if entry, err = s.find(ctx, want); err != nil {
			return fetched{}, err
		}
		if at, err = entry.at(want.url); err != nil {
			return fetched{}, err
		}
	} else if !strings.HasSuffix(at.Path, ".tgz") && !strings.HasSuffix(at.Path, ".tar.gz") {
		return fetched{}, nf.Violations{{Field: "chart.name", Message: "is missing: the URL is that of a repository, which has many charts"}}
	}
	archive, err := s.get(ctx, want, at, s.cfg.Limit)
	if err != nil {
		return fetched{}, err
	}
	c := fetched{Chart: Chart{Archive: archive, Version: entry.Version, Source: shown(at.String())}}
	return c, entry.verify(archive)
}

// find asks a repository which archive is wanted.
func (s *Source) find(ctx context.Context, want wanted) (indexEntry, error) {
	at := *want.url
	at.Path, at.RawPath = strings.TrimSuffix(at.Path, "/")+"/index.yaml", ""
	document, err := s.get(ctx, want, &at, maxIndex)
	if err != nil {
		return indexEntry{}, err
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	entries, err := entriesOf(document, want.Name)
	if err != nil {
		return indexEntry{}, err
	}
	versions := make([]string, len(entries))
	for i, e := range entries {
		versions[i] = e.Version
	}
	found, err := pick(versions, want.Version)
	if err != nil {
		return indexEntry{}, err
	}
	return entries[found], nil
}

// get reads what is at a URL. The credentials are those of the host that the
// reference names: nobody else is told them.
func (s *Source) get(ctx context.Context, want wanted, at *url.URL, limit int64) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("cannot make the request: %w", err)
	}
	r.Header.Set("User-Agent", userAgent)
	if at.Scheme == want.url.Scheme && outbound.Name(at.Hostname()) == outbound.Name(want.url.Hostname()) && portOf(at) == portOf(want.url) && len(want.Password) > 0 {
		if want.Username != "" {
			r.SetBasicAuth(want.Username, string(want.Password))
		} else {
			r.Header.Set("Authorization", "Bearer "+string(want.Password))
		}
	}
	client := *s.client
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		// Another port is another server, which net/http does not mind.
		if next.URL.Scheme != at.Scheme || next.URL.Host != at.Host {
			next.Header.Del("Authorization")
		}
		return s.client.CheckRedirect(next, via)
	}
	res, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, refusal(res.StatusCode)
	}
	if err := check(res.ContentLength, limit); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("the answer broke off: %w", err)
	}
	return body, check(int64(len(body)), limit)
}

// indexEntry is one version of a chart, as the index of a repository has it.
type indexEntry struct {
	Version string   `yaml:"version"`
	URLs    []string `yaml:"urls"`
	Digest  string   `yaml:"digest"`
}

// at returns where the archive is. What is no whole URL is below that of the
// repository.
func (e indexEntry) at(repository *url.URL) (*url.URL, error) {
	if len(e.URLs) == 0 {
		return nil, broken("it does not say where version " + e.Version + " is")
	}
	ref, err := url.Parse(e.URLs[0])
	if err != nil || ref.User != nil {
		return nil, broken("the URL of version " + e.Version + " is none")
	}
	base := *repository
	base.Path, base.RawPath = strings.TrimSuffix(base.Path, "/")+"/", ""
	at := base.ResolveReference(ref)
	if at.Scheme != "https" && at.Scheme != "http" || at.Host == "" {
		return nil, broken("the URL of version " + e.Version + " is none of HTTP")
	}
	if at.RawQuery == "" && at.Host == base.Host {
		at.RawQuery = base.RawQuery // where a repository keeps what lets one in
	}
	return at, nil
}

// verify holds an archive against the digest that the index has of it.
func (e indexEntry) verify(archive []byte) error {
	if e.Digest == "" {
		return nil
	}
	said := "sha256:" + strings.TrimPrefix(strings.ToLower(e.Digest), "sha256:")
	if is := digestOf(archive); is != said {
		return broken(fmt.Sprintf("it says that the digest of version %s is %s, and it is %s", e.Version, said, is))
	}
	return nil
}

func broken(what string) error {
	return nf.E(nf.Invalid, "use", "the repository's index", errors.New(what))
}

// entriesOf returns what the index of a repository has of a chart. The rest of
// the index is only read as far as that takes.
func entriesOf(document []byte, name string) ([]indexEntry, error) {
	var index yaml.Node
	if err := yaml.Unmarshal(document, &index); err != nil {
		return nil, broken("it is not YAML")
	}
	if len(index.Content) == 0 {
		return nil, broken("it is empty")
	}
	entries := child(index.Content[0], "entries")
	if entries == nil {
		return nil, broken("it has no entries")
	}
	chart := child(entries, name)
	if chart == nil || len(chart.Content) == 0 {
		return nil, nf.E(nf.NotFound, "find", fmt.Sprintf("chart %q in the repository", name), nil)
	}
	var out []indexEntry
	for _, item := range chart.Content {
		var e indexEntry
		if item.Decode(&e) == nil && e.Version != "" { // one that is none does not spoil the others
			out = append(out, e)
		}
	}
	return out, nil
}

// child returns the value of a key, or nil. Decoding a map would compare every
// key with every other one.
func child(node *yaml.Node, key string) *yaml.Node {
	if node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}
