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
	"oras.land/oras-go/v2/registry"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// maxIndex is the maximum size of a repository's index in bytes. The largest
// public ones have about 20 MiB.
const maxIndex = 32 << 20

// fromRepository fetches a chart from an HTTP chart repository, or an archive
// by its own URL. The index may refer to a registry.
func (s *Source) fromRepository(ctx context.Context, want wanted, into *receiver) (fetched, error) {
	at, entry := want.url, indexEntry{Version: want.Version}
	if want.Name != "" {
		var err error
		if entry, err = s.find(ctx, want); err != nil {
			return fetched{}, err
		}
		if at, err = entry.at(want.url); err != nil {
			return fetched{}, err
		}
	} else if !want.Archive && !strings.HasSuffix(at.Path, ".tgz") && !strings.HasSuffix(at.Path, ".tar.gz") {
		return fetched{}, nf.Violations{{Field: "chart.name", Message: "is missing: the URL is that of a repository, which can contain many charts"}}
	}
	if at.Scheme == "oci" {
		return s.fromEntry(ctx, want, entry, at, into)
	}
	if err := s.get(ctx, want, at, s.cfg.Limit, into.receive); err != nil {
		return fetched{}, err
	}
	c := fetched{Chart: Chart{Version: entry.Version, Source: shown(at.String())}}
	return c, entry.verify(into.digest, "")
}

// fromEntry fetches the chart of an index entry from the registry at which it is.
// It sends the credentials only if the repository has the same origin.
func (s *Source) fromEntry(ctx context.Context, want wanted, entry indexEntry, at *url.URL, into *receiver) (fetched, error) {
	ref, err := registry.ParseReference(at.Host + at.Path)
	if err != nil {
		return fetched{}, broken("the URL of version " + entry.Version + " is not that of a chart in a registry")
	}
	if !sameOrigin(s.origin(ref), want.url) {
		want.Username, want.Password = "", nil
	}
	want.url, want.Name, want.Version = at, "", ""
	if ref.Reference == "" {
		want.Version = entry.Version
	}
	c, err := s.fromRegistry(ctx, want, into)
	if err != nil {
		return fetched{}, err
	}
	c.Version = entry.Version
	return c, entry.verify(into.digest, c.manifest)
}

// find returns the entry of the requested chart in a repository's index.
func (s *Source) find(ctx context.Context, want wanted) (indexEntry, error) {
	at := want.url.JoinPath("index.yaml") // keeps "%2F", which GitLab distinguishes from a slash
	var document []byte
	read := func(body io.Reader) (err error) {
		document, err = io.ReadAll(body)
		return err
	}
	if err := s.get(ctx, want, at, maxIndex, read); err != nil {
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

// get requests a URL and passes the response body to read. It sends the
// credentials only to the host that the reference names.
func (s *Source) get(ctx context.Context, want wanted, at *url.URL, limit int64, read func(io.Reader) error) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return fmt.Errorf("cannot create the request: %w", err)
	}
	r.Header.Set("User-Agent", userAgent)
	if sameOrigin(at, want.url) && len(want.Password) > 0 {
		if want.Username != "" {
			r.SetBasicAuth(want.Username, string(want.Password))
		} else {
			r.Header.Set("Authorization", "Bearer "+string(want.Password))
		}
	}
	res, err := s.send(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return refusal(res.StatusCode)
	}
	if err := check(res.ContentLength, limit); err != nil {
		return err
	}
	limited := &io.LimitedReader{R: res.Body, N: limit + 1}
	if err := read(limited); err != nil {
		return fmt.Errorf("the response ended too early: %w", err)
	}
	return check(limit+1-limited.N, limit)
}

// indexEntry is one version of a chart in the index of a repository.
type indexEntry struct {
	Version string   `yaml:"version"`
	URLs    []string `yaml:"urls"`
	Digest  string   `yaml:"digest"`
}

// at returns the URL of the archive, or of the chart in a registry. A relative URL
// is resolved against the repository's URL.
func (e indexEntry) at(repository *url.URL) (*url.URL, error) {
	if len(e.URLs) == 0 {
		return nil, broken("it lacks the URL of version " + e.Version)
	}
	ref, err := url.Parse(e.URLs[0])
	if err != nil || ref.User != nil {
		return nil, broken("the URL of version " + e.Version + " is not a URL")
	}
	at := repository.JoinPath("/").ResolveReference(ref)
	switch {
	case at.Host == "" || at.Scheme != "https" && at.Scheme != "http" && at.Scheme != "oci":
		return nil, broken("the URL of version " + e.Version + " is not an http, https or oci URL")
	case at.Scheme != "oci" && at.RawQuery == "" && at.Host == repository.Host:
		at.RawQuery = repository.RawQuery // it may contain credentials of the repository
	}
	return at, nil
}

// verify compares the digest in the index, if there is one, with that of the
// archive. In a registry, it may also be that of the manifest.
func (e indexEntry) verify(archive, manifest string) error {
	if e.Digest == "" {
		return nil
	}
	said := "sha256:" + strings.TrimPrefix(strings.ToLower(e.Digest), "sha256:")
	if said != archive && said != manifest {
		return broken(fmt.Sprintf("its digest of version %s is %s, but the archive's digest is %s", e.Version, said, archive))
	}
	return nil
}

func broken(what string) error {
	return nf.E(nf.Invalid, "use", "the repository's index", errors.New(what))
}

// entriesOf returns the entries of a chart in a repository's index. It decodes
// no other entries.
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
		return nil, broken("its entries are missing")
	}
	chart := child(entries, name)
	if chart == nil || len(chart.Content) == 0 {
		return nil, nf.E(nf.NotFound, "find", fmt.Sprintf("chart %q in the repository", name), nil)
	}
	var out []indexEntry
	for _, item := range chart.Content {
		var e indexEntry
		if item.Decode(&e) == nil && e.Version != "" { // an invalid entry does not affect the others
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
