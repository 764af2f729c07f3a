package helm

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

var _ render.Adopter = Renderer{}

// maxRelease bounds what is read of a release.
const maxRelease = 32 << 20

// The marks of Helm on what it has installed.
const (
	releaseName      = "meta.helm.sh/release-name"
	releaseNamespace = "meta.helm.sh/release-namespace"
)

// release is what Helm keeps of a revision, as far as it is needed; see
// release.Release in its module.
type release struct {
	Version int `json:"version"`
	Info    struct {
		Status string `json:"status"`
	} `json:"info"`
	Chart struct {
		Metadata struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"metadata"`
	} `json:"chart"`
	Config   map[string]any `json:"config"`
	Manifest string         `json:"manifest"`
	Hooks    []struct {
		Path     string `json:"path"`
		Manifest string `json:"manifest"`
	} `json:"hooks"`
}

// Released returns what the newest revision of a release consists of, from the
// record that Helm keeps in a Secret of the release's namespace. A release whose
// record is elsewhere, in a ConfigMap or a database, is nf.NotFound.
func (h Renderer) Released(ctx context.Context, in render.Input) (render.Output, nf.Inputs, nf.Claim, error) {
	fail := func(err error) (render.Output, nf.Inputs, nf.Claim, error) {
		return render.Output{}, nf.Inputs{}, nf.Claim{}, err
	}
	record, err := newest(ctx, in) // before entering: the region may be slow
	if err != nil {
		return fail(err)
	}
	leave, err := h.gate.enter(ctx)
	if err != nil {
		return fail(err)
	}
	defer leave()
	rel, err := deployed(record, in.Release.Name)
	if err != nil {
		return fail(err)
	}
	r := &report{}
	s, ok := load(in.Files, r)
	if !ok {
		return fail(r.err("adopt"))
	}
	if name := rel.Chart.Metadata.Name; name != s.Name() {
		return fail(nf.E(nf.Conflict, "adopt", "release "+in.Release.Name, fmt.Errorf("it is of the chart %q, and the package is %q", name, s.Name())))
	}
	inputs := nf.Inputs{Parameters: rel.Config}
	names := secretNames(s.Chart).In(inputs)
	r.hide(inputs, names)
	d := &decoder{ctx: ctx, report: r}
	p := plan{definitions: d.definitions(s.Chart)}
	for _, doc := range split("manifest", rel.Manifest) {
		for _, o := range d.objects(sourceOf(doc.text), doc.text) {
			p.sort(o, r)
		}
	}
	for _, h := range rel.Hooks {
		for _, o := range d.objects(h.Path, h.Manifest) {
			p.sort(o, r)
		}
	}
	if version := rel.Chart.Metadata.Version; version != s.Metadata.Version {
		r.warn("the release is of version %s of the chart, and the package has %s", version, s.Metadata.Version)
	}
	if ctx.Err() != nil {
		return fail(ended(ctx).at(s.at(chartFile)))
	}
	if err := r.err("adopt"); err != nil {
		return fail(err)
	}
	out := render.Output{Groups: p.groups(s.Name()), Hooks: p.hooks, Warnings: r.warnings, Sensitive: names}
	claim := nf.Claim{Annotations: map[string]string{releaseName: in.Release.Name, releaseNamespace: in.Release.Namespace}}
	return out, inputs, claim, nil
}

var sourceLine = regexp.MustCompile(`(?m)^# Source: (\S+)`)

// sourceOf returns the template that printed a document, as Helm notes it.
func sourceOf(text string) string {
	if found := sourceLine.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return "manifest"
}

// newest returns the Secret of the newest revision of a release.
func newest(ctx context.Context, in render.Input) (map[string]any, error) {
	subject := "release " + in.Release.Name
	if in.Region == nil {
		return nil, nf.E(nf.Unsupported, "adopt", subject, errors.New("there is no region to look into"))
	}
	list, err := in.Region.Lookup(ctx, nf.Ref{Version: "v1", Kind: "Secret", Namespace: in.Release.Namespace})
	if err != nil {
		return nil, err
	}
	var found map[string]any
	last := 0
	items, _ := list["items"].([]any)
	for _, item := range items {
		secret, _ := item.(map[string]any)
		if version := versionOf(secret, in.Release.Name); version > last {
			found, last = secret, version
		}
	}
	if found == nil {
		return nil, nf.E(nf.NotFound, "adopt", subject, fmt.Errorf("namespace %s has no Secret in which Helm keeps it", in.Release.Namespace))
	}
	return found, nil
}

// deployed reads a revision of a release, which must be in force.
func deployed(record map[string]any, name string) (release, error) {
	subject := "release " + name
	rel, err := decodeRelease(record, subject)
	if err != nil {
		return release{}, err
	}
	if rel.Info.Status != "deployed" {
		return release{}, nf.E(nf.Conflict, "adopt", subject, fmt.Errorf("revision %d of it is %s", rel.Version, rel.Info.Status))
	}
	return rel, nil
}

// versionOf returns the revision that a Secret holds of a release, or 0.
func versionOf(secret map[string]any, name string) int {
	meta, _ := secret["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	if labels["owner"] != "helm" || labels["name"] != name {
		return 0
	}
	text, _ := labels["version"].(string)
	version, _ := strconv.Atoi(text)
	return version
}

// decodeRelease reads the record: JSON, compressed, as base64 in a Secret.
func decodeRelease(secret map[string]any, subject string) (release, error) {
	refuse := func(kind nf.Kind, format string, args ...any) (release, error) {
		return release{}, nf.E(kind, "read", subject, fmt.Errorf(format, args...))
	}
	data, _ := secret["data"].(map[string]any)
	written, _ := data["release"].(string)
	outer, err := base64.StdEncoding.DecodeString(written)
	if err != nil {
		return refuse(nf.Invalid, "its record is not base64")
	}
	inner, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(outer)))
	if err != nil {
		return refuse(nf.Invalid, "its record is not base64 within base64")
	}
	text := inner
	if bytes.HasPrefix(inner, []byte("\x1f\x8b")) {
		unzipped, err := gzip.NewReader(bytes.NewReader(inner))
		if err != nil {
			return refuse(nf.Invalid, "its record is not compressed as it says")
		}
		if text, err = io.ReadAll(io.LimitReader(unzipped, maxRelease+1)); err != nil {
			return refuse(nf.Invalid, "its record is broken off")
		}
	}
	if len(text) > maxRelease {
		return refuse(nf.TooLarge, "its record has more than %d bytes", maxRelease)
	}
	var rel struct {
		release

		// They are decoded when it is known how much they make.
		Config stdjson.RawMessage `json:"config"`
		Hooks  stdjson.RawMessage `json:"hooks"`
	}
	if err := json.Unmarshal(text, &rel); err != nil {
		return refuse(nf.Invalid, "its record is not the JSON that Helm writes")
	}
	if marks(rel.Config)+marks(rel.Hooks) > maxMarks {
		return refuse(nf.TooLarge, "its values and hooks have more than %d parts", maxMarks)
	}
	for raw, into := range map[*stdjson.RawMessage]any{&rel.Config: &rel.release.Config, &rel.Hooks: &rel.release.Hooks} {
		if len(*raw) > 0 && json.Unmarshal(*raw, into) != nil {
			return refuse(nf.Invalid, "its record is not the JSON that Helm writes")
		}
	}
	return rel.release, nil
}
