package notify

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDigest(t *testing.T) {
	t.Parallel()
	const base = `{"kind":"Pod","metadata":{"name":"a","uid":"1","generation":1,"resourceVersion":"7","managedFields":[{"manager":"x"}],
		"labels":{"l":"1"},"annotations":{"a":"1","kubectl.kubernetes.io/last-applied-configuration":"{}"}},
		"spec":{"n":1},"data":{"k":"v"},"status":{"phase":"Running","observedGeneration":1,"conditions":[{"type":"Ready","status":"True","lastProbeTime":null,"lastHeartbeatTime":"1"}]}}`
	cases := map[string]struct {
		reason string
		edit   func(o, metadata map[string]any)
		same   bool
	}{
		"nothing":         {"it is what it is", func(_, _ map[string]any) {}, true},
		"resourceVersion": {"it was written", func(_, m map[string]any) { m["resourceVersion"] = "8" }, true},
		"managedFields":   {"by somebody", func(_, m map[string]any) { m["managedFields"] = []any{} }, true},
		"generation":      {"with whatever effect", func(_, m map[string]any) { m["generation"] = 2.0 }, true},
		"observed":        {"and seen by its controller", func(o, _ map[string]any) { status(o)["observedGeneration"] = 2.0 }, true},
		"kubectl": {"through kubectl", func(_, m map[string]any) {
			annotations(m)["kubectl.kubernetes.io/last-applied-configuration"] = "{1}"
		}, true},
		"heartbeat": {"a beating heart is no news", func(o, _ map[string]any) { condition(o)["lastHeartbeatTime"] = "2" }, true},
		"probe":     {"nor is a look at it", func(o, _ map[string]any) { condition(o)["lastProbeTime"] = "2" }, true},
		"spec":      {"what it shall be", func(o, _ map[string]any) { o["spec"].(map[string]any)["n"] = 2.0 }, false},
		"data":      {"what it holds", func(o, _ map[string]any) { o["data"].(map[string]any)["k"] = "w" }, false},
		"any field": {"wherever it keeps it", func(o, _ map[string]any) { o["rules"] = []any{} }, false},
		"status":    {"what it is", func(o, _ map[string]any) { status(o)["phase"] = "Failed" }, false},
		"condition": {"how it is", func(o, _ map[string]any) { condition(o)["status"] = "False" }, false},
		"label":     {"what it is called", func(_, m map[string]any) { m["labels"] = map[string]any{"l": "2"} }, false},
		"note":      {"what is noted on it", func(_, m map[string]any) { annotations(m)["a"] = "2" }, false},
		"deletion":  {"that it is going", func(_, m map[string]any) { m["deletionTimestamp"] = "now" }, false},
		"another":   {"that it is another of the same name", func(_, m map[string]any) { m["uid"] = "2" }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := object(t, base), object(t, base)
			tc.edit(after, after["metadata"].(map[string]any))
			if same := digest(before) == digest(after); same != tc.same {
				t.Errorf("%s: the same is %v, want %v", tc.reason, same, tc.same)
			}
			if tc.same {
				return
			}
			if d := cmp.Diff(object(t, base), before); d != "" {
				t.Errorf("a look at it has changed it: %s", d)
			}
		})
	}
}

func status(o map[string]any) map[string]any      { return o["status"].(map[string]any) }
func annotations(m map[string]any) map[string]any { return m["annotations"].(map[string]any) }
func condition(o map[string]any) map[string]any {
	return status(o)["conditions"].([]any)[0].(map[string]any)
}

func TestPresentable(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, object, want string
	}{
		"plain":           {"objects are told as they are", `{"kind":"A","metadata":{"name":"a","annotations":{"b":"c"}},"data":{"k":"v"}}`, `{"kind":"A","metadata":{"name":"a","annotations":{"b":"c"}},"data":{"k":"v"}}`},
		"managedFields":   {"but for who wrote what", `{"kind":"A","metadata":{"name":"a","managedFields":[1]}}`, `{"kind":"A","metadata":{"name":"a"}}`},
		"no metadata":     {"whatever they lack", `{"kind":"A"}`, `{"kind":"A"}`},
		"secret":          {"the values of a Secret stay", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"k":"v"},"stringData":{"l":"w"},"type":"Opaque"}`, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"k":""},"stringData":{"l":""},"type":"Opaque"}`},
		"secret, kubectl": {"wherever they are", `{"apiVersion":"v1","kind":"Secret","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"v","b":"c"}}}`, `{"apiVersion":"v1","kind":"Secret","metadata":{"annotations":{"b":"c"}}}`},
		"other Secret":    {"a kind of the same name is another", `{"apiVersion":"x/v1","kind":"Secret","data":{"k":"v"}}`, `{"apiVersion":"x/v1","kind":"Secret","data":{"k":"v"}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given := object(t, tc.object)
			if d := cmp.Diff(object(t, tc.want), presentable(given)); d != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, d)
			}
			if d := cmp.Diff(object(t, tc.object), given); d != "" {
				t.Errorf("telling of it has changed it: %s", d)
			}
		})
	}
}
