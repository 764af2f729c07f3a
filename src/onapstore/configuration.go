package onapstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// configRoot is the prefix of all keys of configurations.
const configRoot = "onapk8s/config/"

// pair is an etcd key with its value.
type pair struct {
	key   string
	value []byte
}

// configDocument is a configuration as it is stored.
type configDocument struct {
	Name        string          `json:"config-name"`
	Template    string          `json:"template-name"`
	Description string          `json:"description"`
	Values      json.RawMessage `json:"values"`
}

// versionDocument is a version as it is stored.
type versionDocument struct {
	New    configDocument `json:"config-new"`
	Prev   configDocument `json:"config-prev"`
	Action string         `json:"action"` // POST, PUT or DELETE
}

func (d versionDocument) version(number int) Version {
	if d.Action == "DELETE" {
		return d.Prev.version(number, true)
	}
	return d.New.version(number, false)
}

func (d configDocument) version(number int, deleted bool) Version {
	return Version{Number: number, Deleted: deleted, Template: d.Template, Description: d.Description, Values: d.Values}
}

// readConfigurations reads etcd, and assigns the configurations to their
// instances.
func (r *reading) readConfigurations(ctx context.Context) error {
	if r.store.keys == nil {
		return nil
	}
	pairs, err := r.pairs(ctx)
	if err != nil {
		return err
	}
	findings := assign(r.out.Instances, pairs)
	r.out.Findings = append(r.out.Findings, findings...)
	return nil
}

// pairs reads all keys of configurations at a single revision.
func (r *reading) pairs(ctx context.Context) ([]pair, error) {
	const page = 256
	var out []pair
	from, end, revision := configRoot, clientv3.GetPrefixRangeEnd(configRoot), int64(0)
	for {
		got, err := r.page(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(page), clientv3.WithRev(revision))
		if err != nil {
			return nil, err
		}
		for _, kv := range got.Kvs {
			out = append(out, pair{string(kv.Key), kv.Value})
		}
		if !got.More || len(got.Kvs) == 0 {
			return out, nil
		}
		from, revision = out[len(out)-1].key+"\x00", got.Header.Revision
	}
}

func (r *reading) page(ctx context.Context, from string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	got, err := r.store.keys.Get(ctx, from, opts...)
	return got, unreadable("read", "the configurations in ONAP's etcd", err)
}

// history holds the records of one instance's configurations by name.
type history map[string]*record

// record is the data in etcd about one configuration.
type record struct {
	data     *configDocument
	versions map[int]Version
	tags     map[string]int
	counter  int
	broken   bool // its data cannot be read, so its active values are unknown
}

func (h history) of(name string) *record {
	if h[name] == nil {
		h[name] = &record{versions: map[int]Version{}, tags: map[string]int{}}
	}
	return h[name]
}

// assign gives each instance its configurations. Names in a key are not
// escaped, so only the known instances determine where they end.
func assign(instances []Instance, pairs []pair) []Finding {
	var findings []Finding
	found := func(p pair, lost bool, message string) {
		findings = append(findings, Finding{Place: Place{Key: p.key}, Lost: lost, Message: message})
	}
	owners := map[string]int{}
	for i, in := range instances {
		owners[strings.Join([]string{in.Request.Definition, in.Request.Version, in.Request.Profile, in.ID}, "/")] = i
	}
	histories := make([]history, len(instances))
	for _, p := range pairs {
		owner, rest, ok := ownerOf(owners, p.key)
		if !ok {
			found(p, false, "it does not belong to an instance; ONAP does not show it either")
			continue
		}
		if histories[owner] == nil {
			histories[owner] = history{}
		}
		if message := histories[owner].add(rest, p.value); message != "" {
			found(p, true, message)
		}
	}
	for i, h := range histories {
		in := &instances[i]
		for _, name := range slices.Sorted(maps.Keys(h)) {
			if r := h[name]; r.broken || r.data == nil && len(r.versions) == 0 {
				continue
			}
			c, odd := h[name].configuration(name)
			in.Configurations = append(in.Configurations, c)
			for _, message := range odd {
				findings = append(findings, Finding{Place: Place{Key: fmt.Sprintf("configuration %q of instance %s", name, in.ID)}, Message: message})
			}
		}
	}
	return findings
}

// ownerOf returns the instance that a key belongs to, and the rest of the key
// after the instance's name.
func ownerOf(owners map[string]int, key string) (owner int, rest string, ok bool) {
	path := strings.TrimPrefix(key, configRoot)
	for i, c := range path {
		if c != '/' {
			continue
		}
		if owner, ok := owners[path[:i]]; ok {
			return owner, path[i+1:], true
		}
	}
	return 0, "", false
}

// add reads one key. The message says why that failed; it is empty on success.
func (h history) add(rest string, value []byte) (message string) {
	kind, rest, _ := strings.Cut(rest, "/")
	name := strings.TrimSuffix(rest, "/")
	leaf := ""
	if kind == "configversion" || kind == "configtag" {
		i := strings.LastIndexByte(name, '/')
		if i < 0 {
			return "its key is not complete"
		}
		name, leaf = name[:i], name[i+1:]
	}
	if name == "" {
		return "it belongs to a configuration without a name: ONAP stores an update this way if the request omits the name"
	}
	switch kind {
	case "configdata":
		return h.of(name).addData(value)
	case "configversion":
		return h.of(name).addVersion(leaf, value)
	case "configtag":
		return h.of(name).addTag(leaf, value)
	case "counter":
		n, ok := countOf(string(value))
		if !ok {
			return "it is not a version number"
		}
		h.of(name).counter = n
		return ""
	}
	return "keys of this kind are unknown"
}

func (r *record) addData(value []byte) string {
	var d configDocument
	err := json.Unmarshal(value, &d)
	switch r.broken = err != nil || !isObject(d.Values); {
	case err != nil:
		return misshapen(err)
	case r.broken:
		return "its values are not an object"
	}
	r.data = &d
	return ""
}

func (r *record) addVersion(leaf string, value []byte) string {
	n, ok := countOf(leaf)
	if !ok {
		return "its key does not end with a version number"
	}
	var d versionDocument
	if err := json.Unmarshal(value, &d); err != nil {
		return misshapen(err)
	}
	v := d.version(n)
	if !isObject(v.Values) {
		return "its values are not an object"
	}
	r.versions[n] = v
	return ""
}

func (r *record) addTag(name string, value []byte) string {
	n, ok := countOf(string(value))
	if !ok || name == "" {
		return "it does not name a version"
	}
	r.tags[name] = n
	return ""
}

// mostVersions bounds version numbers, far above any real number and far below
// an overflow.
const mostVersions = 1 << 30

// countOf parses a version number.
func countOf(text string) (int, bool) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	return n, err == nil && n > 0 && n < mostVersions
}

// isObject reports whether values are a JSON object or empty.
func isObject(values json.RawMessage) bool {
	var out map[string]any
	return len(values) == 0 || json.Unmarshal(values, &out) == nil
}

// configuration builds a configuration from its record, and describes
// inconsistencies.
func (r *record) configuration(name string) (c Configuration, odd []string) {
	c = Configuration{Name: name, Current: r.counter}
	if newest := slices.Max(append(slices.Collect(maps.Keys(r.versions)), 0)); r.counter == 0 {
		c.Current = max(newest, 1)
		odd = append(odd, fmt.Sprintf("its counter is missing; the newest existing version is %d", newest))
	}
	for n := range r.versions {
		if n > c.Current {
			odd = append(odd, fmt.Sprintf("version %d is newer than its counter and is omitted", n))
			delete(r.versions, n)
		}
	}
	last, kept := r.versions[c.Current]
	c.InForce = r.data != nil && !last.Deleted // a deletion does not remove the data
	if r.data != nil {
		now := r.data.version(c.Current, last.Deleted)
		if kept && !same(last, now) {
			odd = append(odd, fmt.Sprintf("the active configuration differs from version %d; the active one is used", c.Current))
		}
		r.versions[c.Current] = now
	}
	c.Versions = slices.SortedFunc(maps.Values(r.versions), func(a, b Version) int { return cmp.Compare(a.Number, b.Number) })
	for tag, n := range r.tags {
		if _, kept := r.versions[n]; !kept {
			odd = append(odd, fmt.Sprintf("tag %q refers to version %d, which does not exist", tag, n))
			continue
		}
		c.Tags = append(c.Tags, Tag{tag, n})
	}
	slices.SortFunc(c.Tags, func(a, b Tag) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(odd)
	return c, odd
}

// same reports whether two versions have the same content.
func same(a, b Version) bool {
	var x, y any
	_ = json.Unmarshal(a.Values, &x) // both were parsed before
	_ = json.Unmarshal(b.Values, &y)
	return a.Deleted == b.Deleted && a.Template == b.Template && a.Description == b.Description && reflect.DeepEqual(x, y)
}
