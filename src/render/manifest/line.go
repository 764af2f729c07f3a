package manifest

import (
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/render"
)

// reread returns a function that reads the documents of a file again. The nodes
// with the lines of fields are not kept: they are rarely needed, and take more
// memory than the objects.
func reread(name string, content []byte) func() []document {
	return sync.OnceValue(func() []document {
		rd := &reader{report: &report{}, uses: map[string]place{}, templates: true}
		return rd.manifests(name, content)
	})
}

// lines returns a function for the lines of a document's fields. It keeps
// neither the document nor its nodes.
func (e *expander) lines(d document) render.Lines {
	again, s := d.again, e.scope
	return func(field string) int { return newExpander(s, &report{}).line(again(), field) }
}

// line returns the line of a field, or of the nearest field above it that is
// written.
func (e *expander) line(n *yaml.Node, path string) int {
	line := n.Line
	for {
		next, at, rest := e.step(n, path)
		if next == nil {
			return line
		}
		n, line, path = next, at, rest
	}
}

// step returns the value that the first step of a path leads to, its line, and
// the rest of the path. next is nil if that value is not written.
func (e *expander) step(n *yaml.Node, path string) (next *yaml.Node, line int, rest string) {
	switch n.Kind {
	case yaml.MappingNode:
		longest := -1 // a key may contain dots, and may be the prefix of another key
		for f := range fields(n) {
			key, known := e.value(f.key).(string)
			if !known || len(key) <= longest {
				continue
			}
			if after, leads := cutKey(path, key); leads {
				next, line, rest, longest = f.value, f.key.Line, after, len(key)
			}
		}
	default: // a scalar has no items
		index, after, closed := strings.Cut(strings.TrimPrefix(path, "["), "]")
		if i, err := strconv.Atoi(index); closed && err == nil && i >= 0 && i < len(n.Content) {
			next, line, rest = n.Content[i], n.Content[i].Line, after
		}
	}
	return next, line, rest
}

// cutKey removes a key from the beginning of a path, in the form key, .key,
// [key] or ["key"].
func cutKey(path, key string) (rest string, leads bool) {
	inside, brackets := strings.CutPrefix(path, "[")
	quoted, quotes := strings.CutPrefix(inside, `"`)
	if brackets && quotes {
		if rest, leads = strings.CutPrefix(quoted, key); leads {
			return strings.CutPrefix(rest, `"]`)
		}
	}
	if brackets {
		if rest, leads = strings.CutPrefix(inside, key); leads {
			return strings.CutPrefix(rest, "]")
		}
		return "", false
	}
	rest, leads = strings.CutPrefix(strings.TrimPrefix(path, "."), key)
	return rest, leads && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
