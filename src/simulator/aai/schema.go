package aai

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

var (
	//go:embed objects.json
	objectTable []byte
	//go:embed edges.json
	edgeTable []byte
)

const (
	oldestVersion  = 11 // older ones are retired
	newestVersion  = 32
	marksVersion   = 23 // the first with data-owner, data-source and data-source-version
	versionName    = "resource-version"
	edgesName      = "relationship-list"
	edgeName       = "relationship"
	manyToOne      = "MANY2ONE"
	oneToMany      = "ONE2MANY"
	manyToMany     = "MANY2MANY"
	deletionBlocks = "blocks"
)

// schema is the tables of objects and edges.
type schema struct {
	objects map[string]*object
	roots   []*object
	rules   []*rule
}

// object describes the objects of one type.
type object struct {
	Type       string         `json:"-"`
	Path       string         `json:"path"`  // below its parent, without its keys
	Plain      bool           `json:"plain"` // its parent has an array of them without a wrapper
	Introduced int            `json:"introduced"`
	Keys       []string       `json:"keys"`
	Required   []string       `json:"required"` // texts
	Flags      []string       `json:"flags"`    // mandatory booleans that A&AI sets to false
	Strings    []string       `json:"strings"`
	Booleans   []string       `json:"booleans"`
	Integers   []string       `json:"integers"`
	Lists      []string       `json:"lists"`    // arrays of texts
	Together   [][]string     `json:"together"` // all or none
	Since      map[string]int `json:"since"`    // the version in which an attribute appeared

	segments   []string
	attributes map[string]attribute
	children   []*object
}

// attribute describes an attribute.
type attribute struct {
	kind     kind
	required bool
	filled   bool // A&AI sets it to false
	since    int
}

// kind is the type of an attribute's value.
type kind string

const (
	kindText    kind = "a string"
	kindBoolean kind = "a boolean"
	kindInteger kind = "an integer"
	kindTexts   kind = "an array of strings"
)

// rule permits edges between two types.
type rule struct {
	From         string `json:"from"`
	To           string `json:"to"`
	Label        string `json:"label"`
	Multiplicity string `json:"multiplicity"`
	Child        bool   `json:"child"`    // From is contained in To
	Deletion     string `json:"deletion"` // of To: "blocks", "cascade", or neither
}

// loadSchema reads the tables.
func loadSchema() (*schema, error) {
	s := &schema{}
	if err := decodeTable(objectTable, &s.objects); err != nil {
		return nil, fmt.Errorf("cannot read the table of objects: %w", err)
	}
	if err := decodeTable(edgeTable, &s.rules); err != nil {
		return nil, fmt.Errorf("cannot read the table of edges: %w", err)
	}
	for name, o := range s.objects {
		o.Type, o.segments = name, strings.Split(o.Path, "/")
		o.attributes = o.table()
		if len(o.segments) == 3 {
			s.roots = append(s.roots, o)
		}
	}
	for _, r := range s.rules {
		from, to := s.objects[r.From], s.objects[r.To]
		if from == nil || to == nil {
			return nil, fmt.Errorf("cannot read the table of edges: %s or %s is not an object", r.From, r.To)
		}
		if r.Child {
			to.children = append(to.children, from)
		}
	}
	return s, nil
}

func decodeTable(table []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(table))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// table returns the attributes by name.
func (o *object) table() map[string]attribute {
	out := make(map[string]attribute)
	add := func(names []string, a attribute) {
		for _, name := range names {
			a.since = o.Since[name]
			out[name] = a
		}
	}
	add(o.Keys, attribute{kind: kindText, required: true})
	add(o.Required, attribute{kind: kindText, required: true})
	add(o.Flags, attribute{kind: kindBoolean, filled: true})
	add(o.Strings, attribute{kind: kindText})
	add(o.Booleans, attribute{kind: kindBoolean})
	add(o.Integers, attribute{kind: kindInteger})
	add(o.Lists, attribute{kind: kindTexts})
	for _, name := range []string{"data-owner", "data-source", "data-source-version"} {
		out[name] = attribute{kind: kindText, since: marksVersion}
	}
	return out
}

// container returns the name under which a parent's document has its children, and
// the name of the array in it, which is empty if there is no wrapper.
func (o *object) container() (wrapper, array string) {
	if o.Plain {
		return o.Type, ""
	}
	return o.segments[len(o.segments)-2], o.segments[len(o.segments)-1]
}

// below returns the types of the objects that an object contains; nil is the root.
func (s *schema) below(parent *node) []*object {
	if parent == nil {
		return s.roots
	}
	return parent.object.children
}

// rule returns the rule for edges between two objects, and whether the first one is
// its From. A rule with an empty label matches any.
func (s *schema) rule(a, b *object, label string) (*rule, bool) {
	for _, r := range s.rules {
		if label != "" && r.Label != label {
			continue
		}
		if r.From == a.Type && r.To == b.Type {
			return r, true
		}
		if r.From == b.Type && r.To == a.Type {
			return r, false
		}
	}
	return nil, false
}

// containing returns the rule by which a child belongs to its parent.
func (s *schema) containing(child, parent *object) *rule {
	i := slices.IndexFunc(s.rules, func(r *rule) bool { return r.Child && r.From == child.Type && r.To == parent.Type })
	return s.rules[i]
}
