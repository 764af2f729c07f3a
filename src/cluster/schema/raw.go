package schema

import (
	"bytes"
	"fmt"

	kjson "k8s.io/apimachinery/pkg/util/json"
)

// raw is an undecoded schema. Members of the wrong type count as absent.
type raw map[string]any

// readSchema decodes a schema. To limit memory, it first counts braces, as each
// nested schema has one.
func readSchema(text []byte) (raw, error) {
	if n := bytes.Count(text, []byte("{")); n > maxNodes {
		return nil, fmt.Errorf("%d nodes: %w", n, errLimit)
	}
	var r raw
	err := kjson.Unmarshal(text, &r)
	return r, err
}

func (r raw) text(key string) string {
	s, _ := r[key].(string)
	return s
}

func (r raw) flag(key string) bool {
	b, _ := r[key].(bool)
	return b
}

func (r raw) number(key string) *float64 {
	switch v := r[key].(type) {
	case int64:
		return new(float64(v))
	case float64:
		return new(v)
	}
	return nil
}

func (r raw) count(key string) *int64 {
	switch v := r[key].(type) {
	case int64:
		return new(v)
	case float64:
		return new(int64(v))
	}
	return nil
}

func (r raw) texts(key string) []string {
	list, _ := r[key].([]any)
	var out []string
	for _, v := range list {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func (r raw) schema(key string) (raw, bool) {
	m, ok := r[key].(map[string]any)
	return m, ok
}

func (r raw) schemas(key string) []raw {
	list, _ := r[key].([]any)
	var out []raw
	for _, v := range list {
		m, _ := v.(map[string]any)
		out = append(out, m)
	}
	return out
}
