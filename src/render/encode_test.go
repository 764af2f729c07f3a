package render_test

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/multicloud-k8s/k8splugin/src/render"
)

// value generates anything that an unstructured object may hold.
func value(depth int) *rapid.Generator[any] {
	kinds := []*rapid.Generator[any]{
		rapid.Just[any](nil),
		rapid.Bool().AsAny(),
		rapid.String().AsAny(),
		rapid.Int64().AsAny(),
		rapid.Float64().AsAny(),
		rapid.SampledFrom([]any{0.0, 1.0, -3.0, 1e18, 1e19, 1e21, math.MaxFloat64, math.SmallestNonzeroFloat64, int64(math.MinInt64)}),
	}
	if depth > 0 {
		kinds = append(kinds, rapid.SliceOfN(value(depth-1), 0, 3).AsAny(), rapid.MapOfN(rapid.String(), value(depth-1), 0, 3).AsAny())
	}
	return rapid.OneOf(kinds...)
}

func planGenerator() *rapid.Generator[render.Plan] {
	planned := rapid.Custom(func(t *rapid.T) render.Planned {
		content := rapid.MapOfN(rapid.String(), value(3), 0, 4).Draw(t, "content")
		content["kind"] = "K"
		return render.Planned{
			Object: &unstructured.Unstructured{Object: content},
			Wait:   rapid.SampledFrom([]render.Wait{render.WaitReady, render.WaitApplied}).Draw(t, "wait"),
			File:   rapid.String().Draw(t, "file"), Line: rapid.Int().Draw(t, "line"),
			Recreate: rapid.Bool().Draw(t, "recreate"),
		}
	})
	stage := rapid.Custom(func(t *rapid.T) render.Stage {
		return render.Stage{
			Name:    rapid.String().Draw(t, "name"),
			Timeout: time.Duration(rapid.Int64().Draw(t, "timeout")),
			Objects: rapid.SliceOfN(planned, 0, 3).Draw(t, "objects"),
		}
	})
	return rapid.Custom(func(t *rapid.T) render.Plan {
		return render.Plan{
			Namespace: rapid.String().Draw(t, "namespace"),
			Stages:    rapid.SliceOfN(stage, 0, 3).Draw(t, "stages"),
			Warnings:  rapid.SliceOfN(rapid.String(), 0, 2).Draw(t, "warnings"),
		}
	})
}

func TestEncodeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plan := planGenerator().Draw(t, "plan")
		first, err := render.Encode(plan)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := render.Decode(first)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(plan, decoded, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("a plan comes back as it was, numbers with their type (-want +got):\n%s", diff)
		}
		second, err := render.Encode(decoded)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, second) {
			t.Fatal("the same plan has two encodings")
		}
	})
}

func TestEncodeRefuses(t *testing.T) {
	plan := render.Plan{Stages: []render.Stage{{Objects: []render.Planned{{
		Object: &unstructured.Unstructured{Object: map[string]any{"x": math.NaN()}},
	}}}}}
	if _, err := render.Encode(plan); err == nil {
		t.Error("NaN is not JSON, but no error")
	}
}

func TestDecodeRefuses(t *testing.T) {
	whole, err := render.Encode(render.Plan{Namespace: "ns"})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason  string
		content []byte
	}{
		"nothing":   {"nothing is no plan", nil},
		"text":      {"text is no plan", []byte("plan")},
		"two plans": {"one blob is one plan", []byte(`{"namespace": "a"}{"namespace": "b"}`)},
		"truncated": {"half a plan is none", whole[:len(whole)-4]},
		"no JSON":   {"gzip alone is no plan", gzipOf(t, []byte("x"))},
		"no object": {"a plan is made of objects", gzipOf(t, []byte(`{"stages": [{"objects": [{"wait": "ready"}]}]}`))},
		"no kind":   {"an object has a kind", gzipOf(t, []byte(`{"stages": [{"objects": [{"object": {"a": 1}}]}]}`))},
		"tail":      {"one blob is one plan", gzipOf(t, []byte(`{"namespace": "a"}{"namespace": "b"}`))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := render.Decode(tc.content); err == nil {
				t.Errorf("%s, but no error", tc.reason)
			}
		})
	}
}

// TestDecodeOld reads a plan as the first release wrote it.
func TestDecodeOld(t *testing.T) {
	const old = `{"namespace":"ns","stages":[{"name":"a","timeout":90000000000,"objects":[` +
		`{"object":{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}},"wait":"ready","file":"s.yaml","line":3}]}]}`
	want := render.Plan{Namespace: "ns", Stages: []render.Stage{{Name: "a", Timeout: 90 * time.Second, Objects: []render.Planned{{
		Object: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s"}}},
		Wait:   render.WaitReady, File: "s.yaml", Line: 3,
	}}}}}
	got, err := render.Decode(gzipOf(t, []byte(old)))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Fatalf("a plan that was kept is read for ever: %v (-want +got):\n%s", err, diff)
	}
	encoded, err := render.Encode(got)
	if err != nil {
		t.Fatal(err)
	}
	if string(encoded) != old {
		t.Errorf("a plan that says nothing new has another text than before: %s", encoded)
	}
}

// TestEncodeSizes encodes plans of sizes around the least that is compressed.
func TestEncodeSizes(t *testing.T) {
	for _, size := range []int{10, 3 << 10, 5 << 10, 100 << 10} {
		plan := render.Plan{Namespace: strings.Repeat("n", size)}
		encoded, err := render.Encode(plan)
		if err != nil {
			t.Fatal(err)
		}
		if compressed := len(encoded) < size; compressed != (size > 4<<10) {
			t.Errorf("a plan of more than %d bytes is encoded in %d", size, len(encoded))
		}
		decoded, err := render.Decode(encoded)
		if diff := cmp.Diff(plan, decoded); diff != "" || err != nil {
			t.Errorf("a plan of %d bytes comes back as another: %v (-want +got):\n%s", size, err, diff)
		}
	}
}

// FuzzDecode holds what the engine relies on when it takes up a plan that was
// kept: every object is there and has a kind, and the plan is kept again as it is.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"namespace":"ns","stages":[{"name":"a","objects":[{"object":{"kind":"K","a":[1,1.0,1e30,-0.5,null,"x"]},"wait":"ready","recreate":true}]}]}`))
	f.Add([]byte(`{"stages":[{"objects":[{"object":null}]}]}`))
	f.Add([]byte(`{"stages":[null,{"objects":[{"object":{"kind":"List","apiVersion":"v1","items":[{}]}}]}],"warnings":["w"]}`))
	f.Add([]byte(`{"stages":[{"timeout":9223372036854775808}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := render.Decode(text); err == nil && !bytes.HasPrefix(text, []byte("\x1f\x8b")) && !bytes.HasPrefix(text, []byte("{")) {
			t.Errorf("%q is no blob, but a plan", text)
		}
		plan, err := render.Decode(gzipOf(t, text))
		if err != nil {
			return
		}
		for _, o := range plan.Objects() {
			if o == nil || o.GetKind() == "" {
				t.Fatalf("%q has the object %v", text, o)
			}
		}
		first, err := render.Encode(plan)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := render.Decode(first)
		if diff := cmp.Diff(plan, decoded, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("%q comes back as another plan: %v (-first +second):\n%s", text, err, diff)
		}
		if second, err := render.Encode(decoded); err != nil || !bytes.Equal(first, second) {
			t.Errorf("%q has two encodings: %v", text, err)
		}
	})
}

// TestEncodeLines checks that a stored plan has the line of an object and not those of
// its fields.
func TestEncodeLines(t *testing.T) {
	o := render.Planned{Object: &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "apiVersion": "v1"}}, Line: 3, Lines: func(string) int { return 5 }}
	encoded, err := render.Encode(render.Plan{Stages: []render.Stage{{Objects: []render.Planned{o}}}})
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := render.Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if before, after := o.LineOf("data"), decoded.Stages[0].Objects[0].LineOf("data"); before != 5 || after != 3 {
		t.Errorf("the line of a field is %d, and %d once it was stored", before, after)
	}
}
