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

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

var _ render.Adopter = Renderer{}

// maxRelease is the maximum size of a release record in bytes.
const maxRelease = 32 << 20

// The annotations that Helm sets on installed objects.
const (
	releaseName      = "meta.helm.sh/release-name"
	releaseNamespace = "meta.helm.sh/release-namespace"
)

// release is the part of a revision's record that is needed here; see
// release.Release in Helm's module.
type release struct {
	Version int `json:"version"`
	Info    struct {
		Status string `json:"status"`
		Notes  string `json:"notes"`
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

// Released returns the content of the newest revision of a release, from the
// record that Helm stores in a Secret of the release's namespace. It returns
// nf.NotFound for a release whose record is elsewhere, such as in a ConfigMap
// or a database.
func (h Renderer) Released(ctx context.Context, in render.Input) (render.Output, nf.Inputs, nf.AdoptionSelector, error) {
	fail := func(err error) (render.Output, nf.Inputs, nf.AdoptionSelector, error) {
		return render.Output{}, nf.Inputs{}, nf.AdoptionSelector{}, err
	}
	record, err := newest(ctx, in) // before entering: the region may be slow
	if err != nil {
		return fail(err)
	}
	turn, err := h.gate.Enter(ctx, "")
	if err != nil {
		return fail(err)
	}
	defer turn.Leave()
	rel, err := deployed(record, in.Release.Name)
	if err != nil {
		return fail(err)
	}
	r := &report{}
	s, ok := load(in.Files, r)
	if !ok {
		return fail(r.err("adopt"))
	}
	if name := rel.Chart.Metadata.Name; name != s.chart.Name() {
		return fail(nf.E(nf.Conflict, "adopt", "release "+in.Release.Name, fmt.Errorf("its chart is %q, but the package's chart is %q", name, s.chart.Name())))
	}
	inputs := nf.Inputs{Parameters: rel.Config}
	secrets := secretNames(s.chart, inputs)
	names, defaults := secrets.In(inputs), defaultTexts(s.chart, secrets)
	r.hide(append(inputs.Secrets(names), defaults...))
	enable(s, userValues(inputs, r), r) // Helm has not installed the definitions of other subcharts
	p := (&decoder{ctx: ctx, report: r}).planOfRelease(rel, s.chart)
	if version := rel.Chart.Metadata.Version; version != s.chart.Metadata.Version {
		r.warn("the release has version %s of the chart, but the package has %s", version, s.chart.Metadata.Version)
	}
	if ctx.Err() != nil {
		return fail(ended(ctx).at(s.at(chartFile)))
	}
	if err := r.err("adopt"); err != nil {
		return fail(err)
	}
	out := render.Output{
		Groups: p.groups(s.chart.Name()), Hooks: p.hooks, Warnings: r.warnings, Notes: strings.TrimSpace(rel.Info.Notes), Sensitive: names, Secrets: defaults,
	}
	selector := nf.AdoptionSelector{Annotations: map[string]string{releaseName: in.Release.Name, releaseNamespace: in.Release.Namespace}}
	return out, inputs, selector, nil
}

// planOfRelease returns the objects and hooks of a release, and the definitions
// of its chart.
func (d *decoder) planOfRelease(rel release, c *chart.Chart) plan {
	p := d.planOf(c)
	for _, doc := range split("manifest", rel.Manifest) {
		for _, o := range d.objects(sourceOf(doc.text), doc.text) {
			p.sort(o, d.report)
		}
	}
	for _, h := range rel.Hooks {
		for _, o := range d.objects(h.Path, h.Manifest) {
			p.sort(o, d.report)
		}
	}
	return p
}

var sourceLine = regexp.MustCompile(`(?m)^# Source: (\S+)`)

// sourceOf returns the template that printed a document, according to Helm's
// comment.
func sourceOf(text string) string {
	if found := sourceLine.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return "manifest"
}

// newest returns the Secret with the newest revision of a release.
func newest(ctx context.Context, in render.Input) (map[string]any, error) {
	subject := "release " + in.Release.Name
	if in.Region == nil {
		return nil, nf.E(nf.Unsupported, "adopt", subject, errors.New("the region is not available"))
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
		return nil, nf.E(nf.NotFound, "adopt", subject, fmt.Errorf("namespace %s lacks the Secret in which Helm stores it", in.Release.Namespace))
	}
	return found, nil
}

// deployed reads a revision of a release. It returns nf.Conflict unless its
// status is deployed.
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

// versionOf returns the revision number of a release's Secret, or 0 for any
// other Secret.
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

// decodeRelease decodes a release record: compressed JSON as base64, which the
// Secret encodes as base64 again.
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
			return refuse(nf.Invalid, "its record is not valid gzip data")
		}
		if text, err = io.ReadAll(io.LimitReader(unzipped, maxRelease+1)); err != nil {
			return refuse(nf.Invalid, "its record is truncated")
		}
	}
	if len(text) > maxRelease {
		return refuse(nf.TooLarge, "its record has more than %d bytes", maxRelease)
	}
	var rel struct {
		release

		// They are decoded after their number of values is checked.
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
