package helm

import (
	"cmp"
	"context"
	"maps"
	"runtime"
	"slices"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// Renderer is the render.Renderer of Helm charts. The zero value is ready for use;
// it bounds each rendering, but not their number.
//
// A package is one chart, at its top or in one folder. A List is taken for the
// objects in it. An object's line is that in what its template prints.
type Renderer struct {
	gate *gate
	time time.Duration // of one rendering; 0: maxTime
	work int           // of one rendering; 0: maxWork
}

var _ render.Renderer = Renderer{}

// Config holds the limits of a Renderer.
type Config struct {
	// Time limits one rendering, including its lookups in the region. 0 means 30
	// seconds.
	Time time.Duration
	// AtOnce limits how many charts are read or rendered at once. 0 means the
	// number of processors, but at least 2 and at most 8.
	AtOnce int
	// Wait limits how long a chart waits for the others. 0 means 30 seconds.
	Wait time.Duration
}

// New returns a Renderer. Copies of it share its limits.
func New(c Config) Renderer {
	atOnce := cmp.Or(c.AtOnce, min(max(2, runtime.GOMAXPROCS(0)), 8))
	return Renderer{gate: newGate(atOnce, cmp.Or(c.Wait, maxWait)), time: c.Time}
}

// Check reads the chart with all its subcharts: their metadata, values, schemas
// and templates. It executes none of the latter. Dependencies must be there as
// far as the chart's own values want them. The error is of kind nf.TooMany when too
// many charts are being read or rendered.
func (h Renderer) Check(ctx context.Context, files render.Files) (render.Summary, error) {
	leave, err := h.gate.enter(ctx)
	if err != nil {
		return render.Summary{}, err
	}
	defer leave()
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(h.time, maxTime), errTime(cmp.Or(h.time, maxTime)))
	defer cancel()
	r := &report{}
	s, ok := load(files, r)
	if !ok {
		return render.Summary{}, r.err("check")
	}
	summary := render.Summary{
		Name: s.Name(), Version: s.Metadata.Version, Description: oneLine(s.Metadata.Description, maxDescription),
		Variables: variables(s.Chart), Namespaces: namespaces(s.Chart, r),
	}
	checkTemplates(ctx, s.Chart, r)
	d := &decoder{ctx: ctx, report: r}
	d.definitions(s.Chart)
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

// Render makes the objects of one instance. Its error is of kind nf.Unsupported
// when the chart is not made for the cluster's version of Kubernetes, and of the
// region's when that cannot be asked. It is nf.TooLarge or nf.Timeout, with the
// template as its violation, when the rendering exceeds a limit, and nf.TooMany when
// too many charts are being read or rendered.
func (h Renderer) Render(ctx context.Context, in render.Input) (render.Output, error) {
	r := &report{}
	caps, err := capabilities(ctx, in, r) // before entering: the region may be slow
	if err != nil {
		return render.Output{}, err
	}
	leave, err := h.gate.enter(ctx)
	if err != nil {
		return render.Output{}, err
	}
	defer leave()
	timeout := errTime(cmp.Or(h.time, maxTime))
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(h.time, maxTime), timeout)
	defer cancel()
	s, ok := load(in.Files, r)
	if !ok {
		return render.Output{}, r.err("render")
	}
	names := secretNames(s.Chart).In(in.Inputs)
	r.hide(in.Inputs, names)
	m := &meter{ctx: ctx, limit: cmp.Or(h.work, maxWork), timeout: timeout}
	l := &lookup{meter: m, region: in.Region}
	printed, err := rendered(s, in, caps, l, r)
	if err != nil {
		return render.Output{}, err
	}
	p := sorted(ctx, s.Chart, printed, r)
	if ctx.Err() != nil {
		return render.Output{}, ended(ctx).at(s.at(chartFile))
	}
	if err := r.err("render"); err != nil {
		return render.Output{}, err
	}
	if len(in.Inputs.OOF) > 0 {
		r.warn("oof_parameters: a chart has no use for them")
	}
	if len(in.Inputs.Network) > 0 {
		r.warn("network_parameters: a chart has no use for them")
	}
	return render.Output{Groups: p.groups(s.Name()), Hooks: p.hooks, Warnings: r.warnings, Sensitive: names}, nil
}

// rendered returns what the templates print. What is wrong with the input is
// reported.
func rendered(s source, in render.Input, caps *common.Capabilities, l *lookup, r *report) (map[string]string, error) {
	if !r.ok() {
		return nil, r.err("render")
	}
	if err := checkKubeVersion(s, caps); err != nil {
		return nil, err
	}
	user := given(in.Inputs, r)
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
	if err := checkValues(l.meter.ctx, s.Chart, values, "parameters", r); err != nil {
		return nil, err
	}
	if !r.ok() {
		return nil, r.err("render")
	}
	return execute(s, top, l, r)
}

// plan is what a chart renders to, sorted.
type plan struct {
	definitions []render.Object
	objects     []render.Object
	hooks       []render.Hook
}

func sorted(ctx context.Context, c *chart.Chart, printed map[string]string, r *report) plan {
	d := &decoder{ctx: ctx, report: r}
	p := plan{definitions: d.definitions(c)}
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

// definitions returns the objects in the crds folders of a chart and its
// subcharts. They are no templates.
func (d *decoder) definitions(c *chart.Chart) []render.Object {
	var objects []render.Object
	for _, crd := range c.CRDObjects() {
		for _, o := range d.objects(crd.Filename, string(crd.File.Data)) {
			o.Shared = true
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

// hide keeps the values of names out of what is reported.
func (r *report) hide(in nf.Inputs, names []string) {
	r.hidden(slices.DeleteFunc(in.Secrets(names), func(text string) bool { return len(text) < shortestSecret }))
}
