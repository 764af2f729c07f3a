package aai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// complete is a configuration that is complete.
func complete() ClientConfig {
	return ClientConfig{
		URL: "http://aai", AppID: "k8splugin", Transport: http.DefaultTransport, NewID: func() string { return "1" },
		Credentials: func(context.Context) (string, nf.Secret) { return "u", nf.Secret("p") },
	}
}

func TestClientConfig(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		edit   func(*ClientConfig)
		fails  bool
	}{
		"complete":       {"nothing is missing", func(*ClientConfig) {}, false},
		"slash":          {"a slash at the end is removed", func(c *ClientConfig) { c.URL += "/" }, false},
		"no URL":         {"there is a URL", func(c *ClientConfig) { c.URL = "" }, true},
		"scheme":         {"of HTTP", func(c *ClientConfig) { c.URL = "aai:80" }, true},
		"user":           {"credentials are in files", func(c *ClientConfig) { c.URL = "http://u:p@aai" }, true},
		"old version":    {"v23 has no k8s-resources", func(c *ClientConfig) { c.Version = 23 }, true},
		"no app":         {"A&AI demands a name", func(c *ClientConfig) { c.AppID = "" }, true},
		"no credentials": {"and credentials", func(c *ClientConfig) { c.Credentials = nil }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := complete()
			tc.edit(&cfg)
			if _, err := NewClient(cfg); (err != nil) != tc.fails {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}

// TestRequests compares what A&AI receives.
func TestRequests(t *testing.T) {
	t.Parallel()
	var got *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(server.Close)
	cfg := complete()
	cfg.URL = server.URL + "/"
	c, err := NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.transact(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"Accept": "application/json", "Content-Type": "application/json", "X-FromAppId": "k8splugin", "X-TransactionId": "1",
		"Authorization": "Basic dTpw", "User-Agent": "k8splugin",
	}
	for name, value := range want {
		if got.Header.Get(name) != value {
			t.Errorf("%s is %q, want %q", name, got.Header.Get(name), value)
		}
	}
	if got.URL.Path != "/aai/v30/bulk/single-transaction" {
		t.Errorf("the path is %s", got.URL.Path)
	}
}

// TestResponses has A&AI, or a proxy before it, respond.
func TestResponses(t *testing.T) {
	t.Parallel()
	document := func(kind, code string) string {
		return `{"requestError":{"` + kind + `":{"messageId":"x","text":"y","variables":["PUT","/x","because","` + code + `"]}}}`
	}
	cases := map[string]struct {
		reason string
		status int
		body   string
		want   verdict
		text   string
	}{
		"conflict":       {"another version", 412, document("serviceException", "ERR.5.4.6131"), verdictConflict, "A&AI responded to GET /x with 412 (6131): because"},
		"missing":        {"the other end of an edge", 404, document("serviceException", "ERR.5.4.6129"), verdictMissing, "with 404 (6129): because"},
		"invalid":        {"the body is wrong", 400, document("serviceException", "ERR.5.2.3000"), verdictRejected, "with 400 (3000)"},
		"header":         {"codes without ERR", 400, document("serviceException", "4.0.4009"), verdictRejected, "with 400 (4009)"},
		"too many":       {"a batch is too large", 400, document("serviceException", "ERR.5.4.6147"), verdictTooMany, "(6147)"},
		"too slow":       {"a batch takes too long", 400, document("serviceException", "ERR.5.4.7406"), verdictTooMany, "(7406)"},
		"too large":      {"a proxy limits bodies", 413, "", verdictTooMany, "with 413"},
		"denied":         {"the account is unknown", 403, document("policyException", "ERR.5.1.3300"), verdictDenied, "with 403 (3300)"},
		"login":          {"a proxy wants credentials", 401, "", verdictDenied, "with 401"},
		"implied delete": {"our mistake concerns one object", 403, document("serviceException", "ERR.5.0.9109"), verdictRejected, "(9109)"},
		"retired":        {"the version is retired", 410, document("serviceException", "ERR.5.6.3007"), verdictDenied, "(3007)"},
		"storage":        {"the database is in trouble", 500, document("serviceException", "ERR.5.4.6134"), verdictAway, "(6134)"},
		"gateway":        {"a proxy has no A&AI", 503, "<html>", verdictAway, "with 503"},
		"throttled":      {"a proxy limits rates", 429, "", verdictAway, "with 429"},
		"redirect":       {"a redirect is not followed", 302, "", verdictAway, "with 302"},
		"no variables":   {"a document without a code", 400, `{"requestError":{"serviceException":{}}}`, verdictRejected, "with 400"},
		"other document": {"another document", 400, `[1]`, verdictRejected, "with 400"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := newResponseError("GET", "/x?depth=all", tc.status, []byte(tc.body))
			if got := judge(fmt.Errorf("cannot: %w", err)); got != tc.want || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%s: got %d, %q; want %d, %q", tc.reason, got, err, tc.want, tc.text)
			}
		})
	}
	if judge(errors.New("connection refused")) != verdictAway {
		t.Error("without a response, A&AI is away")
	}
}

// TestBreaker sends requests to an A&AI that does not respond.
func TestBreaker(t *testing.T) {
	t.Parallel()
	now := time.Unix(1, 0)
	sent, leave := 0, func() {}
	cfg := complete()
	cfg.Clock = func() time.Time { return now }
	cfg.Transport = transport(func(*http.Request) (*http.Response, error) {
		sent++
		leave()
		return nil, errors.New("no")
	})
	c, err := NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := c.get(t.Context(), "/x"); err == nil {
			t.Fatal("there was no response")
		}
	}
	if sent != failures {
		t.Errorf("%d requests were sent, want %d", sent, failures)
	}
	now = now.Add(time.Hour)
	_, _ = c.get(t.Context(), "/x")
	if sent != failures+1 {
		t.Errorf("%d requests were sent, want one more as a probe", sent)
	}
	for range 20 {
		var ctx context.Context
		ctx, leave = context.WithCancel(t.Context())
		now = now.Add(time.Hour)
		_, _ = c.get(ctx, "/x")
	}
	leave = func() {}
	now = now.Add(2 * time.Second) // the pause after the first failed probe
	if _, _ = c.get(t.Context(), "/x"); sent != failures+22 {
		t.Errorf("%d requests were sent, want %d; a caller that leaves tells nothing of A&AI", sent, failures+22)
	}
}

// TestBreakerCountsProxies sends requests to a proxy whose A&AI does not respond.
func TestBreakerCountsProxies(t *testing.T) {
	t.Parallel()
	for status, wanted := range map[int]int{502: failures, 503: failures, 504: failures, 500: 20, 409: 20} {
		sent := 0
		cfg := complete()
		cfg.Transport = transport(func(*http.Request) (*http.Response, error) {
			sent++
			return &http.Response{StatusCode: status, Body: http.NoBody}, nil
		})
		c, err := NewClient(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if _, err := c.get(t.Context(), "/x"); err == nil {
				t.Fatalf("status %d is an error", status)
			}
		}
		if sent != wanted {
			t.Errorf("status %d: %d requests were sent, want %d", status, sent, wanted)
		}
	}
}

// TestRate sends more requests than the rate permits.
func TestRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := complete()
		cfg.Rate = 5
		cfg.Transport = transport(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody}, nil
		})
		c, err := NewClient(cfg)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for range 11 {
			if _, err := c.get(t.Context(), "/x"); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("11 requests at 5 per second took %v, want 2s", took)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := c.get(ended, "/x"); err == nil {
			t.Error("a caller that has left does not wait")
		}
	})
}

// transport is a function that sends requests.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestNormalPaths(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		link   string
		want   string
	}{
		"prefix":  {"the version is no part of it", "/aai/v30/network/x/y", "/network/x/y"},
		"none":    {"it may be absent", "/network/x/y", "/network/x/y"},
		"host":    {"so may the host", "https://aai:8443/aai/v24/network/x/y", "/network/x/y"},
		"case":    {"an escape has several forms", "/network/x/a%2fb", "/network/x/a%2Fb"},
		"needful": {"characters are escaped if they must be", "/network/x/a%2Db%20c", "/network/x/a-b%20c"},
		"wrong":   {"what is no escape is escaped", "/network/x/%zz", "/network/x/%25zz"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := normalPath(tc.link); got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func FuzzResponse(f *testing.F) {
	f.Add(`{"requestError":{"serviceException":{"variables":["a","ERR.5.4.6114"]}}}`)
	f.Add(`{"requestError":{"policyException":null,"x":{"variables":["."]}}}`)
	f.Fuzz(func(t *testing.T, body string) {
		if newResponseError("GET", "/x", 400, []byte(body)).Error() == "" {
			t.Error("an error has a text")
		}
	})
}

// FuzzCompare compares a document with any object. After the changes of the object
// itself, there are none.
func FuzzCompare(f *testing.F) {
	f.Add(`{"vserver-name":"x","l-interfaces":{"l-interface":[{"interface-name":"a","data-owner":"k8splugin"}]}}`, "y")
	f.Add(`{"labels":["b","a"],"relationship-list":{"relationship":[{"related-link":"/aai/v30/network/generic-vnfs/generic-vnf/V1"}]}}`, "x")
	f.Add(`{"l3-interface-ipv4-address-list":[1,{}],"a":{"subnet":null},"relationship-list":{"relationship":[null]}}`, "")
	f.Fuzz(func(t *testing.T, text, name string) {
		var have map[string]any
		if err := json.Unmarshal([]byte(text), &have); err != nil || have == nil {
			return
		}
		want := Document{Path: "/a/b/c", Attributes: map[string]any{"vserver-name": name, "labels": []string{"a"}, "in-maint": false, "mtu": nil}}
		compare("k8splugin", want, have)
		merged, err := json.Marshal(want.merge(have))
		if err != nil {
			t.Fatal(err)
		}
		var again map[string]any
		if err := json.Unmarshal(merged, &again); err != nil {
			t.Fatal(err)
		}
		if want.Attributes["vserver-name"] = again["vserver-name"]; want.differs(again) {
			t.Errorf("what was written differs: %s", cmp.Diff(want.Attributes, again))
		}
	})
}
