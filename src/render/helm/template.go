package helm

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"

	"github.com/multicloud-k8s/k8splugin/src/render"
)

// execute runs the templates of a chart and returns what they print, by the
// names that Helm gives them.
func execute(s source, values common.Values, m *meter, region render.Region, r *report) (map[string]string, error) {
	ctx := m.ctx
	names := templateNames(s.Chart)
	prepare(s.Chart)
	l := &lookup{ctx: ctx, region: region}
	e := engine.Engine{CustomTemplateFuncs: functions(m, l)}
	printed, err := e.RenderWithContext(ctx, s.Chart, values)
	if err != nil && m.err == nil && l.err == nil {
		reportTemplate(names, m.clean(err.Error()), r)
	}
	if m.err != nil {
		r.add(s.at(chartFile), "", "%v", m.err)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("cannot render the chart: %w", ctx.Err())
	}
	if l.err != nil {
		return nil, l.err
	}
	size := 0
	for _, text := range printed {
		size += len(text)
	}
	if size > maxRendered {
		r.add(s.at(chartFile), "", "the templates make more than %d bytes of objects", maxRendered)
	}
	return printed, nil
}

// prepare instruments all templates of a chart. Subcharts that are there under
// two names share theirs, which must not be instrumented twice.
func prepare(c *chart.Chart) {
	templates := make([]*common.File, len(c.Templates))
	for i, t := range c.Templates {
		templates[i] = &common.File{Name: t.Name, Data: []byte(instrument(string(t.Data)))}
	}
	c.Templates = templates
	for _, d := range c.Dependencies() {
		prepare(d)
	}
}

func templateNames(c *chart.Chart) []string {
	var names []string
	for _, t := range templatesOf(c) {
		names = append(names, t.Name)
	}
	return names
}

// parse reports what is wrong with the templates of a chart and its subcharts
// whatever the values are.
func parse(c *chart.Chart, r *report) {
	for _, t := range templatesOf(c) {
		// The engine executes no template whose name begins so, but parses it.
		const unexecuted = "/_"
		alone := &chart.Chart{
			Metadata:  &chart.Metadata{Name: path.Dir(t.Name)},
			Templates: []*common.File{{Name: path.Base(t.Name) + unexecuted, Data: t.Data}},
		}
		err := guarded(func() error { _, err := engine.Render(alone, common.Values{}); return err })
		if err != nil {
			reportTemplate([]string{t.Name}, strings.ReplaceAll(err.Error(), t.Name+unexecuted, t.Name), r)
		}
	}
}

// reportTemplate reports an error of the template engine. It tells the place in
// its text alone: the name of the template, and the line.
func reportTemplate(names []string, message string, r *report) {
	at, message := templateFault(names, message)
	r.add(at, "", "%s", message)
}

var (
	// enginePrefix begins errors of the engine, before the place.
	enginePrefix = regexp.MustCompile(`^(?:template: |(?:execution|parse) error (?:at|in) )`)

	lineAndColumn = regexp.MustCompile(`^:(\d+)(?::\d+)?`)
)

// templateFault takes an error of the template engine apart. What is nearest to
// the fault is the last place that it names.
func templateFault(names []string, message string) (at place, rest string) {
	message = enginePrefix.ReplaceAllString(message, "")
	longest := slices.SortedFunc(slices.Values(names), func(a, b string) int { return len(b) - len(a) })
	for line := range strings.SplitSeq(message, "\n") {
		line = strings.TrimLeft(strings.TrimSpace(line), "(")
		for _, name := range longest {
			after, found := strings.CutPrefix(line, name)
			if !found {
				continue
			}
			number, tail := 0, after
			if position := lineAndColumn.FindStringSubmatch(after); position != nil {
				number, _ = strconv.Atoi(position[1])
				tail = after[len(position[0]):]
			}
			if at.file == "" || tail == "" {
				at = place{name, number}
			}
			if line = strings.TrimLeft(tail, "): "); line == "" {
				rest = ""
			}
			break
		}
		rest = strings.TrimSpace(rest + " " + line)
	}
	return at, rest
}
