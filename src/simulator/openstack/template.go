package openstack

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The types of resources that are simulated, in addition to templates in files.
const (
	typeServer = "OS::Nova::Server"
	typePort   = "OS::Neutron::Port"
	typeGroup  = "OS::Heat::AutoScalingGroup"
)

// template is a HOT.
type template struct {
	Version    string `yaml:"heat_template_version"`
	Text       string `yaml:"description"`
	Parameters map[string]struct {
		Type    string `yaml:"type"`
		Text    string `yaml:"description"`
		Default any    `yaml:"default"`
	} `yaml:"parameters"`
	Resources map[string]struct {
		Type       string         `yaml:"type"`
		Properties map[string]any `yaml:"properties"`
		DependsOn  any            `yaml:"depends_on"`
	} `yaml:"resources"`
	Outputs map[string]any `yaml:"outputs"`
}

func readTemplate(text string) (t template, err error) {
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&t); err != nil {
		return t, fmt.Errorf("cannot read the template: %w", err)
	}
	if !slices.Contains([]string{"2013-05-23", "2018-08-31", "2021-04-16", "wallaby"}, t.Version) {
		return t, fmt.Errorf("the template version is invalid: %q", t.Version)
	}
	if len(t.Resources) == 0 {
		return t, errors.New("the template has no resources")
	}
	return t, nil
}

// check returns the values of the parameters of a template.
func (t template) check(given map[string]any) (map[string]any, error) {
	out := map[string]any{}
	for name := range given {
		if _, declared := t.Parameters[name]; !declared {
			return nil, fmt.Errorf("the Parameter (%s) was not defined in template", name)
		}
	}
	for name, p := range t.Parameters {
		value, has := given[name]
		_, isObject := value.(map[string]any)
		switch {
		case !has && p.Default == nil:
			return nil, fmt.Errorf("the Parameter (%s) was not provided", name)
		case !has:
			value = p.Default
		case p.Type == "json" && !isObject:
			return nil, fmt.Errorf("the value of the Parameter (%s) must be a JSON object", name)
		}
		out[name] = value
	}
	return out, nil
}

// place is the stack that a resource is in. A member of a group is a stack.
type place struct{ id, name string }

// resource is a resource of a stack, or of a member of one of its groups.
type resource struct {
	key        string // in the stack: its name, or group/number/name
	name, kind string
	owner      place
	id         string // physical
	unhealthy  bool
	properties map[string]any
}

func (one *resource) body(base string) map[string]any {
	return map[string]any{
		"resource_name": one.name, "logical_resource_id": one.name, "resource_type": one.kind, "physical_resource_id": one.id, "resource_status": "CREATE_COMPLETE",
		"resource_status_reason": "state changed", "required_by": []any{}, "creation_time": "1970-01-01T00:00:00Z", "updated_time": "1970-01-01T00:00:00Z",
		"links": []any{map[string]any{"rel": "stack", "href": base + "/orchestration/v1/project/stacks/" + one.owner.name + "/" + one.owner.id}},
	}
}

// described is what the resources of a template depend on.
type described struct {
	params map[string]any
	files  map[string]string
	prefix string // of the keys
}

// describe returns the resources of a template, sorted by key: ports before servers.
func (t template) describe(d described) (out []*resource, err error) {
	for _, name := range slices.Sorted(maps.Keys(t.Resources)) {
		r := t.Resources[name]
		properties, _ := d.resolve(r.Properties).(map[string]any)
		if r.Type == typeGroup {
			members, err := d.group(name, properties)
			if err != nil {
				return nil, err
			}
			out = append(out, members...)
			continue
		}
		if r.Type != typeServer && r.Type != typePort {
			return nil, fmt.Errorf("resources.%s: unknown resource Type : %s", name, r.Type)
		}
		out = append(out, &resource{key: d.prefix + name, name: name, kind: r.Type, properties: properties})
	}
	slices.SortStableFunc(out, func(a, b *resource) int { return strings.Compare(a.kind, b.kind) })
	return out, nil
}

// group returns the resources of the members of a group.
func (d described) group(name string, properties map[string]any) (out []*resource, err error) {
	of, _ := properties["resource"].(map[string]any)
	file, _ := of["type"].(string)
	text, found := d.files[file]
	if !found {
		return nil, fmt.Errorf("resources.%s: the template %q is not in files", name, file)
	}
	inner, err := readTemplate(text)
	if err != nil {
		return nil, fmt.Errorf("resources.%s: %w", name, err)
	}
	given, _ := of["properties"].(map[string]any)
	params, err := inner.check(given)
	if err != nil {
		return nil, fmt.Errorf("resources.%s: %w", name, err)
	}
	count, ok := number(properties["desired_capacity"])
	least, hasLeast := number(properties["min_size"])
	most, hasMost := number(properties["max_size"])
	if !ok || !hasLeast || !hasMost || count < least || count > most {
		return nil, fmt.Errorf("resources.%s: desired_capacity must be between min_size and max_size", name)
	}
	for n := range count {
		members, err := inner.describe(described{params: params, files: d.files, prefix: fmt.Sprintf("%s/%d/", name, n)})
		if err != nil {
			return nil, err
		}
		out = append(out, members...)
	}
	return out, nil
}

func number(value any) (int, bool) {
	n, err := strconv.Atoi(fmt.Sprint(value))
	return n, err == nil
}

// resolve replaces the functions of a value. A reference to a resource stays.
func (d described) resolve(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if of, is := v["get_param"]; is && len(v) == 1 {
			return d.param(of)
		}
		out := map[string]any{}
		for key, inner := range v {
			if resolved := d.resolve(inner); resolved != nil {
				out[key] = resolved
			}
		}
		return out
	case []any:
		out := []any{}
		for _, inner := range v {
			out = append(out, d.resolve(inner))
		}
		return out
	}
	return value
}

// param returns the value of a parameter, or a part of it; nil if there is none.
func (d described) param(of any) any {
	path, isList := of.([]any)
	if !isList {
		path = []any{of}
	}
	var value any = d.params
	for _, step := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[fmt.Sprint(step)]
		case []any:
			n, ok := number(step)
			if !ok || n >= len(v) {
				return nil
			}
			value = v[n]
		default:
			return nil
		}
	}
	return value
}

// reconcile makes the resources of a stack those that its template describes. A resource
// that cannot be made makes the action fail.
func (s *Simulator) reconcile(st *stack, wanted []*resource) {
	var next []*resource
	for _, want := range wanted {
		at := slices.IndexFunc(st.resources, func(one *resource) bool { return one.key == want.key })
		if at >= 0 && !s.spoiled(st.resources[at]) && reflect.DeepEqual(st.resources[at].properties, want.properties) && st.resources[at].id != "" {
			next = append(next, st.resources[at])
			continue
		}
		want.owner = s.owner(st, want.key)
		if at >= 0 {
			s.discard(st.resources[at])
			want.owner = st.resources[at].owner
		}
		next = append(next, want)
		siblings := func(name string) *resource {
			key := strings.TrimSuffix(want.key, want.name) + name
			if i := slices.IndexFunc(next, func(one *resource) bool { return one.key == key }); i >= 0 {
				return next[i]
			}
			return nil
		}
		if err := s.makeResource(want, siblings); err != nil && st.status == inProgress {
			st.status, st.reason = failed, fmt.Sprintf("Resource %s failed: resources.%s: %s", st.action, want.name, err)
		}
	}
	for _, one := range st.resources {
		if !slices.ContainsFunc(next, func(n *resource) bool { return n.key == one.key }) {
			s.discard(one)
		}
	}
	st.resources = next
}

// spoiled reports whether the next change of a stack replaces a resource in any case.
func (s *Simulator) spoiled(one *resource) bool {
	at := s.server(one.id)
	return one.unhealthy || one.kind == typeServer && (at == nil || at.status == "ERROR")
}

// owner returns the stack of a resource: that of its member of a group, or the whole.
func (s *Simulator) owner(st *stack, key string) place {
	at := strings.LastIndexByte(key, '/')
	if at < 0 {
		return place{st.id, st.name}
	}
	for _, one := range st.resources {
		if strings.HasPrefix(one.key, key[:at+1]) {
			return one.owner
		}
	}
	return place{"member-" + st.id + "-" + strings.ReplaceAll(key[:at], "/", "-"), st.name + "-" + strings.ReplaceAll(key[:at], "/", "-")}
}

// makeResource makes a port or a server.
func (s *Simulator) makeResource(one *resource, sibling func(name string) *resource) error {
	text := func(name string) string { value, _ := one.properties[name].(string); return value }
	if one.kind == typePort {
		at := slices.IndexFunc(s.networks, func(n Network) bool { return n.ID == text("network") || n.Name == text("network") })
		if at < 0 {
			return fmt.Errorf("Unable to find network with name or id '%s'", text("network")) //nolint:staticcheck // Neutron's text
		}
		p := &port{id: s.id(), name: one.name, network: s.networks[at].ID}
		p.address = fmt.Sprint(s.networks[at].Prefix, s.last%250+3)
		if ips, _ := one.properties["fixed_ips"].([]any); len(ips) > 0 {
			first, _ := ips[0].(map[string]any)
			p.address = fmt.Sprint(first["ip_address"])
		}
		s.ports, one.id = append(s.ports, p), p.id
		return nil
	}
	known := func(all []Named, wanted string) string {
		if at := slices.IndexFunc(all, func(n Named) bool { return n.ID == wanted || n.Name == wanted }); at >= 0 {
			return all[at].ID
		}
		return ""
	}
	image, flavor := known(s.images, text("image")), known(s.flavors, text("flavor"))
	switch {
	case image == "":
		return fmt.Errorf("Error validating value '%s': No images matching", text("image")) //nolint:staticcheck // Heat's text
	case flavor == "":
		return fmt.Errorf("Error validating value '%s': No Flavor matching", text("flavor")) //nolint:staticcheck // Heat's text
	}
	now := s.cfg.Clock()
	made := &server{id: s.id(), name: one.name, status: "BUILD", image: image, flavor: flavor, created: now, ready: now.Add(s.cfg.Boot)}
	networks, _ := one.properties["networks"].([]any)
	for _, n := range networks {
		of, _ := n.(map[string]any)
		ref, _ := of["port"].(map[string]any)
		name, _ := ref["get_resource"].(string)
		bound := sibling(name)
		if bound == nil || s.port(bound.id) == nil {
			return fmt.Errorf("the referenced resource %q does not exist", name)
		}
		s.port(bound.id).server = made.id
	}
	s.servers, one.id = append(s.servers, made), made.id
	return nil
}

// discard deletes a port, or requests the deletion of a server.
func (s *Simulator) discard(one *resource) {
	if one.kind == typePort {
		s.ports = slices.DeleteFunc(s.ports, func(p *port) bool { return p.id == one.id })
		return
	}
	if found := s.server(one.id); found != nil && found.vanish.IsZero() {
		found.vanish = s.cfg.Clock().Add(s.cfg.Vanish)
	}
}

// progress ends the actions of stacks whose servers are as the template has them.
func (s *Simulator) progress() {
	for _, st := range s.stacks {
		done := st.status == inProgress
		for _, one := range st.resources {
			if one.kind != typeServer || st.status != inProgress {
				continue
			}
			at := s.server(one.id)
			switch {
			case st.action == "DELETE":
				done = done && at == nil
			case at == nil || at.status == "BUILD":
				done = false
			case at.status == "ERROR":
				st.status, st.reason = failed, fmt.Sprintf("ResourceInError: resources.%s: Went to status ERROR due to %q", one.name, at.fault)
			}
		}
		if done && st.status == inProgress {
			st.status, st.reason = complete, "Stack "+st.action+" completed successfully"
		}
	}
	s.stacks = slices.DeleteFunc(s.stacks, func(st *stack) bool { return st.action == "DELETE" && st.status == complete })
}
