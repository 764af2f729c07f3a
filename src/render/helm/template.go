package helm

import (
	"context"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
)

// execute runs the templates of a chart and returns their output by name. The
// error contains the violations of the chart, or is that of a limit or of the
// region.
func execute(s source, values common.Values, l *lookup, r *report) (map[string]string, error) {
	m := l.meter
	names := templateNames(s.chart)
	if m.prepare(s.chart, r); m.templates > maxTemplates {
		r.add(s.at(chartFile), "", "the chart has more than %d templates, including named ones", maxTemplates)
	}
	if !r.ok() {
		return nil, r.err("render")
	}
	e := engine.Engine{CustomTemplateFuncs: functions(m, l)}
	printed, err := e.RenderWithContext(m.ctx, s.chart, values)
	slices.Sort(l.secrets)
	l.secrets = slices.Compact(l.secrets)
	r.hide(l.secrets)
	switch {
	case l.err != nil && m.err == nil:
		return nil, l.err
	case m.err != nil:
		return nil, m.err.at(templateError{s, names, m, l, err}.limited())
	case err != nil:
		templateError{s, names, m, l, err}.report(r)
		return nil, r.err("render")
	}
	size := 0
	for _, text := range printed {
		size += len(text)
	}
	if size > maxRendered {
		return nil, errRendered.at(s.at(chartFile))
	}
	return printed, nil
}

// prepare instruments all templates of a chart. Two aliases of a subchart share
// their templates, which must not be instrumented twice.
func (m *meter) prepare(c *chart.Chart, r *report) {
	templates := make([]*common.File, len(c.Templates))
	for i, t := range c.Templates {
		in := instrument(string(t.Data))
		if in.fault != "" || in.broken {
			name, before := path.Join(c.ChartFullPath(), t.Name), len(r.found)
			if checkTemplate(name, t.Data, r); len(r.found) == before {
				r.add(place{file: name}, "", "%v", errTemplate)
			}
		}
		m.templates += 1 + in.defines
		templates[i] = &common.File{Name: t.Name, Data: []byte(in.text)}
	}
	c.Templates = templates
	for _, d := range c.Dependencies() {
		m.prepare(d, r)
	}
}

func templateNames(c *chart.Chart) []string {
	var names []string
	for _, t := range templatesOf(c) {
		names = append(names, t.Name)
	}
	return names
}

// checkTemplates reports the templates of a chart and its subcharts that cannot be
// parsed.
func checkTemplates(ctx context.Context, c *chart.Chart, r *report) {
	for _, t := range templatesOf(c) {
		if ctx.Err() != nil {
			return // reported by the caller
		}
		checkTemplate(t.Name, t.Data, r)
	}
}

func checkTemplate(name string, content []byte, r *report) {
	// The engine parses a template with this name prefix, but does not execute
	// it.
	const unexecuted = "/_"
	alone := &chart.Chart{
		Metadata:  &chart.Metadata{Name: path.Dir(name)},
		Templates: []*common.File{{Name: path.Base(name) + unexecuted, Data: content}},
	}
	err := guarded(func() error { _, err := engine.Render(alone, common.Values{}); return err })
	if err != nil {
		reportTemplate([]string{name}, strings.ReplaceAll(err.Error(), name+unexecuted, name), r)
	}
}

// reportTemplate reports an error of the template engine. The place (name of
// the template and line) is only in the text of the error.
func reportTemplate(names []string, message string, r *report) {
	at, message := templateFault(names, message)
	r.add(at, "", "%s", message)
}

var (
	// enginePrefix matches what precedes the place in errors of the engine.
	enginePrefix = regexp.MustCompile(`^(?:template: |(?:execution|parse) error (?:at|in) )`)

	lineAndColumn = regexp.MustCompile(`^:(\d+)(?::\d+)?`)
)

// templateFault splits an error of the template engine into place and message.
// The last place in the text is nearest to the fault.
func templateFault(names []string, message string) (at place, rest string) {
	message = enginePrefix.ReplaceAllString(message, "")
	for line := range strings.SplitSeq(message, "\n") {
		line = strings.TrimLeft(strings.TrimSpace(line), "(")
		if name, number, tail := cutPlace(names, line); name != "" {
			if at.file == "" || tail == "" {
				at = place{name, number}
			}
			if line = strings.TrimLeft(tail, "): "); line == "" {
				rest = ""
			}
		}
		rest = strings.TrimSpace(rest + " " + line)
	}
	return at, rest
}

// cutPlace removes the name of a template and its line number from the
// beginning of a text. If several names match, it uses the longest.
func cutPlace(names []string, line string) (name string, number int, tail string) {
	for _, n := range names {
		if strings.HasPrefix(line, n) && len(n) > len(name) {
			name = n
		}
	}
	tail = line[len(name):]
	if position := lineAndColumn.FindStringSubmatch(tail); name != "" && position != nil {
		number, _ = strconv.Atoi(position[1])
		tail = tail[len(position[0]):]
	}
	return name, number, tail
}
