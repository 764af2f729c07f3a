package helm

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/multicloud-k8s/k8splugin/src/render"
)

// Renderer is the render.Renderer of Helm charts. The zero value is ready for
// use; it bounds each rendering, but not the number of renderings.
//
// A package contains one chart, at its top or in one folder. A List is replaced
// by its items. The line of an object is its line in the output of its
// template.
type Renderer struct {
	gate *render.Gate  // nil: no limit
	time time.Duration // of one rendering; 0: maxTime
	work int           // of one rendering; 0: maxWork
}

var _ render.Renderer = Renderer{}

// Config holds the limits of a Renderer.
type Config struct {
	// Time limits one rendering, including its lookups in the region, but not
	// its waits for the gate. 0 means 30 seconds.
	Time time.Duration
	// Gate limits how many charts are read or rendered at once. nil: no limit.
	Gate *render.Gate
}

// New returns a Renderer. Copies of it share its limits.
func New(c Config) Renderer { return Renderer{gate: c.Gate, time: c.Time} }

// Fit implements render.Renderer. A chart has a Chart.yaml, in a folder of its own or
// not.
func (Renderer) Fit(files render.Files) render.Fit {
	for name := range files {
		if folder, file := path.Split(name); file == chartFile && strings.Count(folder, "/") <= 1 {
			return render.LikelyFit
		}
	}
	return render.NoFit
}

// Check reads the chart with all its subcharts: their metadata, values, schemas
// and templates. It does not execute templates. Dependencies that the chart's
// own values enable must be present. It returns nf.TooManyRequests if too many charts
// are being read or rendered.
func (h Renderer) Check(ctx context.Context, files render.Files) (render.Summary, error) {
	turn, err := h.gate.Enter(ctx, "")
	if err != nil {
		return render.Summary{}, err
	}
	defer turn.Leave()
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(h.time, maxTime), errTime(cmp.Or(h.time, maxTime)))
	defer cancel()
	r := &report{}
	s, ok := load(files, r)
	if !ok {
		return render.Summary{}, r.err("check")
	}
	summary := render.Summary{
		Name: s.chart.Name(), Version: s.chart.Metadata.Version, Description: oneLine(s.chart.Metadata.Description, maxDescription),
		Variables: variables(s.chart), Namespaces: namespaces(s.chart, r),
	}
	profiles(s.chart, r)
	checkTemplates(ctx, s.chart, r)
	d := &decoder{ctx: ctx, report: r}
	d.definitions(s.chart)
	resolve(s, map[string]any{}, common.ReleaseOptions{}, nil, r)
	summary.Warnings = r.warnings
	if ctx.Err() != nil {
		return render.Summary{}, ended(ctx).at(s.at(chartFile))
	}
	if err := r.err("check"); err != nil {
		return render.Summary{}, err
	}
	return summary, nil
}

// Render renders the objects of one instance. It returns nf.Unsupported if the
// chart does not support the cluster's version of Kubernetes, and the region's
// error if the region cannot be queried. If the rendering exceeds a limit, it
// returns nf.TooLarge or nf.Timeout, or nf.Invalid for nesting that is too
// deep, with the template as violation. It returns nf.TooManyRequests if too many
// charts are being read or rendered.
func (h Renderer) Render(ctx context.Context, in render.Input) (render.Output, error) {
	r := &report{}
	caps, err := capabilities(ctx, in, r) // before entering: the region may be slow
	if err != nil {
		return render.Output{}, err
	}
	turn, err := h.gate.Enter(ctx, in.RegionID())
	if err != nil {
		return render.Output{}, err
	}
	defer turn.Leave()
	m := newMeter(ctx, cmp.Or(h.work, maxWork), cmp.Or(h.time, maxTime))
	defer m.close()
	s, ok := load(in.Files, r)
	if !ok {
		return render.Output{}, r.err("render")
	}
	secrets := secretNames(s.chart, in.Inputs)
	names, defaults := secrets.In(in.Inputs), defaultTexts(s.chart, secrets)
	r.hide(append(in.Inputs.Secrets(names), defaults...))
	l := &lookup{meter: m, region: in.Region, turn: turn, chart: s.chart, lint: in.Lint}
	printed, err := rendered(s, in, caps, l, r)
	if err != nil {
		return render.Output{}, err
	}
	if len(l.refused) > 0 {
		for _, message := range l.refused {
			r.warn("the objects are not checked without other values: %s", message)
		}
		return render.Output{Warnings: r.warnings}, nil
	}
	p, declared := sorted(m, s.chart, printed, r), profiles(s.chart, r)
	if m.charge(0) != nil {
		return render.Output{}, m.err.at(s.at(chartFile))
	}
	if err := r.err("render"); err != nil {
		return render.Output{}, err
	}
	if in.Inputs.HasOOFVariables() {
		r.warn("oof_parameters: charts do not use them")
	}
	if len(in.Inputs.Network) > len(in.Inputs.ConnectionPoints(in.RegionID())) {
		r.warn("network_parameters: charts do not use them")
	}
	return render.Output{Groups: p.groups(s.chart.Name()), Hooks: p.hooks, Profiles: declared, Warnings: r.warnings, Notes: notes(s.chart, printed), Sensitive: names, Secrets: defaults}, nil
}

// rendered returns the output of the templates. It reports faults of the input.
func rendered(s source, in render.Input, caps *common.Capabilities, l *lookup, r *report) (map[string]string, error) {
	if !r.ok() {
		return nil, r.err("render")
	}
	if err := checkKubeVersion(s, caps); err != nil {
		return nil, err
	}
	user := userValues(in.Inputs, r)
	checkUnknown(s.chart, user, in.Strict, r)
	if !r.ok() {
		return nil, r.err("render")
	}
	top := resolve(s, user, common.ReleaseOptions{
		Name: in.Release.Name, Namespace: in.Release.Namespace, Revision: in.Release.Revision,
		IsUpgrade: in.Release.Upgrade, IsInstall: !in.Release.Upgrade,
	}, caps, r)
	if !r.ok() {
		return nil, r.err("render")
	}
	values, _ := top["Values"].(common.Values)
	if err := checkValues(l.meter.ctx, s.chart, values, "parameters", r); err != nil {
		return nil, err
	}
	if !r.ok() {
		return nil, r.err("render")
	}
	return execute(s, top, l, r)
}

// plan is the output of a chart, sorted by purpose.
type plan struct {
	definitions []render.Object
	defined     map[identity]render.Object // the definitions, by identity
	objects     []render.Object
	hooks       []render.Hook
}

func sorted(m *meter, c *chart.Chart, printed map[string]string, r *report) plan {
	d := &decoder{ctx: m.ctx, report: r}
	p := d.planOf(c)
	d.printed = true
	for _, file := range slices.Sorted(maps.Keys(printed)) {
		if isNotes(file) {
			continue
		}
		for _, o := range d.objects(file, printed[file]) {
			p.sort(o, r)
		}
	}
	slices.SortStableFunc(p.objects, installOrder)
	slices.SortStableFunc(p.hooks, func(a, b render.Hook) int { return installOrder(a.Object, b.Object) })
	return p
}

// notes returns what the chart tells its users, as Helm shows it: without the notes of its
// dependencies.
func notes(c *chart.Chart, printed map[string]string) string {
	return strings.TrimSpace(printed[path.Join(c.Name(), "templates", "NOTES.txt")])
}

// definitions returns the objects in the crds folders of a chart and its
// subcharts. These files are not templates.
func (d *decoder) definitions(c *chart.Chart) []render.Object {
	var objects []render.Object
	for _, crd := range c.CRDObjects() {
		for _, o := range d.objects(crd.Filename, string(crd.File.Data)) {
			objects = append(objects, o.Object)
		}
	}
	return objects
}

func (p plan) groups(chart string) []render.Group {
	own := render.Group{Name: chart, Objects: p.objects}
	if len(p.definitions) == 0 {
		return []render.Group{own}
	}
	crds := render.Group{Name: "crds", Objects: p.definitions, Wait: render.WaitReady, Prelude: true}
	if chart == crds.Name {
		crds.Name = "custom resource definitions"
	}
	own.After = []string{crds.Name}
	return []render.Group{crds, own}
}
