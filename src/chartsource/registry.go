package chartsource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// The media types of a chart in a registry.
const (
	chartConfig      = "application/vnd.cncf.helm.config.v1+json"
	chartLayer       = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	chartLayerLegacy = "application/tar+gzip"
)

const (
	maxManifest = 4 << 20
	maxTagPages = 100
	maxTags     = 100_000
)

// fromRegistry fetches a chart from an OCI registry.
func (s *Source) fromRegistry(ctx context.Context, want wanted, into *receiver) (fetched, error) {
	repo, err := s.repository(want)
	if err != nil {
		return fetched{}, err
	}
	reference, err := referenceOf(ctx, repo, want.Version)
	if err != nil {
		return fetched{}, err
	}
	desc, body, err := repo.Manifests().FetchReference(ctx, reference)
	if err != nil {
		return fetched{}, err
	}
	defer body.Close()
	if err := check(desc.Size, maxManifest); err != nil {
		return fetched{}, err
	}
	document, err := content.ReadAll(body, desc)
	if err != nil {
		return fetched{}, fmt.Errorf("cannot read the manifest: %w", err)
	}
	layer, version, err := chartIn(document)
	if err != nil {
		return fetched{}, err
	}
	manifest := desc.Digest.String()
	// Compare digests before the download: a wrong archive need not be fetched.
	if is := layer.Digest.String(); want.Digest != "" && want.Digest != is && want.Digest != manifest {
		return fetched{}, differs(want.Digest, is)
	}
	if err := check(layer.Size, s.cfg.Limit); err != nil {
		return fetched{}, err
	}
	if err := receive(ctx, repo.Blobs(), layer, into); err != nil {
		return fetched{}, fmt.Errorf("cannot read the archive: %w", err)
	}
	source := "oci://" + repo.Reference.Registry + "/" + repo.Reference.Repository
	if strings.HasPrefix(reference, "sha256:") {
		source += "@" + reference
	} else {
		source, version = source+":"+reference, versionOf(reference)
	}
	return fetched{Chart{Version: version, Source: source}, manifest}, nil
}

// receive passes on a blob, and checks it against its descriptor.
func receive(ctx context.Context, from content.Fetcher, desc ocispec.Descriptor, into *receiver) error {
	body, err := from.Fetch(ctx, desc)
	if err != nil {
		return err
	}
	defer body.Close()
	sound := content.NewVerifyReader(body, desc)
	if err := into.receive(sound); err != nil {
		return err
	}
	return sound.Verify()
}

// repository returns the client of the repository that a reference names. If
// the reference has no version, the tag or digest in the URL is used.
func (s *Source) repository(want wanted) (*remote.Repository, error) {
	ref, err := registry.ParseReference(want.url.Host + path.Join("/", want.url.Path, want.Name))
	if err != nil || ref.Reference != "" && want.Version != "" && ref.Reference != want.Version {
		return nil, nf.Violations{{Field: "chart.url", Message: "does not name a repository of a registry, or its tag differs from version"}}
	}
	at := s.origin(ref)
	return &remote.Repository{
		Client:             &login{source: s, registry: at, username: want.Username, password: want.Password},
		Reference:          ref,
		PlainHTTP:          at.Scheme == "http",
		TagListMaxPages:    maxTagPages,
		ManifestMediaTypes: []string{ocispec.MediaTypeImageManifest},
	}, nil
}

// origin returns the URL of the registry of a reference, without a path.
func (s *Source) origin(ref registry.Reference) *url.URL {
	if plain := (&url.URL{Scheme: "http", Host: ref.Host()}); s.plain.match(plain) {
		return plain
	}
	return &url.URL{Scheme: "https", Host: ref.Host()}
}

const userAgent = "k8splugin"

// referenceOf returns the tag or digest of a version. For a range, it lists all
// tags of the repository.
func referenceOf(ctx context.Context, repo *remote.Repository, version string) (string, error) {
	if version == "" && repo.Reference.Reference != "" {
		return repo.Reference.Reference, nil
	}
	if exact(version) {
		return strings.ReplaceAll(version, "+", "_"), nil // tags cannot contain a plus sign
	}
	var tags []string
	err := repo.Tags(ctx, "", func(page []string) error {
		if tags = append(tags, page...); len(tags) > maxTags {
			return nf.E(nf.TooLarge, "read", "the list of tags", fmt.Errorf("there are more than %d", maxTags))
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	versions := make([]string, len(tags))
	for i, tag := range tags {
		versions[i] = versionOf(tag)
	}
	found, err := pick(versions, version)
	if err != nil {
		return "", err
	}
	return tags[found], nil
}

// exact reports whether a version can be used without listing tags: it is a
// single version, a digest, or a tag that is not a version range.
func exact(version string) bool {
	if version == "" {
		return false
	}
	if _, err := semver.NewVersion(version); err == nil {
		return true
	}
	_, err := semver.NewConstraint(version)
	return err != nil
}

// versionOf returns the version that a tag stands for.
func versionOf(tag string) string { return strings.ReplaceAll(tag, "_", "+") }

// chartIn returns the layer of a manifest that holds the chart, and the version
// in the manifest's annotations.
func chartIn(document []byte) (layer ocispec.Descriptor, version string, err error) {
	var m ocispec.Manifest
	if err := json.Unmarshal(document, &m); err != nil {
		return layer, "", nf.E(nf.Invalid, "read", "its manifest", errors.New("it is not an OCI manifest"))
	}
	at := slices.IndexFunc(m.Layers, func(d ocispec.Descriptor) bool {
		return d.MediaType == chartLayer || d.MediaType == chartLayerLegacy
	})
	if m.Config.MediaType != chartConfig || at < 0 {
		return layer, "", nf.E(nf.Invalid, "read", "its manifest", fmt.Errorf("it describes %q, not a chart", m.Config.MediaType))
	}
	layer = m.Layers[at]
	if err := layer.Digest.Validate(); err != nil || layer.Size < 0 {
		return layer, "", nf.E(nf.Invalid, "read", "its manifest", errors.New("the layer of the chart lacks its digest or size"))
	}
	return layer, m.Annotations[ocispec.AnnotationVersion], nil
}
