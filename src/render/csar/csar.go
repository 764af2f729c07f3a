package csar

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/csar"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// The parameters that select what an instance is created from.
const (
	FilesParameter = "lcm-kubernetes-def-files"
	ChartParameter = "helm_chart_path"
)

// Config has the renderers of what a CSAR contains. Both are required.
type Config struct {
	Manifests render.Renderer // of packages with a metadata.yaml
	Charts    render.Renderer
	Roots     *x509.CertPool // one of which must have certified the signer of a CSAR; nil: signatures are optional
}

// Renderer is the render.Renderer of CSARs.
type Renderer struct{ cfg Config }

var _ render.Verifier = Renderer{}

// New returns a Renderer.
func New(cfg Config) Renderer { return Renderer{cfg} }

// Fit implements render.Renderer. An archive with a metadata.yaml is a package of
// manifests, whatever else is in it.
func (Renderer) Fit(files render.Files) render.Fit {
	for _, name := range [...]string{"metadata.yaml", "metadata.yml"} {
		if _, found := files[name]; found {
			return render.NoFit
		}
	}
	if csar.Is(files) {
		return render.SureFit
	}
	return render.NoFit
}

// Check reads the structure of a CSAR, compares the files with their hashes, and verifies
// the signature of the manifest. Faults
// of its manifests and charts are warnings: a CSAR may have alternatives, of which an
// instance uses some. It returns nf.TooManyRequests if too many packages are being read
// or rendered.
func (r Renderer) Check(ctx context.Context, files render.Files) (render.Summary, error) {
	c, err := csar.Read(files)
	if err != nil {
		return render.Summary{}, err
	}
	if err := c.Verify(ctx, files, nil); err != nil {
		return render.Summary{}, err
	}
	if err := c.VerifySignature(files, r.cfg.Roots); err != nil {
		return render.Summary{}, err
	}
	out := render.Summary{Name: c.VNFD.Product, Version: c.VNFD.Version, VNFD: &c.VNFD, Warnings: c.Warnings}
	manifests, charts := kubernetes(c, files)
	for _, name := range manifests {
		_, err := r.cfg.Manifests.Check(ctx, manifestPackage(files, name))
		if err := warnOf(&out, name, err); err != nil {
			return render.Summary{}, err
		}
	}
	for _, name := range charts {
		chart, err := unpack(files, name)
		var of render.Summary
		if err == nil {
			of, err = r.cfg.Charts.Check(ctx, chart)
		}
		if err := warnOf(&out, name, err); err != nil {
			return render.Summary{}, err
		}
		if len(manifests) == 0 && len(charts) == 1 {
			out.Variables, out.Namespaces = of.Variables, of.Namespaces
		}
	}
	describe(&out, c, files, len(manifests) == 0 && len(charts) > 0)
	if len(manifests)+len(charts) == 0 {
		if err := r.checkTranslation(ctx, &out, c, files); err != nil {
			return render.Summary{}, err
		}
	}
	out.Warnings = capped(out.Warnings)
	return out, nil
}

// Verify implements render.Verifier.
func (Renderer) Verify(ctx context.Context, files render.Files, open func(name string) (io.ReadCloser, error)) error {
	if !slices.ContainsFunc(slices.Collect(maps.Keys(files)), files.PassedBy) {
		return nil // Check has verified all
	}
	c, err := csar.Read(files)
	if err != nil {
		return err
	}
	passed := render.Files{}
	for name := range files {
		if files.PassedBy(name) {
			passed[name] = nil
		}
	}
	c.VNFD.Artifacts = slices.DeleteFunc(slices.Clone(c.VNFD.Artifacts), func(a nf.PackageArtifact) bool { return !passed.PassedBy(a.Path) })
	return c.Verify(ctx, passed, open)
}

// Render renders the manifests or the chart that the parameters select, and gives the
// workloads of VDUs the pods of the instantiation level. The scripts of the flavor are
// hooks. It returns the errors of their renderer, and nf.Invalid for a file that is not an artifact of the
// CSAR, and for a flavor or level that its descriptor does not have.
func (r Renderer) Render(ctx context.Context, in render.Input) (render.Output, error) {
	c, err := csar.Read(in.Files)
	if err != nil {
		return render.Output{}, err
	}
	manifests, charts, err := selected(c, &in)
	if err != nil {
		return render.Output{}, err
	}
	size, err := sized(c, &in)
	if err != nil {
		return render.Output{}, err
	}
	hooks, warnings, err := size.hooks(&in)
	if err != nil {
		return render.Output{}, err
	}
	var out render.Output
	if len(manifests)+len(charts) > 0 {
		out, err = r.render(ctx, in, size, manifests, charts)
	} else {
		out, err = r.translated(ctx, in, c, size)
	}
	if err != nil {
		return out, err
	}
	if err := size.apply(&out); err != nil {
		return render.Output{}, err
	}
	out.Hooks, out.Warnings = append(out.Hooks, hooks...), append(out.Warnings, warnings...)
	return out, nil
}

// render renders the manifests, or the only chart.
func (r Renderer) render(ctx context.Context, in render.Input, size *sizing, manifests, charts []string) (render.Output, error) {
	switch {
	case len(manifests) > 0:
		in.Files = manifestPackage(in.Files, manifests...)
		out, err := r.cfg.Manifests.Render(ctx, in)
		if err != nil {
			return out, fmt.Errorf("cannot render the manifests: %w", err)
		}
		move(out, in.Builtins["namespace"])
		return out, nil
	case len(charts) > 1:
		return render.Output{}, unusable(ChartParameter, "is required: the CSAR has the charts "+strings.Join(charts[:min(len(charts), maxShown)], ", "))
	}
	chart, err := unpack(in.Files, charts[0])
	if err != nil {
		return render.Output{}, err
	}
	if err := size.helmValues(&in); err != nil {
		return render.Output{}, err
	}
	in.Files = chart
	out, err := r.cfg.Charts.Render(ctx, in)
	if err != nil {
		return out, fmt.Errorf("cannot render the chart %s: %w", charts[0], err)
	}
	return out, nil
}

// selected returns the manifests and the charts of an instance, and removes the
// parameters that select them.
func selected(c csar.CSAR, in *render.Input) (manifests, charts []string, err error) {
	if in.Inputs.Parameters = maps.Clone(in.Inputs.Parameters); in.Inputs.Parameters == nil {
		in.Inputs.Parameters = map[string]any{}
	}
	files, chosen := in.Inputs.Parameters[FilesParameter]
	chart, charted := in.Inputs.Parameters[ChartParameter]
	delete(in.Inputs.Parameters, FilesParameter)
	delete(in.Inputs.Parameters, ChartParameter)
	switch {
	case chosen && charted:
		return nil, nil, unusable(ChartParameter, "cannot be combined with "+FilesParameter)
	case chosen:
		manifests, err = listed(c, FilesParameter, files)
	case charted:
		if charts, err = listed(c, ChartParameter, chart); err == nil && len(charts) != 1 {
			err = unusable(ChartParameter, "must name one chart")
		}
	default:
		if name := external(c); name != "" {
			return nil, nil, unusable(FilesParameter, fmt.Sprintf("is required, because the CSAR does not contain its artifact %q, and the service does not download it", nf.Clip(name, maxQuote)))
		}
		if manifests, charts = kubernetes(c, in.Files); len(manifests) > 0 {
			charts = nil
		}
	}
	if chosen && err == nil && len(manifests) == 0 {
		err = unusable(FilesParameter, "must name a manifest, or be absent")
	}
	return manifests, charts, err
}

// external returns the first artifact that is not in the CSAR and may be a manifest or a
// chart, or "".
func external(c csar.CSAR) string {
	for _, a := range c.VNFD.Artifacts {
		at, err := url.Parse(a.Path)
		if err != nil || at.Scheme == "" {
			continue
		}
		switch strings.ToLower(path.Ext(at.Path)) {
		case ".yaml", ".yml", ".json", ".tgz":
			return a.Path
		}
	}
	return ""
}

// listed returns the artifacts that a parameter names: one, or a list.
func listed(c csar.CSAR, parameter string, value any) ([]string, error) {
	items, isList := value.([]any)
	if !isList {
		items = []any{value}
	}
	var out []string
	for i, item := range items {
		name, isText := item.(string)
		field := fmt.Sprintf("%s[%d]", parameter, i)
		if !isText || name == "" {
			return nil, unusable(field, "must be the path of an artifact")
		}
		if !slices.ContainsFunc(c.VNFD.Artifacts, func(a nf.PackageArtifact) bool { return a.Path == name }) {
			return nil, unusable(field, fmt.Sprintf("%q is not an artifact of the CSAR", nf.Clip(name, maxQuote)))
		}
		if strings.Contains(name, "://") {
			return nil, unusable(field, fmt.Sprintf("%q is not in the CSAR; only files in it can be used", nf.Clip(name, maxQuote)))
		}
		out = append(out, name)
	}
	return out, nil
}

func unusable(field, message string) error {
	return nf.E(nf.Invalid, "render", "the CSAR", nf.Violations{{Field: "parameters." + field, Message: message}})
}

const (
	maxShown = 50
	maxQuote = 200
)

// capped returns the warnings that are shown.
func capped(warnings []string) []string {
	if more := len(warnings) - maxShown; more > 0 {
		return append(warnings[:maxShown:maxShown], fmt.Sprintf("and %d more", more))
	}
	return warnings
}

// warnOf adds the faults of an artifact to the warnings. It returns an error that does
// not describe the artifact.
func warnOf(out *render.Summary, name string, err error) error {
	faults := nf.ViolationsOf(err)
	if err != nil && faults == nil {
		return fmt.Errorf("cannot check %s: %w", name, err)
	}
	for _, v := range faults {
		if len(out.Warnings) > maxShown {
			break
		}
		out.Warnings = append(out.Warnings, strings.TrimSpace(name+": "+v.String()))
	}
	return nil
}
