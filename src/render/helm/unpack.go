package helm

import (
	"bytes"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// The names of files that Helm reads.
const (
	chartFile  = "Chart.yaml"
	valuesFile = "values.yaml"
	schemaFile = "values.schema.json"
)

// byteOrderMark may be at the beginning of a file, where Helm ignores it.
var byteOrderMark = []byte("\xef\xbb\xbf")

// maxNested is the maximum nesting of chart archives.
const maxNested = 8

// subchartArchive matches the files that Helm treats as packaged dependencies.
var subchartArchive = regexp.MustCompile(`^(?:charts/[^/]+/)*charts/[^/_.][^/]*\.tgz$`)

// ignoredChart matches the files of subcharts that Helm ignores.
var ignoredChart = regexp.MustCompile(`^(?:charts/[^/]+/)*charts/[_.]`)

// unpacker unpacks a package to the files of a chart.
type unpacker struct {
	report *report
	limits render.Limits // remaining
}

// unpack returns the files of the chart by their paths in it, with the archives
// of dependencies unpacked, and the chart's folder in the package: "" or a path
// with a trailing slash. It reports a package without a chart or with several.
func unpack(files render.Files, r *report) (flat render.Files, folder string) {
	u := &unpacker{report: r, limits: render.DefaultLimits()}
	folder, ok := u.rootOf(files, "")
	if !ok {
		return nil, ""
	}
	flat = render.Files{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		inside, below := strings.CutPrefix(name, folder)
		if !below {
			r.warn("%s: is outside of the chart", name)
			continue
		}
		if ignoredChart.MatchString(inside) {
			continue
		}
		if files.PassedBy(name) {
			r.add(place{file: name}, "", "is too large to be read with the chart; move it out of the chart's folder")
			continue
		}
		flat[inside] = bytes.TrimPrefix(files[name], byteOrderMark)
		u.limits.Unpacked -= int64(len(files[name]))
	}
	u.expand(flat, 0)
	return flat, folder
}

// rootOf returns the folder of the only chart among the files.
func (u *unpacker) rootOf(files render.Files, archive string) (folder string, ok bool) {
	if _, here := files[chartFile]; here {
		return "", true
	}
	var found []string
	for name := range files {
		if dir, base := path.Split(name); base == chartFile && strings.Count(dir, "/") == 1 {
			found = append(found, dir)
		}
	}
	slices.Sort(found)
	switch len(found) {
	case 0:
		u.report.add(place{file: archive}, "", "contains no chart: %s is missing, both at the top and in each folder", chartFile)
	case 1:
		return found[0], true
	default:
		u.report.add(place{file: archive}, "", "contains %d charts, in %s; a package is exactly one chart", len(found), strings.Join(found, ", "))
	}
	return "", false
}

// expand replaces the archives of dependencies by their files.
func (u *unpacker) expand(files render.Files, depth int) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !subchartArchive.MatchString(name) {
			continue
		}
		content := files[name]
		delete(files, name)
		if depth >= maxNested {
			u.report.add(place{file: name}, "", "is an archive in more than %d others", maxNested)
			return
		}
		inner := u.open(name, content)
		u.expand(inner, depth+1)
		for inside, content := range inner {
			// Helm distinguishes folders from archives by the end of the name.
			files[name+"~/"+inside] = content
		}
	}
}

// open returns the files of the chart in an archive.
func (u *unpacker) open(name string, content []byte) render.Files {
	files, _, err := render.Archive(content, u.limits)
	if err != nil {
		violations := nf.ViolationsOf(err)
		for _, v := range violations {
			u.report.add(place{file: name}, "", "%s", v)
		}
		if len(violations) == 0 {
			u.report.add(place{file: name}, "", "cannot be opened")
		}
		return nil
	}
	folder, ok := u.rootOf(files, name)
	if !ok {
		return nil
	}
	inner := render.Files{}
	for path, content := range files {
		u.limits.Entries--
		u.limits.Unpacked -= int64(len(content))
		if inside, below := strings.CutPrefix(path, folder); below {
			if ignoredChart.MatchString(inside) {
				continue
			}
			inner[inside] = bytes.TrimPrefix(content, byteOrderMark)
		}
	}
	return inner
}
