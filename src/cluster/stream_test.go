package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"

	"github.com/multicloud-k8s/k8splugin/src/breaker"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// listed is served, with a ConfigMap that has the version; 0 is none.
func listed(req *http.Request, version int) (*http.Response, error) {
	if !strings.HasSuffix(req.URL.Path, "/configmaps") || req.URL.Query().Get("watch") != "" {
		return served(req)
	}
	items := ""
	if version > 0 {
		items = aConfigMap(version)
	}
	return answer(200, fmt.Sprintf(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[%s]}`, version, items))
}

func aConfigMap(version int) string {
	return fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","uid":"u","labels":{"k8splugin.io/rb-instance-id":"vnf-1"},"resourceVersion":"%d"}}`, version)
}

// TestWatchThroughBreaker lets a region go away while it is watched, for longer
// than its breaker stays closed. A shared watch waits for it; the watch of an operation
// ends, so that the operation records what it waits for.
func TestWatchThroughBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		away, version := false, 1
		be := func(gone bool, v int) {
			mu.Lock()
			defer mu.Unlock()
			away, version = gone, v
		}
		p, c, _ := alone(t, func(req *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			if away {
				return refusing(req)
			}
			return listed(req, version)
		})
		following := make(chan ObjectEvent)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			defer close(done)
			for e, err := range watchOver(c).Subscribe(ctx, "east", awaited) {
				if err != nil {
					done <- err
					return
				}
				if !e.Synced {
					following <- e
				}
			}
		}()
		if e := <-following; e.Ref.Name != awaited.Name || e.Deleted {
			t.Fatalf("it is there: %+v", e)
		}
		time.AfterFunc(time.Second, func() { be(true, 1) })
		var last error
		for _, last = range c.Watch(t.Context(), instance("vnf-1"), []nf.Change{{Ref: awaited, Action: nf.Deleted}}) {
		}
		wantKind(t, last, nf.Unreachable)
		if nf.ReasonOf(last) != "breaker" {
			t.Errorf("the watch of an operation ends when the breaker opens: %v", last)
		}
		until(watchTime + time.Hour)
		if s := p.State("east"); s.Breaker == nf.BreakerClosed {
			t.Errorf("the watch asked in vain for an hour: %+v", s)
		}
		be(false, 0)
		start := time.Now()
		if e := <-following; !e.Deleted || time.Since(start) > breaker.LongestPause+time.Second {
			t.Errorf("a region that is back is noticed, and what changed: %+v after %v", e, time.Since(start))
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("a region that goes away is waited for: %v", err)
		}
	})
}

func TestWatchOfHeldBackRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, _ := alone(t, refusing)
		var err error
		for nf.ReasonOf(err) != "breaker" {
			err = c.tryOnce(t.Context())
		}
		start := time.Now()
		for _, err = range c.Watch(t.Context(), instance("vnf-1"), []nf.Change{{Ref: awaited}}) {
		}
		wantKind(t, err, nf.Unreachable)
		if nf.ReasonOf(err) != "breaker" || nf.RetryAfterOf(err) <= 0 || time.Since(start) > 0 {
			t.Errorf("who begins to watch is told at once when to come again: %v after %v: %v", nf.RetryAfterOf(err), time.Since(start), err)
		}
	})
}

// TestBreaksAreNotLogged is about client-go, which would log at ERROR what is
// every day's.
func TestBreaksAreNotLogged(t *testing.T) {
	var log bytes.Buffer
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(&log, nil)))
	defer klog.ClearLogger()
	cut := func(req *http.Request) (*http.Response, error) {
		resp, err := answer(200, "")
		resp.Body = io.NopCloser(&drip{ctx: req.Context(), left: 3, end: errors.New("http2: client connection lost")})
		return resp, err
	}
	synctest.Test(t, func(t *testing.T) {
		_, c, _ := alone(t, func(req *http.Request) (*http.Response, error) {
			if req.URL.Query().Get("watch") != "" || strings.HasPrefix(req.URL.Path, "/api/v1/nodes") {
				return cut(req)
			}
			return served(req)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, err := range c.Watch(ctx, instance("vnf-1"), []nf.Change{{Ref: awaited}}) {
			if err != nil {
				t.Errorf("a watch that is cut is taken up again: %v", err)
			}
		}
		wantKind(t, c.tryOnce(t.Context()), nf.Unreachable)
	})
	klog.Flush()
	if log.Len() > 0 {
		t.Errorf("it was logged: %s", &log)
	}
}

// TestWatchEndsEvents is about how a watch may end.
func TestWatchEndsEvents(t *testing.T) {
	added := `{"type":"ADDED","object":` + aConfigMap(2) + "}\n"
	cases := map[string]struct {
		reason string
		tells  string // by the first watch
		from   string // the version that the second one is asked from; empty: the place is listed again
		within time.Duration
	}{
		"end":       {"the API server ends it", added, "2", 0},
		"cut":       {"what came before the break holds", added + `{"type":"MOD`, "2", 0},
		"bookmark":  {"a version without an object", `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"7"}}}`, "7", 0},
		"nothing":   {"a watch that tells nothing is not trusted", "", "", time.Second},
		"expired":   {"the API server has forgotten the version", added + `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`, "", time.Second},
		"not one":   {"what is no event", added + `[]`, "2", 0},
		"no object": {"an event without an object", added + `{"type":"ADDED","object":{}}`, "", time.Second},
		"no status": {"an error that says nothing", added + `{"type":"ERROR","object":[]}`, "", time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lists, watches := 0, 0
				from := make(chan string, 9)
				_, c, _ := alone(t, func(req *http.Request) (*http.Response, error) {
					query := req.URL.Query()
					switch {
					case query.Get("sendInitialEvents") != "":
						return unsupported(req)
					case query.Get("watch") == "" && strings.HasSuffix(req.URL.Path, "/configmaps"):
						if lists++; lists > 1 {
							from <- ""
						}
						return listed(req, 1)
					case query.Get("watch") == "":
						return served(req)
					}
					if watches++; watches == 1 {
						resp, err := answer(200, "")
						resp.Body = io.NopCloser(strings.NewReader(tc.tells))
						return resp, err
					}
					from <- query.Get("resourceVersion")
					return served(req)
				})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() {
					var last error
					for _, err := range c.Watch(ctx, instance("vnf-1"), []nf.Change{{Ref: awaited}}) {
						last = err
					}
					done <- last
				}()
				start := time.Now()
				if got := <-from; got != tc.from || time.Since(start) > tc.within {
					t.Errorf("%s: it goes on from %q after %v, want %q", tc.reason, got, time.Since(start), tc.from)
				}
				cancel()
				if err := <-done; err != nil {
					t.Errorf("%s: %v", tc.reason, err)
				}
			})
		})
	}
}

// TestWatchesThatEnd counts the watches of a server that ends each after a bookmark.
func TestWatchesThatEnd(t *testing.T) {
	const most = 15 // in ten seconds; the pause between two grows to some seconds
	cases := map[string]struct {
		reason string
		after  time.Duration // until the server ends a watch
		least  int
	}{
		"at once": {"a server that ends all watches is not flooded", 0, 4},
		"later":   {"a watch that lasted is resumed at once", shortWatch, 9},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				watches := 0
				_, c, _ := alone(t, func(req *http.Request) (*http.Response, error) {
					query := req.URL.Query()
					if query.Get("watch") == "" || query.Get("sendInitialEvents") != "" {
						return served(req)
					}
					if watches++; watches > 100 {
						return hole(req)
					}
					resp, err := answer(200, "")
					resp.Body = io.NopCloser(io.MultiReader(
						strings.NewReader(`{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"7"}}}`),
						&drip{ctx: req.Context(), left: 1, pause: tc.after, end: io.EOF},
					))
					return resp, err
				})
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				for _, err := range c.Watch(ctx, instance("vnf-1"), []nf.Change{{Ref: awaited}}) {
					if err != nil {
						t.Errorf("%s: %v", tc.reason, err)
					}
				}
				if watches > most || watches < tc.least {
					t.Errorf("%s: %d watches, want %d to %d", tc.reason, watches, tc.least, most)
				}
			})
		})
	}
}

// TestWatchOfPresentState is about a watch that sends the present state first.
func TestWatchOfPresentState(t *testing.T) {
	added := `{"type":"ADDED","object":` + aConfigMap(2) + "}\n"
	whole := `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"
	deleted := `{"type":"DELETED","object":` + aConfigMap(3) + "}\n"
	refused := func(code int, reason string) stub {
		return func(*http.Request) (*http.Response, error) {
			return answer(code, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code))
		}
	}
	sends := func(events string, pause time.Duration, end error) stub {
		return func(req *http.Request) (*http.Response, error) {
			resp, err := answer(200, "")
			resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(events), &drip{ctx: req.Context(), left: 1, pause: pause, end: end}))
			return resp, err
		}
	}
	cases := map[string]struct {
		reason  string
		present stub     // the first watch
		then    []string // the following requests: "list", "watch from VERSION", "present" for a watch that sends the present state
		seen    nf.Status
		within  time.Duration
		other   string // the first request of another watch
	}{
		"exists":    {"an object is reported before the state is complete", sends(added+whole, time.Minute, io.EOF), []string{"watch from 7"}, nf.Current, 0, "present"},
		"missing":   {"the complete state is empty", sends(whole, time.Minute, io.EOF), []string{"watch from 7"}, nf.Absent, 0, "present"},
		"deleted":   {"an object is deleted before the state is complete", sends(added+deleted+whole, time.Minute, io.EOF), []string{"watch from 7"}, nf.Absent, 0, "present"},
		"old":       {"API servers before 1.32 do not support it", refused(422, "Invalid"), []string{"list", "watch from 1"}, nf.Current, 0, "list"},
		"strange":   {"another API server does not support it", refused(400, "BadRequest"), []string{"list", "watch from 1"}, nf.Current, 0, "list"},
		"overload":  {"a refusal that is about this watch", refused(429, "TooManyRequests"), []string{"list", "watch from 1"}, nf.Current, 0, "present"},
		"cut":       {"the state is not complete", sends("", time.Second, io.ErrUnexpectedEOF), []string{"list", "watch from 1"}, nf.Current, time.Second, "present"},
		"forgotten": {"the API server ignores what it is asked for", sends("", time.Hour, io.EOF), []string{"list", "watch from 1"}, nf.Current, initialTime, "present"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := make(chan string, 9)
				presents := 0
				_, c, _ := alone(t, func(req *http.Request) (*http.Response, error) {
					query := req.URL.Query()
					switch {
					case !strings.HasSuffix(req.URL.Path, "/configmaps"):
						return served(req)
					case query.Get("sendInitialEvents") == "true":
						asked <- "present"
						if presents++; presents > 1 {
							return hole(req)
						}
						if query.Get("resourceVersionMatch") != "NotOlderThan" || query.Get("allowWatchBookmarks") != "true" || query.Get("resourceVersion") != "" {
							t.Errorf("strict API servers refuse %v", query)
						}
						return tc.present(req)
					case query.Get("watch") != "":
						asked <- "watch from " + query.Get("resourceVersion")
						return hole(req)
					}
					asked <- "list"
					return listed(req, 1)
				})
				follow := func(until func(nf.Health) bool) {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
					defer cancel()
					for h, err := range c.Watch(ctx, instance("vnf-1"), []nf.Change{{Ref: awaited}}) {
						if err != nil {
							t.Errorf("%s: %v", tc.reason, err)
						}
						if until(h) {
							return
						}
					}
				}
				start := time.Now()
				follow(func(h nf.Health) bool {
					if h.Status == tc.seen && time.Since(start) <= tc.within && len(asked) > 0 {
						start = start.Add(-time.Hour)
					}
					return false
				})
				if time.Since(start) < time.Hour {
					t.Errorf("%s: it is not seen %s within %v", tc.reason, tc.seen, tc.within)
				}
				for _, want := range append([]string{"present"}, tc.then...) {
					if got := <-asked; got != want {
						t.Errorf("%s: the request is %q, want %q", tc.reason, got, want)
					}
				}
				for len(asked) > 0 {
					<-asked
				}
				follow(func(nf.Health) bool { return true })
				if got := <-asked; got != tc.other {
					t.Errorf("%s: another watch begins with %q, want %q", tc.reason, got, tc.other)
				}
			})
		})
	}
}
