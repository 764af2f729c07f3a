package helm

import (
	"bytes"
	"errors"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/syntax"
)

// Limits of a chart. Parsed files take many times their size. The largest
// public charts use about a tenth of each limit.
const (
	maxFile      = 4 << 20   // bytes of a YAML or JSON file
	maxMarks     = 256 << 10 // separators in all these files; see marks
	maxTemplates = 10_000    // files and named templates
	maxText      = 16 << 20  // bytes of all templates
	maxParsed    = 64 << 20  // bytes of memory of the parsed templates
	maxFiles     = 16 << 20  // bytes of all other files, which templates can print
	maxEscapes   = 6 << 20   // lines of these files and characters in them that are escaped; see escapes
)

// chartRoot matches the folders of charts in a chart.
var chartRoot = regexp.MustCompile(`^(?:charts/[^/]+/)*`)

// source is a parsed chart.
type source struct {
	chart *chart.Chart

	folder string // in the package, with a slash at its end, or ""
}

// at returns the place of a file of the chart itself.
func (s source) at(name string) place { return place{file: s.folder + name} }

// load reads the chart of a package and reports its faults. It returns false if
// any fault has been reported.
func load(files render.Files, r *report) (s source, ok bool) {
	flat, folder := unpack(files, r)
	if !r.ok() {
		return source{}, false
	}
	l := &reader{report: r, folder: folder}
	for _, name := range slices.Sorted(maps.Keys(flat)) {
		l.check(name, flat[name])
	}
	if !r.ok() {
		return source{}, false
	}
	buffered := make([]*archive.BufferedFile, 0, len(flat))
	for _, name := range slices.Sorted(maps.Keys(flat)) {
		buffered = append(buffered, &archive.BufferedFile{Name: name, Data: flat[name]})
	}
	s.folder = folder
	err := guarded(func() (err error) { s.chart, err = loader.LoadFiles(buffered); return err })
	if err != nil {
		r.add(s.at(chartFile), "", "%v", err)
		return s, false
	}
	if multiplied(s.chart) > maxMultiplied {
		r.add(s.at(chartFile), "dependencies", "take more than %d bytes of memory, with a copy for each alias and each import of values", maxMultiplied)
		return s, false
	}
	sortDependencies(s.chart)
	if s.chart.Metadata.Type == "library" {
		r.add(s.at(chartFile), "type", "is library: a library chart cannot be deployed")
	}
	if s.chart.Metadata.Deprecated {
		r.warn("%s: the chart is deprecated", s.at(chartFile).file)
	}
	return s, r.ok()
}

// sortDependencies makes the order of subcharts deterministic. Helm's is the
// order of a map.
func sortDependencies(c *chart.Chart) {
	dependencies := slices.Clone(c.Dependencies())
	slices.SortStableFunc(dependencies, func(a, b *chart.Chart) int {
		if n := strings.Compare(a.Name(), b.Name()); n != 0 {
			return n
		}
		return strings.Compare(a.Metadata.Version, b.Metadata.Version)
	})
	c.SetDependencies(dependencies...)
	for _, d := range dependencies {
		sortDependencies(d)
	}
}

var errUnread = errors.New("helm cannot read it")

// guarded calls a function of Helm, which panics on some malformed input.
func guarded(fn func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errUnread
		}
	}()
	return fn()
}

// reader reports faults of single files. Helm then reads them together, and its
// errors do not name the file.
type reader struct {
	report    *report
	folder    string
	marks     int
	templates int
	parsed    int
	files     int
	escapes   int
}

func (l *reader) check(name string, content []byte) {
	at := place{file: l.folder + name}
	inChart := strings.TrimPrefix(name, chartRoot.FindString(name))
	if folder, _, _ := strings.Cut(inChart, "/"); folder == "templates" || folder == "crds" {
		inChart = folder
	}
	switch inChart {
	case "templates":
		l.checkTemplate(at, content)
	case "crds":
		l.bounded(at, content)
	case chartFile:
		if l.bounded(at, content) {
			l.checkMetadata(at, content)
		}
	case valuesFile:
		if l.bounded(at, content) && l.expandable(at, documentsOf(content)...) {
			err := guarded(func() error { _, err := loader.LoadValues(bytes.NewReader(content)); return err })
			l.checkYAML(at, err)
		}
	case "Chart.lock", "requirements.yaml", "requirements.lock":
		if l.bounded(at, content) {
			err := guarded(func() error { return yaml.Unmarshal(content, &map[string]any{}) })
			l.checkYAML(at, err)
		}
	case schemaFile:
		if l.bounded(at, content) {
			l.checkSchema(at, content)
		}
	default:
		if l.files += len(content); l.files > maxFiles {
			l.report.add(at, "", "brings the files of the chart to more than %d bytes", maxFiles)
		}
		if l.escapes += escapes(content); l.escapes > maxEscapes {
			l.report.add(at, "", "brings the files of the chart to more than %d lines and characters that are escaped", maxEscapes)
		}
	}
}

// bounded rejects content that would take too much memory to parse, as far as
// that can be determined without parsing.
func (l *reader) bounded(at place, content []byte) bool {
	if len(content) > maxFile {
		l.report.add(at, "", "has more than %d bytes", maxFile)
		return false
	}
	if l.marks += marks(content); l.marks > maxMarks {
		l.report.add(at, "", "brings the chart to more than %d separators of values (commas, colons and others)", maxMarks)
		return false
	}
	return l.expandable(at, content)
}

// expandable rejects the documents of a file if they are too large with their
// aliases expanded.
func (l *reader) expandable(at place, documents ...[]byte) bool {
	size := 0
	for _, document := range documents {
		if size += expanded(document); size > maxExpanded {
			l.report.add(at, "", "has more than %d bytes with its aliases expanded", maxExpanded)
			return false
		}
	}
	return true
}

// marks counts the characters that separate values in YAML and JSON, including
// those in texts.
func marks(content []byte) int {
	count := 0
	for i, c := range content {
		switch c {
		case ',', '[', '{', '?':
			count++
		case '-', ':':
			if i+1 == len(content) || content[i+1] <= ' ' || c == ':' && (isFlow(content[i+1]) || i > 0 && isFlow(content[i-1])) {
				count++
			}
		}
	}
	return count
}

// isFlow reports whether a byte next to a colon can replace the blank.
func isFlow(c byte) bool { return strings.IndexByte(`,[]{}"':`, c) >= 0 }

// escapes counts the lines of a file and the characters in it that JSON escapes:
// the methods of Files turn each into 16 or 6 bytes before they can be charged.
func escapes(content []byte) int {
	count := 0
	for len(content) > 0 {
		c, size := utf8.DecodeRune(content)
		if c < ' ' || c == '<' || c == '>' || c == '&' || c == utf8.RuneError && size == 1 {
			count++
		}
		content = content[size:]
	}
	return count
}

func (l *reader) checkTemplate(at place, content []byte) {
	if l.templates += len(content); l.templates > maxText {
		l.report.add(at, "", "brings the templates to more than %d bytes", maxText)
		return
	}
	in := instrument(string(content))
	if in.fault != "" {
		l.report.add(at, "", "%s", in.fault)
	}
	if l.parsed += in.size(); l.parsed > maxParsed {
		l.report.add(at, "", "brings the parsed templates to more than %d bytes of memory", maxParsed)
	}
}

func (l *reader) checkMetadata(at place, content []byte) {
	var m chart.Metadata
	if !l.checkYAML(at, guarded(func() error { return yaml.Unmarshal(content, &m) })) {
		return
	}
	if m.APIVersion == "" {
		m.APIVersion = chart.APIVersionV1 // as Helm does
	}
	if m.APIVersion != chart.APIVersionV1 && m.APIVersion != chart.APIVersionV2 {
		l.report.add(at, "apiVersion", "%q is not a supported chart version; it must be v1 or v2", m.APIVersion)
		return
	}
	if err := guarded(m.Validate); err != nil {
		l.report.add(at, "", "%v", err)
	}
}

// checkYAML reports an error of the YAML parser, and returns whether there is
// none.
func (l *reader) checkYAML(at place, err error) bool {
	if err != nil {
		line, message := syntax.YAML(err)
		l.report.add(place{at.file, line}, "", "is not valid: %s", message)
	}
	return err == nil
}

// templatesOf returns the templates of a chart and its subcharts, under the
// names that Helm gives them.
func templatesOf(c *chart.Chart) []*common.File {
	var files []*common.File
	for _, t := range c.Templates {
		files = append(files, &common.File{Name: path.Join(c.ChartFullPath(), t.Name), Data: t.Data})
	}
	for _, d := range c.Dependencies() {
		files = append(files, templatesOf(d)...)
	}
	return files
}
