package render

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// Encode serializes a plan as JSON, gzipped if it is large. The same plan gives the same bytes.
// It returns an error if JSON cannot express an object.
func Encode(p Plan) ([]byte, error) {
	content, err := json.Marshal(exact(p))
	if err != nil {
		return nil, fmt.Errorf("cannot encode plan: %w", err)
	}
	if len(content) < compressFrom {
		return content, nil
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err == nil {
		_, err = w.Write(content)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot compress plan: %w", err)
	}
	return b.Bytes(), nil
}

// compressFrom is the least size of a plan that is compressed: a compressor
// allocates about a megabyte.
const compressFrom = 4 << 10

// uncompressed returns the text of an encoded plan. The text of a plan that is not
// compressed begins with a brace.
func uncompressed(content []byte) ([]byte, error) {
	if bytes.HasPrefix(content, []byte("{")) {
		return content, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// Decode parses the output of Encode, including that of earlier versions. It
// does not limit the size of the input.
func Decode(content []byte) (Plan, error) {
	text, err := uncompressed(content)
	if err != nil {
		return Plan{}, fmt.Errorf("cannot decode plan: %w", err)
	}
	var p Plan
	if err := json.Unmarshal(text, &p); err != nil {
		return Plan{}, fmt.Errorf("cannot decode plan: %w", err)
	}
	for _, stage := range p.Stages {
		for _, o := range stage.Objects {
			if o.Object == nil || o.Base != nil && o.Base.Object == nil {
				return Plan{}, fmt.Errorf("cannot decode plan: an object of stage %q is missing", stage.Name)
			}
		}
	}
	for _, h := range p.Hooks {
		if h.Object == nil {
			return Plan{}, errors.New("cannot decode plan: the object of a hook is missing")
		}
	}
	return p, nil
}

// exact returns a copy of the plan whose floats stay floats when they are
// encoded as JSON and decoded again.
func exact(p Plan) Plan {
	p.Stages = slices.Clone(p.Stages)
	for i, stage := range p.Stages {
		p.Stages[i].Objects = exactObjects(stage.Objects)
	}
	p.Hooks = exactObjects(p.Hooks)
	return p
}

func exactObjects(objects []Planned) []Planned {
	objects = slices.Clone(objects)
	for i, o := range objects {
		content, _ := exactValue(o.Object.Object).(map[string]any)
		objects[i].Object = &unstructured.Unstructured{Object: content}
		if o.Base != nil {
			objects[i].Base = &exactObjects([]Planned{*o.Base})[0]
		}
	}
	return objects
}

func exactValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[k] = exactValue(e)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, e := range v {
			l[i] = exactValue(e)
		}
		return l
	case float64:
		return float(v)
	}
	return v
}

// float is a float64 that keeps its type in JSON: it is written as 1.0, where
// encoding/json writes 1, which would be decoded as an int64.
type float float64

func (f float) MarshalJSON() ([]byte, error) {
	v := float64(f)
	if v != math.Trunc(v) || math.Abs(v) >= 1<<63 {
		return json.Marshal(v)
	}
	return append(strconv.AppendFloat(nil, v, 'f', -1, 64), ".0"...), nil
}
