package cluster

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestWeightOf compares the weight of a decoded value with that of its text.
func TestWeightOf(t *testing.T) {
	cases := map[string]struct{ reason, text string }{
		"pod":     {"an object like most", aPod("web-1")},
		"texts":   {"long texts count in full", `{"data":{"a":"` + strings.Repeat("x", 100<<10) + `"}}`},
		"numbers": {"many small values", `{"a":[` + strings.Repeat("0,", 1000) + `0],"b":[` + strings.Repeat("{},", 1000) + `{}]}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var value any
			if err := json.Unmarshal([]byte(tc.text), &value); err != nil {
				t.Fatal(err)
			}
			want, got := float64(new(scale).weigh([]byte(tc.text))), float64(weightOf(value))
			if math.Abs(got-want) > 0.2*want {
				t.Errorf("%s: it weighs %.0f, and its text %.0f", tc.reason, got, want)
			}
		})
	}
}

// aPod is a ready pod of an instance.
func aPod(name string) string {
	return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"ns","uid":"u","resourceVersion":"7","labels":{"app":"web","k8splugin.io/rb-instance-id":"vnf-1"}},
		"spec":{"containers":[{"name":"c","image":"i:1","ports":[{"containerPort":80}],"env":[{"name":"A","value":"b"}]}],"nodeName":"n"},
		"status":{"phase":"Running","podIP":"10.0.0.1","conditions":[{"type":"Ready","status":"True"},{"type":"PodScheduled","status":"True"}]}}`, name)
}

// BenchmarkWatch reads a thousand events of pods.
func BenchmarkWatch(b *testing.B) {
	const events = 1000
	var text strings.Builder
	for i := range events {
		text.WriteString(`{"type":"MODIFIED","object":` + aPod(fmt.Sprint("web-", i)) + "}\n")
	}
	body := text.String()
	p, _ := stubbed(map[string]stub{"east": func(req *http.Request) (*http.Response, error) {
		switch query := req.URL.Query(); {
		case req.URL.Path == "/api/v1":
			return answer(200, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"pods","namespaced":true,"kind":"Pod","verbs":["get","list","watch"]}]}`)
		case query.Get("watch") == "" || query.Get("sendInitialEvents") != "":
			return served(req)
		}
		resp, err := answer(200, "")
		resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(body), &drip{ctx: req.Context(), left: 1, pause: watchTime, end: io.EOF}))
		return resp, err
	}})
	p.cfg.limits.pace = 1 << 40
	c, err := p.Open("east", accessAs("east", "t"))
	if err != nil {
		b.Fatal(err)
	}
	pods := nf.Ref{Version: "v1", Kind: "Pod"}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		seen := 0
		for m, err := range c.Census(b.Context(), pods) {
			if err != nil {
				b.Fatal(err)
			}
			if m.Key != "" {
				seen++
			}
			if seen == events {
				break
			}
		}
	}
}
