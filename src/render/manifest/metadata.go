package manifest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/readiness"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// metadata is the content of a metadata.yaml.
type metadata struct {
	name, version, description string
	namespaces                 []string

	at        place // of the resources
	declares  bool  // whether it has a variables field, even an empty one
	variables []nf.Variable
	readiness []*readiness.Rule
	declared  map[string]place // where each variable is declared
	groups    []group
	networks  []*yaml.Node // attachments, whose values may have variables
	volumes   []*yaml.Node // uses of volumes, likewise
	clusters  []*yaml.Node // that become cloud regions; their values may have variables
	profiles  []field      // compute profiles by their names; their values may have variables
}

// group is one entry of the resources.
type group struct {
	name    string
	at      place
	after   []string
	afterAt []place // of each, if dependsOn names them
	wait    render.Wait
	timeout time.Duration
	files   []listedFile

	recreate render.Recreate
}

// listedFile is a file that the metadata names.
type listedFile struct {
	kind string // lower-case; "" for any
	path string
	at   place
}

// with returns the group with the given objects.
func (g group) with(objects []render.Object) render.Group {
	return render.Group{
		Name: g.name, File: g.at.file, Line: g.at.line, After: g.after, Objects: objects, Wait: g.wait, Timeout: g.timeout, Recreate: g.recreate,
	}
}

// readMetadata reads the metadata of a package.
func readMetadata(files render.Files, rd *reader) metadata {
	name := "metadata.yaml"
	content, found := files[name]
	if !found {
		if content, found = files["metadata.yml"]; found {
			name = "metadata.yml"
		}
	}
	m := metadataReader{report: rd.report}
	m.at, m.declared = place{file: name}, map[string]place{}
	switch {
	case !found:
		rd.report.add(m.at, "", "is missing at the top of the package")
		return m.metadata
	case len(content) > maxMetadata || files.PassedBy(name):
		rd.report.add(m.at, "", "has more than %d bytes", maxMetadata)
		return m.metadata
	}
	documents := rd.read(name, content)
	switch {
	case !rd.report.ok():
	case len(documents) != 1 || documents[0].Kind != yaml.MappingNode:
		rd.report.add(m.at, "", "must be one mapping")
	default:
		m.read(documents[0])
	}
	return m.metadata
}

const (
	maxMetadata = 256 << 10 // bytes of the metadata, which is recorded with the package
	maxEntries  = 1000      // of the resources
	maxVars     = 1000      // declared variables
	maxWord     = 128       // bytes of a name in the metadata
)

type metadataReader struct {
	metadata

	report *report
}

func (m *metadataReader) place(n *yaml.Node) place { return place{m.at.file, n.Line} }

func (m *metadataReader) add(n *yaml.Node, field, format string, args ...any) {
	m.report.add(m.place(n), field, format, args...)
}

func (m *metadataReader) unknownKey(key *yaml.Node, allowed ...string) {
	m.add(key, "", "unknown key %q%s; allowed: %s", key.Value, m.report.suggest(key.Value, allowed...), strings.Join(allowed, ", "))
}

func (m *metadataReader) read(root *yaml.Node) {
	for f := range fields(root) {
		switch f.key.Value {
		case "name":
			m.name = m.text(f)
		case "version":
			m.version = m.text(f)
		case "description":
			m.description = m.text(f)
		case "namespaces":
			m.readNamespaces(f.value)
		case "variables":
			m.readVariables(f.value)
		case "readiness":
			rules, wrong := readiness.ReadOwn(m.at.file, "readiness", f.value)
			for _, v := range wrong {
				m.report.add(place{v.File, v.Line}, v.Field, "%s", v.Message)
			}
			m.readiness = rules
		case "networks":
			m.networks = m.entries(f, "attachments", nf.MaxAttachments)
		case "volumes":
			m.volumes = m.entries(f, "volumes", nf.MaxVolumes)
		case "workload_clusters":
			m.clusters = m.entries(f, "clusters", nf.MaxWorkloads)
		case "compute_profiles":
			m.readProfiles(f)
		case "resources":
			m.at = m.place(f.key)
			m.readResources(f.value)
		default:
			m.unknownKey(f.key, "name", "version", "description", "namespaces", "variables", "networks", "volumes", "workload_clusters", "compute_profiles", "readiness", "resources")
		}
	}
	if m.at.line == 0 {
		m.report.add(place{m.at.file, 1}, "resources", "is missing")
	}
}

// text returns a scalar as it is written, since a version may look like a
// number.
func (m *metadataReader) text(f field) string {
	if f.value.Kind != yaml.ScalarNode {
		m.add(f.value, f.key.Value, "must be a text")
		return ""
	}
	if isNull(f.value) {
		return ""
	}
	wrong := nf.CheckText("", f.value.Value)
	if wrong == nil && strings.ContainsFunc(f.value.Value, func(r rune) bool { return hidden(r) && r != '\n' && r != '\t' }) {
		wrong = nf.Violations{{Message: "contains control characters"}}
	}
	for _, v := range wrong {
		m.add(f.value, f.key.Value, "%s", v.Message)
	}
	return f.value.Value
}

// readNamespaces reads the namespaces in which objects may be in addition to
// the instance's.
func (m *metadataReader) readNamespaces(names *yaml.Node) {
	if names.Kind != yaml.SequenceNode {
		m.add(names, "namespaces", "must be a list of names")
		return
	}
	for i, name := range names.Content {
		if name.Kind != yaml.ScalarNode {
			m.add(name, fmt.Sprintf("namespaces[%d]", i), "must be a name")
			return
		}
		m.namespaces = append(m.namespaces, name.Value)
	}
	for _, v := range nf.CheckNamespaces("namespaces", m.namespaces) {
		m.add(names, v.Field, "%s", v.Message)
	}
}

func (m *metadataReader) readResources(resources *yaml.Node) {
	switch resources.Kind {
	case yaml.SequenceNode:
		for i, entry := range resources.Content {
			if i == maxEntries {
				m.add(entry, "resources", "has more than %d entries", maxEntries)
				break
			}
			m.readEntry(entry)
		}
		m.nameGroups()
		m.checkAfter()
	default: // a scalar has no fields
		if n := len(resources.Content) / 2; n > maxEntries {
			m.add(resources.Content[2*maxEntries], "resources", "has more than %d entries", maxEntries)
			resources.Content = resources.Content[:2*maxEntries]
		}
		m.readMap(resources)
	}
	hasFiles := func(g group) bool { return len(g.files) > 0 }
	if !slices.ContainsFunc(m.groups, hasFiles) && m.report.ok() {
		m.add(resources, "resources", "must be a list or a mapping of kinds to files, and name at least one file")
	}
}

// readMap reads the unordered form: one group for each kind, in the order in
// which kinds are installed. Groups of kinds without an order, such as custom
// resources, do not wait for each other: an operator may need objects of several of
// its kinds before one of them is ready.
func (m *metadataReader) readMap(resources *yaml.Node) {
	fields := slices.SortedStableFunc(fields(resources), func(a, b field) int {
		return render.KindOrder(kindOf(a.key.Value), kindOf(b.key.Value))
	})
	var before, step []string // names of the groups of the previous step, and of this one
	for i, f := range fields {
		if i > 0 && !render.SameOrder(kindOf(fields[i-1].key.Value), kindOf(f.key.Value)) {
			before, step = step, nil
		}
		step = append(step, f.key.Value)
		m.groups = append(m.groups, group{name: f.key.Value, at: m.place(f.key), files: m.files(f), after: before})
	}
}

// readEntry reads one entry of the ordered form.
func (m *metadataReader) readEntry(entry *yaml.Node) {
	if entry.Kind != yaml.MappingNode {
		m.add(entry, "resources", "an entry must be a mapping of a kind to files")
		return
	}
	g := group{at: m.place(entry)}
	kinds := 0
	for f := range fields(entry) {
		switch f.key.Value {
		case "name":
			if g.name = m.text(f); !isWord(g.name) {
				m.add(f.value, "name", "must be 1 to %d printable characters", maxWord)
			}
		case "dependsOn":
			g.after = []string{} // also if the list is empty
			for _, item := range m.list(f) {
				g.after, g.afterAt = append(g.after, item.Value), append(g.afterAt, m.place(item))
			}
		case "timeout":
			g.timeout = m.duration(f)
		case "wait":
			g.wait = m.wait(f)
		case "recreate":
			g.recreate = m.recreate(f)
		default:
			kinds++
			g.files = append(g.files, m.files(f)...)
		}
	}
	if kinds == 0 {
		m.add(entry, "resources", "the entry names no kind")
	}
	m.groups = append(m.groups, g)
}

// nameGroups names each unnamed group after the kind of its first file. A group
// without dependsOn waits for the group before it.
func (m *metadataReader) nameGroups() {
	taken := map[string]place{}
	for _, g := range m.groups {
		if first, twice := taken[g.name]; twice && g.name != "" {
			m.report.add(g.at, "name", "%q is the name of the entry at line %d too", g.name, first.line)
		}
		taken[g.name] = g.at
	}
	numbers := map[string]int{}
	for i := range m.groups {
		g := &m.groups[i]
		for kind := g.kindName(); g.name == ""; {
			numbers[kind]++
			name := numberedName(kind, numbers[kind])
			if _, is := taken[name]; !is {
				g.name, taken[name] = name, g.at
			}
		}
		if g.after == nil && i > 0 {
			g.after = []string{m.groups[i-1].name}
		}
	}
}

func (g group) kindName() string {
	if len(g.files) == 0 || g.files[0].kind == "" {
		return "resources"
	}
	return g.files[0].kind
}

// numberedName returns the name of the nth unnamed group of a kind.
func numberedName(kind string, number int) string {
	if number == 1 {
		return kind
	}
	return fmt.Sprintf("%s-%d", kind, number)
}

func (m *metadataReader) checkAfter() {
	known := map[string]bool{}
	names := make([]string, len(m.groups))
	for i, g := range m.groups {
		known[g.name], names[i] = true, g.name
	}
	for _, g := range m.groups {
		for i, name := range g.after {
			if !known[name] {
				m.report.add(g.afterAt[i], "dependsOn", "no entry is named %q%s", name, m.report.suggest(name, names...))
			}
		}
	}
}

// files reads the files of a kind.
func (m *metadataReader) files(f field) []listedFile {
	if !isKind(f.key.Value) {
		m.unknownKey(f.key, "name", "dependsOn", "timeout", "wait", "recreate", "a kind")
	}
	items := m.list(f)
	files := make([]listedFile, len(items))
	for i, item := range items {
		files[i] = listedFile{kind: kindOf(f.key.Value), path: item.Value, at: m.place(item)}
	}
	return files
}

// list returns the texts of a field that holds one text or a list of texts.
func (m *metadataReader) list(f field) []*yaml.Node {
	items := []*yaml.Node{f.value}
	if f.value.Kind == yaml.SequenceNode {
		items = f.value.Content
	}
	for _, item := range items {
		if text, ok := literal(item).(string); !ok || text == "" {
			m.add(item, f.key.Value, "must be a text or a list of texts")
			return nil
		}
	}
	return items
}

func (m *metadataReader) duration(f field) time.Duration {
	d, err := time.ParseDuration(f.value.Value)
	if err != nil || d <= 0 || d > nf.MaxTimeout {
		m.add(f.value, f.key.Value, "must be a duration above zero, such as 90s or 5m, and at most %.0fh", nf.MaxTimeout.Hours())
	}
	return d
}

func (m *metadataReader) wait(f field) render.Wait {
	w := render.Wait(f.value.Value)
	if w != render.WaitReady && w != render.WaitApplied {
		m.add(f.value, f.key.Value, "must be %s or %s", render.WaitReady, render.WaitApplied)
	}
	return w
}

func (m *metadataReader) recreate(f field) render.Recreate {
	r := render.Recreate(f.value.Value)
	if !r.Valid() {
		m.add(f.value, f.key.Value, "must be %s or %s", render.RecreateNever, render.RecreateIfNeeded)
	}
	return r
}

// isWord reports whether a text can be the name of an entry.
func isWord(text string) bool {
	return text != "" && len(text) <= maxWord && !strings.ContainsFunc(text, hidden)
}

// kindOf returns the lower-case kind that a key of the resources stands for, or
// "" if it stands for any kind.
func kindOf(key string) string {
	kind := strings.ToLower(key)
	if long, found := shortKinds[kind]; found {
		return long
	}
	if slices.Contains(anyKind, kind) {
		return ""
	}
	return kind
}
