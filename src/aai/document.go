package aai

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Document is an object that A&AI is to have, with the objects that it contains.
type Document struct {
	Path       string         `json:"path"`            // below the API's version, escaped
	Attributes map[string]any `json:"attributes"`      // strings, booleans, integers and lists of strings; nil: it must be absent
	Edges      []string       `json:"edges,omitempty"` // paths of the objects that it is related to
	Children   []Document     `json:"children,omitempty"`
}

// childKeys are the keys of the objects that documents contain, by the name of the
// array that lists them.
var childKeys = map[string]string{
	"l-interface":                    "interface-name",
	"l3-interface-ipv4-address-list": "l3-interface-ipv4-address",
	"l3-interface-ipv6-address-list": "l3-interface-ipv6-address",
	"subnet":                         "subnet-id",
	"segmentation-assignment":        "segmentation-id",
	"hpa-capability":                 "hpa-capability-id",
	"hpa-feature-attributes":         "hpa-attribute-key",
}

// blocking are the types of children that prevent the deletion of the object that
// contains them. A&AI deletes all others with it.
var blocking = map[string]bool{"hpa-capability": true}

const (
	versionName  = "resource-version"
	edgesName    = "relationship-list"
	edgeName     = "relationship"
	edgePath     = "/relationship-list/relationship"
	ownerName    = "data-owner"
	tenantsPart  = "/tenants/tenant/"
	manySegments = 3 // of a child's path below its parent, if a wrapper is around the array
)

// Digest identifies the content of the document.
func (d Document) Digest() (string, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return "", fmt.Errorf("cannot encode %s: %w", d.Path, err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// body returns the body of the request that creates the object with its edges and
// children.
func (d Document) body() map[string]any {
	out := make(map[string]any, len(d.Attributes)+2)
	for name, value := range d.Attributes {
		if value != nil {
			out[name] = value
		}
	}
	if len(d.Edges) > 0 {
		var list []any
		for _, path := range d.Edges {
			list = append(list, edgeTo(path))
		}
		out[edgesName] = map[string]any{edgeName: list}
	}
	for wrapper, arrays := range d.containers() {
		for array, children := range arrays {
			var list []any
			for _, c := range children {
				list = append(list, c.body())
			}
			if wrapper == array {
				out[array] = list
			} else {
				out[wrapper] = map[string]any{array: list}
			}
		}
	}
	return out
}

func edgeTo(path string) map[string]any { return map[string]any{"related-link": path} }

// containers returns the children by the names of their wrapper and their array. If
// there is no wrapper, both are equal.
func (d Document) containers() map[string]map[string][]Document {
	out := make(map[string]map[string][]Document)
	for _, c := range d.Children {
		segments := strings.Split(strings.TrimPrefix(c.Path, d.Path+"/"), "/")
		wrapper, array := segments[0], segments[0]
		if len(segments) == manySegments {
			array = segments[1]
		}
		if out[wrapper] == nil {
			out[wrapper] = make(map[string][]Document)
		}
		out[wrapper][array] = append(out[wrapper][array], c)
	}
	return out
}

// targets returns the paths that the document and its children are related to.
func (d Document) targets() []string {
	out := slices.Clone(d.Edges)
	for _, c := range d.Children {
		out = append(out, c.targets()...)
	}
	return out
}

// join returns a path below another one, from names and keys. Keys are escaped.
func join(path string, segments ...string) string {
	for _, s := range segments {
		path += "/" + url.PathEscape(s)
	}
	return path
}

// parentOf returns the path of the object that contains another one, and "" for a
// root.
func parentOf(path string) string {
	for _, containers := range []string{"/k8s-resources/", "/vservers/", "/tenants/", "/flavors/"} {
		if i := strings.LastIndex(path, containers); i >= 0 {
			return path[:i]
		}
	}
	return ""
}

// normalPath returns the path of a link in the form of a Document's paths.
func normalPath(link string) string {
	if _, after, found := strings.Cut(link, "://"); found {
		_, rest, _ := strings.Cut(after, "/")
		link = "/" + rest
	}
	if after, found := strings.CutPrefix(link, "/aai/"); found {
		_, rest, _ := strings.Cut(after, "/")
		link = "/" + rest
	}
	segments := strings.Split(strings.Trim(link, "/"), "/")
	for i, s := range segments {
		if plain, err := url.PathUnescape(s); err == nil {
			segments[i] = plain
		}
	}
	return join("", segments...)
}
