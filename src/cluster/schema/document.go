package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
)

// Limits for a document, whatever its content.
const (
	maxComponents = 20_000
	maxPaths      = 50_000
)

var errLimit = errors.New("exceeds a limit")

// document is one OpenAPI v3 document: the kinds of one group and version. Each
// schema is compiled when its kind is first requested.
type document struct {
	old        bool // of an API server before 1.35 or of unknown version
	components map[string]json.RawMessage
	kinds      map[schema.GroupVersionKind]*served

	mu    sync.Mutex
	types map[string]*node // compiled Go types, by component
	nodes int              // number of compiled nodes
	size  atomic.Int64     // estimated bytes in memory
}

// served is the content of a document for one kind, and its compiled schema.
type served struct {
	component string
	status    bool // the kind has a status subresource

	compiled bool
	kind     *kind
	err      error
}

func newDocument() *document {
	return &document{
		old:        true,
		components: map[string]json.RawMessage{},
		kinds:      map[schema.GroupVersionKind]*served{},
		types:      map[string]*node{},
	}
}

// parseDocument parses a document. It returns an error for one that is not
// JSON, or that exceeds the limits of components or paths.
func parseDocument(text []byte) (*document, error) {
	d := newDocument()
	statuses := map[schema.GroupVersionKind]bool{}
	err := members(text, func(key string, value json.RawMessage) error {
		switch key {
		case "info":
			d.old = isOld(value)
		case "components":
			return d.readComponents(value)
		case "paths":
			return readPaths(value, statuses)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read OpenAPI document: %w", err)
	}
	for gvk, s := range d.kinds {
		s.status = statuses[gvk]
		if s.component == "" {
			delete(d.kinds, gvk)
		}
	}
	return d, nil
}

// groupVersionKinds is the extension with the kinds of a component or
// operation.
const groupVersionKinds = "x-kubernetes-group-version-kind"

type gvkJSON struct{ Group, Version, Kind string }

func (g gvkJSON) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: g.Group, Version: g.Version, Kind: g.Kind}
}

// isOld reports whether a document's info has a version before 1.35, or none.
func isOld(text []byte) bool {
	var info struct{ Version string }
	if err := json.Unmarshal(text, &info); err != nil {
		return true
	}
	v, err := version.ParseGeneric(info.Version)
	return err != nil || v.LessThan(version.MajorMinor(1, 35))
}

func (d *document) readComponents(text []byte) error {
	return members(text, func(key string, value json.RawMessage) error {
		if key != "schemas" {
			return nil
		}
		return members(value, d.addComponent)
	})
}

func (d *document) addComponent(name string, text json.RawMessage) error {
	if len(d.components) == maxComponents {
		return fmt.Errorf("more than %d schemas: %w", maxComponents, errLimit)
	}
	d.components[name] = bytes.Clone(text) // do not retain the whole document
	d.size.Add(int64(len(text) + len(name)))
	if !bytes.Contains(text, []byte(groupVersionKinds)) {
		return nil
	}
	var c struct {
		Kinds []gvkJSON `json:"x-kubernetes-group-version-kind"`
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return fmt.Errorf("schema %s: %w", show(name), err)
	}
	for _, k := range c.Kinds {
		s := &served{component: name}
		if d.kinds[k.gvk()] != nil {
			s.component = "" // two schemas for one kind: neither can be trusted
		}
		d.kinds[k.gvk()] = s
	}
	return nil
}

// readPaths finds the kinds with a status subresource.
func readPaths(text []byte, statuses map[schema.GroupVersionKind]bool) error {
	n := 0
	return members(text, func(path string, value json.RawMessage) error {
		if n++; n > maxPaths {
			return fmt.Errorf("more than %d paths: %w", maxPaths, errLimit)
		}
		if !strings.HasSuffix(path, "/{name}/status") {
			return nil
		}
		var p struct {
			Get struct {
				Kind gvkJSON `json:"x-kubernetes-group-version-kind"`
			}
		}
		if err := json.Unmarshal(value, &p); err != nil {
			return fmt.Errorf("path %s: %w", show(path), err)
		}
		statuses[p.Get.Kind.gvk()] = true
		return nil
	})
}

// members calls visit for each member of a JSON object, in order. It builds no
// map, so memory stays small until visit rejects too many members.
func members(text []byte, visit func(key string, value json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil {
		return err
	} else if t != json.Delim('{') {
		return errors.New("is not a JSON object")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string) // the decoder allows only string keys
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		if err := visit(name, value); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}
