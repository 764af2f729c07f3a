package cluster

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/multicloud-k8s/k8splugin/src/breaker"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// ofVNF is a ConfigMap of an instance.
func ofVNF(owner, name string) string {
	return fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"ns","name":%q,"resourceVersion":"1","labels":{"k8splugin.io/rb-instance-id":%q}}}`, name, owner)
}

// mapList is a page of ConfigMaps; next names the page after it.
func mapList(next string, items ...string) (*http.Response, error) {
	return answer(200, fmt.Sprintf(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":%q},"items":[%s]}`, next, strings.Join(items, ",")))
}

// lists returns a stub of a region that answers lists of ConfigMaps by a function.
func lists(list stub) stub {
	return func(req *http.Request) (*http.Response, error) {
		if strings.HasSuffix(req.URL.Path, "/configmaps") && req.URL.Query().Get("watch") == "" {
			return list(req)
		}
		return served(req)
	}
}

// watched is lists for a region whose watches send a body. It notes the size of the
// last buffer that a watch was read into.
func watched(events []string, last *int) stub {
	return func(req *http.Request) (*http.Response, error) {
		if req.URL.Query().Get("watch") == "" {
			return lists(func(*http.Request) (*http.Response, error) { return mapList("") })(req)
		}
		resp, err := answer(200, "")
		resp.Body = io.NopCloser(&gauge{texts: readers(events), last: last, rest: &drip{ctx: req.Context(), left: 1, pause: watchTime, end: io.EOF}})
		return resp, err
	}
}

// gauge notes the size of the last buffer that it was read into.
type gauge struct {
	texts []*strings.Reader // none is read together with the next one
	rest  io.Reader
	last  *int
}

func readers(texts []string) []*strings.Reader {
	var out []*strings.Reader
	for _, text := range texts {
		out = append(out, strings.NewReader(text))
	}
	return out
}

func (g *gauge) Read(p []byte) (int, error) {
	*g.last = len(p)
	for ; len(g.texts) > 0; g.texts = g.texts[1:] {
		if n, err := g.texts[0].Read(p); !errors.Is(err, io.EOF) {
			return n, err
		}
	}
	return g.rest.Read(p)
}

// TestCensusOfExpiredPages deletes an object between two passes of the first list.
func TestCensusOfExpiredPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		passes := 0
		_, c, _ := alone(t, lists(func(req *http.Request) (*http.Response, error) {
			if req.URL.Query().Get("continue") == "" {
				passes++
			}
			switch {
			case passes == 1 && req.URL.Query().Get("continue") == "":
				return mapList("more", ofVNF("vnf-1", "a"), ofVNF("vnf-1", "b"))
			case passes == 1:
				return answer(410, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
			}
			return mapList("", ofVNF("vnf-1", "a"))
		}))
		seen, start := map[string]nf.Status{}, time.Now()
		for m, err := range c.Census(t.Context(), awaited) {
			if err != nil {
				t.Fatal(err)
			}
			if m.Synced {
				break
			}
			seen[m.Key] = m.Status
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("the list began again after %v: a page that has expired stays so", took)
		}
		diff(t, "an object of the first pass alone is gone", map[string]nf.Status{"ConfigMap/ns/a": nf.Current, "ConfigMap/ns/b": nf.Absent}, seen)
	})
}

// TestCensusRefusesLongNames is about names that no API server has: what is kept of
// an object is counted by a fixed weight.
func TestCensusRefusesLongNames(t *testing.T) {
	long := strings.Repeat("x", 2<<10)
	event := func(item string) string { return `{"type":"ADDED","object":` + item + "}\n" }
	cases := map[string]struct {
		reason string
		item   string
		event  bool
	}{
		"name":             {"a name in a list", ofVNF("vnf-1", long), false},
		"owner":            {"an owner in a list", ofVNF(long, "a"), false},
		"name of an event": {"a name in an event", ofVNF("vnf-1", long), true},
		"owner of a event": {"an owner in an event", ofVNF(long, "a"), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listed := 0
				_, c, _ := alone(t, func(req *http.Request) (*http.Response, error) {
					switch {
					case req.URL.Query().Get("watch") != "" && tc.event:
						return answer(200, event(tc.item))
					case strings.HasSuffix(req.URL.Path, "/configmaps"):
						if listed++; !tc.event {
							return mapList("", tc.item)
						} else if listed > 1 {
							return answer(403, "")
						}
					}
					return served(req)
				})
				var last error
				for m, err := range c.Census(t.Context(), awaited) {
					if last = err; m.Owner != "" {
						t.Errorf("%s: it is kept: %d bytes", tc.reason, len(m.Owner)+len(m.Key))
						return
					}
				}
				if tc.event && listed != 2 || !tc.event && nf.ReasonOf(last) != "not-kubernetes" {
					t.Errorf("%s: %d lists, and then %v", tc.reason, listed, last)
				}
			})
		})
	}
}

// TestWatchShrinks holds the buffer of a watch to what small events need, after a
// large one.
func TestWatchShrinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := `{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"ns","name":"l","resourceVersion":"2"},"data":{"a":"` + strings.Repeat("x", 1<<20) + `"}}}`
		small := `{"type":"ADDED","object":` + ofVNF("vnf-1", "a") + "}\n"
		after := `{"type":"ADDED","object":` + ofVNF("vnf-1", "b") + "}\n"
		last := 0
		_, c, _ := alone(t, watched([]string{large + "\n", small, after}, &last))
		for m, err := range c.Census(t.Context(), awaited) {
			if err != nil {
				t.Fatal(err)
			}
			if m.Owner == "vnf-1" && m.Key == "ConfigMap/ns/b" {
				break
			}
		}
		if last > 64<<10 {
			t.Errorf("a watch that has had a large event reads small ones into %d bytes", last)
		}
	})
}

// TestCensusWithoutWatch is about a region with as many watches as it may have: what
// changes is seen all the same.
func TestCensusWithoutWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listed := 0
		p, _ := stubbed(map[string]stub{"east": lists(func(*http.Request) (*http.Response, error) {
			if listed++; listed > 1 {
				return mapList("")
			}
			return mapList("", ofVNF("vnf-1", "a"))
		})})
		p.cfg.limits.watches = 1
		c := opening(t, p, "east")
		if !c.transport.usage.watches.TryAcquire(1) {
			t.Fatal("there is no watch yet")
		}
		start := time.Now()
		for m, err := range c.Census(t.Context(), awaited) {
			if err != nil {
				t.Fatal(err)
			}
			if m.Status == nf.Absent && m.Key != "" {
				break
			}
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("that the object is gone is seen after %v", took)
		}
	})
}

func TestHopeless(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		want   bool // once it has been read
		of     stream
	}{
		"crowded":            {"there is a turn later", errCrowded, false, stream{}},
		"slow":               {"the region may be faster later", errSlow, false, stream{}},
		"held back":          {"an operation records that it waits, and watches anew", &breaker.OpenError{}, true, stream{}},
		"held back, lasting": {"the breaker closes later", &breaker.OpenError{}, false, stream{lasting: true}},
		"held back, lean":    {"the same, of a census", &breaker.OpenError{}, false, stream{lean: true}},
		"held back, aside":   {"what only explains does not end the watch", &breaker.OpenError{}, false, stream{aside: true}},
		"expired":            {"the place is listed again", apierrors.NewResourceExpired("too old"), false, stream{}},
		"no leader":          {"etcd has a leader later", &apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: "etcdserver: leader changed"}}, false, stream{}},
		"garbage":            {"something else may answer in the region's place for a while", errGarbage, false, stream{}},
		"replaced":           {"the cluster never comes back", errReplaced, true, stream{}},
		"oversized":          {"it is as large the next time", &oversized{}, true, stream{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if !tc.of.isFatal(tc.err) {
				t.Errorf("%s: before it has been read, every error ends a watch", tc.reason)
			}
			tc.of.synced = true
			if got := tc.of.isFatal(tc.err); got != tc.want {
				t.Errorf("%s: %v", tc.reason, got)
			}
		})
	}
}
