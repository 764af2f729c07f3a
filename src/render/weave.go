package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// networksAnnotation lists the networks that multus attaches a pod to.
const networksAnnotation = "k8s.v1.cni.cncf.io/networks"

// selections are the elements of the annotation, with the namespace of the pods.
type selections struct {
	namespace string
	list      []map[string]any
	used      []bool // elements that a connection stands for
}

// attach adds connections to the template of the workload's pods.
func (t target) attach(namespace string, connections []nf.Connection) nf.Violations {
	if own := t.planned.Object.GetNamespace(); own != "" {
		namespace = own
	}
	template := descend(t.planned.Object.Object, t.kind.template...)
	if t.kind.machine {
		return t.attachMachine(namespace, template, connections)
	}
	annotations := ensure(ensure(template, "metadata"), "annotations")
	if annotations == nil {
		return t.violation("", "is not a template of pods")
	}
	field := "metadata.annotations[" + networksAnnotation + "]"
	s, err := parseSelections(annotations[networksAnnotation], namespace)
	if err != nil {
		return t.violation(field, err.Error())
	}
	if twice := s.twice(); twice != "" {
		return t.violation(field, fmt.Sprintf("two networks have the interface %s", twice))
	}
	added, wrong := s.add(t.Workload, connections)
	wrong = append(wrong, t.annotate(template, connections)...)
	wrong = append(wrong, t.request(descend(template, "spec"), added)...)
	text, err := s.encode()
	if err != nil {
		return t.violation(field, err.Error())
	}
	annotations[networksAnnotation] = text
	return wrong
}

// annotate adds the further annotations of connections to a template.
func (t target) annotate(template map[string]any, connections []nf.Connection) (wrong nf.Violations) {
	for _, c := range connections {
		for _, name := range slices.Sorted(maps.Keys(c.Annotations)) {
			annotations := ensure(ensure(template, "metadata"), "annotations")
			if annotations == nil {
				return t.violation("metadata.annotations", "must be an object")
			}
			if has, there := annotations[name]; there && has != c.Annotations[name] {
				wrong = append(wrong, c.Violation("", fmt.Sprintf("%s has another value of the annotation %s", t.Workload.Name(), name)))
			}
			annotations[name] = c.Annotations[name]
		}
	}
	return wrong
}

// violation returns a violation in the template of the workload's pods.
func (t target) violation(field, message string) nf.Violations {
	path := strings.Join(t.kind.template, ".")
	if path != "" && field != "" {
		path += "."
	}
	path += field
	return nf.Violations{{Object: t.Workload.Ref, Field: path, File: t.planned.File, Line: t.planned.LineOf(path), Message: message}}
}

// twice returns the name of an interface that two elements have, or "".
func (s *selections) twice() string {
	for i := range s.list {
		if s.holder(s.interfaceOf(i)) != i {
			return s.interfaceOf(i)
		}
	}
	return ""
}

// holder returns the index of the first element with an interface, or -1.
func (s *selections) holder(name string) int {
	for i := range s.list {
		if s.interfaceOf(i) == name {
			return i
		}
	}
	return -1
}

// add appends the connections that are not in the list, and returns them.
func (s *selections) add(w Workload, connections []nf.Connection) (added []nf.Connection, wrong nf.Violations) {
	reserved := map[string]bool{} // interfaces that connections ask for
	for _, c := range connections {
		reserved[c.Interface] = true
	}
	for _, c := range connections {
		at := s.holder(c.Interface)
		if c.Interface == "" {
			at = s.unnamed(c, reserved)
		}
		if at < 0 {
			s.append(c, reserved)
			added = append(added, c)
			continue
		}
		if fault := s.conflict(at, c); fault != "" {
			wrong = append(wrong, c.Violation("interface", fmt.Sprintf("%s of %s %s", c.Interface, w.Name(), fault)))
		}
		s.used[at] = true
	}
	return added, wrong
}

// append adds an element for a connection. If its interface may have any name, it
// is the position in the list, or else the next free number.
func (s *selections) append(c nf.Connection, reserved map[string]bool) {
	name, named := c.Interface, 0
	for _, entry := range s.list {
		if entry["name"] != nil {
			named++
		}
	}
	for n := named + 1; name == ""; n++ {
		if free := fmt.Sprintf("net%d", n); !reserved[free] && s.holder(free) < 0 {
			name = free
		}
	}
	entry := maps.Clone(c.Selection)
	entry["interface"] = name
	s.list, s.used = append(s.list, entry), append(s.used, true)
}

// unnamed returns the index of an element that stands for a connection whose
// interface may have any name, or -1.
func (s *selections) unnamed(c nf.Connection, reserved map[string]bool) int {
	for i, entry := range s.list {
		if !s.used[i] && !reserved[s.interfaceOf(i)] && s.sameNetwork(entry, c.Selection) && covers(entry, c.Selection) {
			return i
		}
	}
	return -1
}

// conflict says why an element does not stand for a connection of the same
// interface, or "".
func (s *selections) conflict(at int, c nf.Connection) string {
	switch entry := s.list[at]; {
	case entry["name"] == nil:
		return "is another network's name"
	case s.used[at] || !s.sameNetwork(entry, c.Selection):
		return fmt.Sprintf("is attached to the network %v already", entry["name"])
	case !covers(entry, c.Selection):
		return "is attached to this network already, with other settings"
	}
	return ""
}

func (s *selections) sameNetwork(a, b map[string]any) bool {
	in := func(m map[string]any) any {
		if m["namespace"] == nil || m["namespace"] == "" {
			return s.namespace
		}
		return m["namespace"]
	}
	return a["name"] == b["name"] && in(a) == in(b)
}

// covers reports whether an element has all settings of a connection.
func covers(entry, selection map[string]any) bool {
	for name, v := range selection {
		if name == "namespace" {
			continue
		}
		one, err := json.Marshal(entry[name])
		other, wrong := json.Marshal(v)
		if err != nil || wrong != nil || !bytes.Equal(one, other) {
			return false
		}
	}
	return true
}

// interfaceOf returns the name of the interface that multus makes for an element.
func (s *selections) interfaceOf(i int) string {
	for _, key := range []string{"interface", "interfaceRequest"} {
		if name, _ := s.list[i][key].(string); name != "" {
			return name
		}
	}
	return fmt.Sprintf("net%d", i+1)
}

var shortPattern = regexp.MustCompile(`^(?:([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)/)?([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)(?:@([^\s/@]{1,15}))?$`)

// parseSelections reads the annotation in both forms that multus reads: JSON, or
// a list of [NAMESPACE/]NAME[@INTERFACE].
func parseSelections(annotation any, namespace string) (*selections, error) {
	s := &selections{namespace: namespace}
	text, ok := annotation.(string)
	if !ok && annotation != nil {
		return nil, fmt.Errorf("is not text")
	}
	var err error
	switch {
	case strings.TrimSpace(text) == "":
	case strings.ContainsAny(text, `[{"`):
		s.list, err = parseJSONSelections(text)
	default:
		s.list, err = parseShortSelections(text)
	}
	s.used = make([]bool, len(s.list))
	return s, err
}

func parseShortSelections(text string) (list []map[string]any, err error) {
	for part := range strings.SplitSeq(text, ",") {
		m := shortPattern.FindStringSubmatch(strings.TrimSpace(part))
		if m == nil {
			return nil, fmt.Errorf("%q is not a network: it must have the form [NAMESPACE/]NAME[@INTERFACE]", nf.Clip(strings.TrimSpace(part), 64))
		}
		entry := map[string]any{"name": m[2]}
		if m[1] != "" {
			entry["namespace"] = m[1]
		}
		if m[3] != "" {
			entry["interface"] = m[3]
		}
		list = append(list, entry)
	}
	return list, nil
}

func parseJSONSelections(text string) (list []map[string]any, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber() // numbers stay as they are written
	if err := d.Decode(&list); err != nil {
		return nil, fmt.Errorf("is not a list of networks in JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("has text after the list of networks")
	}
	for i, entry := range list {
		if name, _ := entry["name"].(string); name == "" {
			return nil, fmt.Errorf("element %d has no name", i)
		}
	}
	return list, nil
}

// encode returns the annotation: JSON with sorted keys.
func (s *selections) encode() (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s.list); err != nil {
		return "", fmt.Errorf("cannot encode the networks: %w", err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// request adds the resources that connections take to the first container, in
// addition to its own.
func (t target) request(spec map[string]any, connections []nf.Connection) nf.Violations {
	needed := map[string]int64{}
	for _, c := range connections {
		for name, n := range c.Resources {
			needed[name] += n
		}
	}
	if len(needed) == 0 {
		return nil
	}
	containers, _ := spec["containers"].([]any)
	if len(containers) == 0 {
		return t.violation("spec.containers", "has no container that can request the resources of a network")
	}
	first, _ := containers[0].(map[string]any)
	resources := ensure(first, "resources")
	requests, limits := ensure(resources, "requests"), ensure(resources, "limits")
	if requests == nil || limits == nil {
		return t.violation("spec.containers[0].resources", "cannot hold the resources of a network")
	}
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		has := requests[name]
		if has == nil {
			has = limits[name]
		}
		sum, err := plus(has, needed[name])
		if err != nil {
			return t.violation("spec.containers[0].resources.requests["+name+"]", err.Error())
		}
		requests[name], limits[name] = sum, sum // of an extended resource, they must be equal
	}
	return nil
}

// plus adds a number to a quantity, which may be missing.
func plus(quantity any, n int64) (string, error) {
	sum := *resource.NewQuantity(n, resource.DecimalSI)
	if quantity != nil {
		has, err := resource.ParseQuantity(fmt.Sprint(quantity))
		if err != nil {
			return "", fmt.Errorf("%v is not a quantity", quantity)
		}
		sum.Add(has)
	}
	return sum.String(), nil
}
