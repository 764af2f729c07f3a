package hook_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/site/script"
	"github.com/multicloud-k8s/k8splugin/src/site/sitetest"
	"github.com/multicloud-k8s/k8splugin/src/sol003/hook"
)

// hooks returns the hooks of a package with one file. Loopback addresses are allowed if the
// test allows them.
func hooks(t *testing.T, content, allowed string) *hook.Hooks {
	t.Helper()
	var list []string
	if allowed != "" {
		list = append(list, allowed)
	}
	hosts, err := outbound.ParseHosts(list)
	if err != nil {
		t.Fatal(err)
	}
	h, err := hook.New(hook.Config{
		SSH: script.Runner{}, Send: outbox.NewSend(hosts, "webhook"), Now: func() time.Time { return time.Unix(1_800_000_000, 0) },
		File: func(context.Context, string, string) ([]byte, error) { return []byte(content), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func call(kind string) nf.VNFHook {
	return nf.VNFHook{
		ID: "attempt-1-instantiate_end", VNF: "vnf-1", Occurrence: "o-1", Package: "p", Operation: "instantiate_end", Type: kind, File: "Scripts/hook", Timeout: time.Minute,
		Inputs: map[string]any{"mode": "full"}, Params: map[string]any{"namespace": "apps"},
	}
}

// run runs a script, and returns the messages of its log.
func run(t *testing.T, h *hook.Hooks, c nf.VNFHook) (said []string, err error) {
	t.Helper()
	err = h.Run(t.Context(), c, func(e nf.LogEntry) error { said = append(said, e.Message); return nil })
	return said, err
}

// TestSSH runs a script on two hosts.
func TestSSH(t *testing.T) {
	t.Parallel()
	one, two := sitetest.New(t), sitetest.New(t)
	c := call(nf.SSHScript)
	of := func(h *sitetest.Host) map[string]any {
		in := h.Site()
		return map[string]any{"address": in.Address, "port": in.Port, "host_key": in.Key, "username": in.User, "password": sitetest.Password}
	}
	c.Secret = map[string]any{nf.HookHostsParameter: []any{of(one), of(two)}}
	said, err := run(t, hooks(t, "#!/bin/sh\necho \"$SITE_ACTION on $SITE_HOST\" >&2\ncat >\"$HOME/document\"\n", ""), c)
	if diff := cmp.Diff([]string{"run on host1", "run on host2"}, said); diff != "" || err != nil {
		t.Fatalf("%v; the log (-want +got):\n%s", err, diff)
	}
	var got map[string]any
	text, err := os.ReadFile(filepath.Join(two.Home, "document"))
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	want := map[string]any{"operation": "instantiate_end", "vnfInstanceId": "vnf-1", "vnfLcmOpOccId": "o-1", "inputs": map[string]any{"mode": "full"}, "additionalParams": map[string]any{"namespace": "apps"}}
	if diff := cmp.Diff(want, got["parameters"]); diff != "" || err != nil {
		t.Errorf("%v; the script gets (-want +got):\n%s", err, diff)
	}
	if _, err := run(t, hooks(t, "#!/bin/sh\necho no disk >&2; exit 3", ""), c); nf.KindOf(err) != nf.Failed || !strings.Contains(err.Error(), "code 3; last output: no disk") {
		t.Errorf("a script that fails: %v", err)
	}
	c.Timeout = 300 * time.Millisecond
	if _, err := run(t, hooks(t, "#!/bin/sh\nexec sleep 1000", ""), c); nf.KindOf(err) != nf.Timeout {
		t.Errorf("a script that takes too long: %v", err)
	}
}

// TestCheck: a script over SSH needs hosts whose keys are known.
func TestCheck(t *testing.T) {
	t.Parallel()
	h := hooks(t, "", "")
	for reason, hosts := range map[string]any{
		"none":             nil,
		"no list":          "10.0.0.1",
		"an empty list":    []any{},
		"no credential":    []any{map[string]any{"address": "10.0.0.1", "username": "u", "host_key": "ssh-ed25519 AAAA"}},
		"an unknown key":   []any{map[string]any{"address": "10.0.0.1", "username": "u", "password": "s3cret"}},
		"a strange user":   []any{map[string]any{"address": "10.0.0.1", "username": "-u", "password": "s3cret", "host_key": "ssh-ed25519 AAAA"}},
		"the same address": []any{map[string]any{"address": "10.0.0.1", "username": "u", "password": "p", "host_key": "ssh-ed25519 AAAA"}, map[string]any{"address": "10.0.0.1", "username": "u", "password": "p", "host_key": "ssh-ed25519 AAAA"}},
	} {
		c := call(nf.SSHScript)
		c.Secret = map[string]any{nf.HookHostsParameter: hosts}
		if err := h.Check(c); nf.KindOf(err) != nf.Invalid || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", reason, err)
		}
	}
	if err := h.Check(call(nf.WebhookScript)); err != nil {
		t.Errorf("a webhook needs no hosts: %v", err)
	}
}

// receiver answers with statuses in turn, and records what it gets.
type receiver struct {
	mu       sync.Mutex
	statuses []int
	bodies   []string
	headers  []http.Header
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	body, _ := io.ReadAll(req.Body)
	r.bodies, r.headers = append(r.bodies, string(body)), append(r.headers, req.Header)
	status := r.statuses[min(len(r.bodies), len(r.statuses))-1]
	w.WriteHeader(status)
}

// TestWebhook: a webhook gets a signed request, again while it is not available.
func TestWebhook(t *testing.T) {
	t.Parallel()
	r := &receiver{statuses: []int{http.StatusServiceUnavailable, http.StatusNoContent}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	c := call(nf.WebhookScript)
	c.Secret = map[string]any{nf.HookSecretParameter: "s3cret"}
	said, err := run(t, hooks(t, server.URL+"/hook\n", "127.0.0.1"), c)
	want := []string{"the webhook of operation instantiate_end responded with status 503", "the webhook of operation instantiate_end responded with status 204"}
	if diff := cmp.Diff(want, said); diff != "" || err != nil {
		t.Fatalf("%v; the log (-want +got):\n%s", err, diff)
	}
	body := `{"additionalParams":{"namespace":"apps"},"inputs":{"mode":"full"},"operation":"instantiate_end","vnfInstanceId":"vnf-1","vnfLcmOpOccId":"o-1"}`
	if diff := cmp.Diff([]string{body, body}, r.bodies); diff != "" {
		t.Errorf("the requests (-want +got):\n%s", diff)
	}
	for _, header := range r.headers {
		signature := outbox.Sign([]byte("s3cret"), "1800000000", []byte(body))
		if header.Get(outbox.SignatureHeader) != signature || header.Get(outbox.TimestampHeader) != "1800000000" || header.Get(outbox.DeliveryHeader) != c.ID {
			t.Errorf("the headers are %v", header)
		}
	}
}

// TestWebhookFails: a webhook that refuses is not asked again.
func TestWebhookFails(t *testing.T) {
	t.Parallel()
	r := &receiver{statuses: []int{http.StatusConflict}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	away := &receiver{statuses: []int{http.StatusBadGateway}}
	unavailable := httptest.NewServer(away)
	t.Cleanup(unavailable.Close)
	cases := map[string]struct {
		reason, content, allowed string
		timeout                  time.Duration
		kind                     nf.Kind
	}{
		"Refused":  {"a webhook may refuse", server.URL, "127.0.0.1", time.Minute, nf.Failed},
		"Loopback": {"the rules for notifications hold", server.URL, "", time.Minute, nf.Failed},
		"NoURL":    {"the file has a URL", "#!/bin/sh\necho", "127.0.0.1", time.Minute, nf.Invalid},
		"User":     {"a URL has no password", "https://u:s3cret@example.org/", "127.0.0.1", time.Minute, nf.Invalid},
		"Timeout":  {"it is not asked for ever", unavailable.URL, "127.0.0.1", 200 * time.Millisecond, nf.Timeout},
	}
	for name, tc := range cases {
		c := call(nf.WebhookScript)
		c.Timeout = tc.timeout
		if _, err := run(t, hooks(t, tc.content, tc.allowed), c); nf.KindOf(err) != tc.kind || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %s: %v", name, tc.reason, err)
		}
	}
	if len(r.bodies) != 1 {
		t.Errorf("the webhook that refuses got %d requests", len(r.bodies))
	}
}
