package aai

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// node names one object.
type node struct {
	object *object
	keys   []string
	parent *node  // nil for a root
	uri    string // below /aai/vN
}

// form is the form of a place.
type form string

const (
	formObject     form = "object"
	formCollection form = "collection"
	formEdges      form = "relationship-list"
	formEdge       form = "relationship"
)

// place is the meaning of a path.
type place struct {
	form   form
	node   *node   // the object; for a collection its parent, or nil
	object *object // the type of a collection's members
}

var versionForm = regexp.MustCompile(`^v[1-9][0-9]{0,3}$`)

// splitVersion returns the version and the rest of an escaped path.
func splitVersion(path string) (version int, rest string, err *refusal) {
	after, found := strings.CutPrefix(path, "/aai/")
	name, rest, _ := strings.Cut(after, "/")
	if !found || !versionForm.MatchString(name) {
		return 0, "", refuse(codeMalformedPath, "%q is not a version", name)
	}
	version, _ = strconv.Atoi(name[1:]) // at most four digits
	switch {
	case version < oldestVersion:
		return 0, "", refuse(codeRetired, "version %s is retired", name)
	case version > newestVersion:
		return 0, "", refuse(codeUnknownVersion, "version %s is unknown", name)
	}
	return version, rest, nil
}

// stripPrefix removes the prefix /aai/vN and a host, both of which a link may have.
func stripPrefix(link string) string {
	if _, after, found := strings.Cut(link, "://"); found {
		_, path, _ := strings.Cut(after, "/")
		link = "/" + path
	}
	after, found := strings.CutPrefix(link, "/aai/")
	if !found {
		return link
	}
	_, rest, _ := strings.Cut(after, "/")
	return rest
}

// locate parses an escaped path below /aai/vN.
func (s *schema) locate(version int, path string) (place, *refusal) {
	rest := strings.Split(strings.Trim(path, "/"), "/")
	var at *node
	for {
		switch {
		case len(rest) == 0:
			return place{form: formObject, node: at}, nil
		case at != nil && slices.Equal(rest, []string{edgesName}):
			return place{form: formEdges, node: at}, nil
		case at != nil && slices.Equal(rest, []string{edgesName, edgeName}):
			return place{form: formEdge, node: at}, nil
		}
		next := s.match(version, at, rest)
		if next == nil {
			return place{}, refuse(codeInvalid, "%s: unrecognized A&AI object", path)
		}
		if len(rest) < len(next.segments) {
			return place{form: formCollection, node: at, object: next}, nil
		}
		rest = rest[len(next.segments):]
		keys, err := decodeKeys(next, rest)
		if err != nil {
			return place{}, err
		}
		at, rest = newNode(at, next, keys), rest[len(keys):]
	}
}

// locateObject parses the path of an object.
func (s *schema) locateObject(version int, path string) (*node, *refusal) {
	at, err := s.locate(version, path)
	if err != nil {
		return nil, err
	}
	if at.form != formObject {
		return nil, refuse(codeInvalid, "%s is not the path of an object", path)
	}
	return at.node, nil
}

// match returns the type whose path begins the segments, or whose collection they
// are.
func (s *schema) match(version int, parent *node, rest []string) *object {
	for _, o := range s.below(parent) {
		n := len(o.segments)
		isObject := len(rest) > n && slices.Equal(rest[:n], o.segments)
		isCollection := !o.Plain && slices.Equal(rest, o.segments[:n-1])
		if (isObject || isCollection) && version >= o.Introduced {
			return o
		}
	}
	return nil
}

func decodeKeys(o *object, rest []string) ([]string, *refusal) {
	if len(rest) < len(o.Keys) {
		return nil, refuse(codeInvalid, "a %s has the keys %s", o.Type, strings.Join(o.Keys, ", "))
	}
	keys := make([]string, len(o.Keys))
	for i := range keys {
		key, err := url.PathUnescape(rest[i])
		if err != nil || !utf8.ValidString(key) {
			return nil, refuse(codeEncoding, "%q is not percent-encoded UTF-8", rest[i])
		}
		if key == "" {
			return nil, refuse(codeInvalid, "the key %s of a %s is empty", o.Keys[i], o.Type)
		}
		keys[i] = key
	}
	return keys, nil
}

func newNode(parent *node, o *object, keys []string) *node {
	n := &node{object: o, keys: keys, parent: parent, uri: parent.address() + "/" + o.Path}
	for _, key := range keys {
		n.uri += "/" + url.PathEscape(key)
	}
	return n
}

// address returns the URI of a node; nil is the root.
func (n *node) address() string {
	if n == nil {
		return ""
	}
	return n.uri
}

// chain returns the node with the objects that contain it, outermost first.
func (n *node) chain() []*node {
	var out []*node
	for ; n != nil; n = n.parent {
		out = append(out, n)
	}
	slices.Reverse(out)
	return out
}
