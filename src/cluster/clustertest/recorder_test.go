package clustertest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// client returns a client that goes through the recorder, on a connection of
// its own.
func client(t *testing.T, r *Recorder) (*http.Client, string) {
	t.Helper()
	cfg, err := clientcmd.RESTConfigFromKubeConfig(r.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	secure, err := rest.TLSConfigFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: secure, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}, cfg.Host
}

// answer is what came back.
type answer struct {
	code, protocol int
	header         http.Header
	body           []byte
}

func ask(ctx context.Context, c *http.Client, url string) (answer, error) {
	return send(ctx, c, http.MethodGet, url, "")
}

// apply makes a namespace.
func apply(ctx context.Context, c *http.Client, host, name string) (answer, error) {
	return send(ctx, c, http.MethodPatch, host+"/api/v1/namespaces/"+name+"?fieldManager=test",
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+name+`"}}`)
}

func send(ctx context.Context, c *http.Client, method, url, body string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/apply-patch+yaml")
	}
	resp, err := c.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.ProtoMajor, resp.Header, text}, err
}

func TestRecorder(t *testing.T) {
	r := NewRecorder(t)
	c, host := client(t, r)
	for _, path := range []string{"/version", "/api/v1/namespaces/default?pretty=true"} {
		resp, err := ask(t.Context(), c, host+path)
		if err != nil || resp.code != 200 || resp.protocol != 2 {
			t.Fatalf("GET %s: %+v, %v; want 200 over HTTP/2", path, resp, err)
		}
	}
	got := r.Requests()
	if len(got) != 2 || got[0].String() != "GET /version" || got[1].Path != "/api/v1/namespaces/default" || got[1].Query.Get("pretty") != "true" {
		t.Errorf("requests are %v", got)
	}
	if r.Reset(); len(r.Requests()) != 0 {
		t.Error("a reset recorder has no requests")
	}
}

func TestRecorderFails(t *testing.T) {
	r := NewRecorder(t)
	c, host := client(t, r)
	version := func(q Request) bool { return q.Path == "/version" }
	get := func(ctx context.Context) (answer, error) {
		return ask(ctx, c, host+"/version")
	}

	heal := r.Fail(version, Drop)
	if _, err := get(t.Context()); err == nil {
		t.Error("a dropped request must fail")
	}
	heal()
	if _, err := get(t.Context()); err != nil {
		t.Errorf("a fault that is healed is gone: %v", err)
	}

	r.Fail(Times(1, version), Status(429, "Retry-After", "7"))
	resp, err := get(t.Context())
	if err != nil || resp.code != 429 || resp.header.Get("Retry-After") != "7" {
		t.Errorf("the answer is %v, %v; want 429 with its header", resp, err)
	}
	if resp, err = get(t.Context()); err != nil || resp.code != 200 {
		t.Errorf("only one request was to fail: %v, %v", resp, err)
	}

	r.Fail(version, Hang)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := get(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a request that hangs ends with its context: %v", err)
	}
}

func TestRecorderLosesAnswers(t *testing.T) {
	r := NewRecorder(t)
	c, host := client(t, r)
	name := Namespace(t)
	r.Fail(Times(1, func(q Request) bool { return q.Method == http.MethodPatch }), Lose)
	if _, err := apply(t.Context(), c, host, name); err == nil {
		t.Error("a lost answer must not arrive")
	}
	if resp, err := apply(t.Context(), c, host, name); err != nil || resp.code != 200 {
		t.Errorf("the first request was carried out, so the second changes nothing: %v, %v", resp, err)
	}
}

func TestNamespace(t *testing.T) {
	r := NewRecorder(t)
	c, host := client(t, r)
	var name string
	t.Run("inner", func(t *testing.T) {
		name = Namespace(t)
		if other := Namespace(t); other == name {
			t.Errorf("two namespaces are both %s", name)
		}
		if resp, err := apply(t.Context(), c, host, name); err != nil || resp.code != 201 {
			t.Fatalf("cannot make the namespace: %v, %v", resp, err)
		}
	})
	resp, err := ask(t.Context(), c, host+"/api/v1/namespaces/"+name)
	if err != nil {
		t.Fatal(err)
	}
	var left struct {
		Metadata struct{ DeletionTimestamp string }
	}
	if err := json.Unmarshal(resp.body, &left); err != nil {
		t.Fatal(err)
	}
	if resp.code != http.StatusNotFound && left.Metadata.DeletionTimestamp == "" {
		t.Error("when the test has ended, its namespace is gone or going")
	}
}

// region is a recorder, a request that goes through it at most so long, and an
// answer that it has given.
func region(t *testing.T) (r *Recorder, get func(time.Duration) error) {
	t.Helper()
	r = NewRecorder(t)
	c, host := client(t, r)
	get = func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		_, err := ask(ctx, c, host+"/version")
		return err
	}
	if err := get(time.Minute); err != nil {
		t.Fatal(err)
	}
	return r, get
}

func TestRecorderBlackHole(t *testing.T) {
	r, get := region(t)
	heal, again := r.BlackHole(t), r.BlackHole(t)
	if err := get(50 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an open connection says nothing: %v", err)
	}
	other, _ := client(t, r)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := ask(ctx, other, r.server.URL+"/version"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a new connection says nothing: %v", err)
	}
	heal()
	heal()
	if err := get(50 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("there is another hole still: %v", err)
	}
	again()
	if err := get(time.Minute); err != nil {
		t.Errorf("what is healed answers: %v", err)
	}
}

func TestRecorderRefuse(t *testing.T) {
	r, get := region(t)
	heal := r.Refuse()
	for range 2 {
		if err := get(time.Minute); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a connection is broken at once: %v", err)
		}
	}
	heal()
	if err := get(time.Minute); err != nil {
		t.Errorf("what is healed answers: %v", err)
	}
}

func TestRecorderSlow(t *testing.T) {
	r, get := region(t)
	heal := r.Fail(func(Request) bool { return true }, Slow(time.Hour))
	if err := get(50 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an answer that takes an hour is not there yet: %v", err)
	}
	heal()
	r.Fail(func(Request) bool { return true }, Slow(time.Millisecond))
	if err := get(time.Minute); err != nil {
		t.Errorf("a slow answer comes: %v", err)
	}
}

// TestRecorderCloses closes recorders while clients open watches.
func TestRecorderCloses(t *testing.T) {
	for range 5 {
		ctx, leave := context.WithCancel(t.Context())
		var clients sync.WaitGroup
		t.Run("recorder", func(t *testing.T) {
			r := NewRecorder(t)
			r.Fail(func(Request) bool { return true }, Hang)
			for range 100 {
				c, host := client(t, r)
				clients.Go(func() {
					for ctx.Err() == nil {
						_, _ = ask(ctx, c, host+"/api/v1/pods?watch=true") // fails when the recorder is closed
					}
				})
			}
			for len(r.Requests()) < 100 {
				runtime.Gosched()
			}
		})
		leave()
		clients.Wait()
	}
}
