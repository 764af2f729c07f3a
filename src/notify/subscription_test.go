package notify_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/notify"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// newNotifier returns a notifier that does not run, at a fixed time.
func newNotifier(t *testing.T, edit func(*notify.Config)) (*notify.Notifier, *world) {
	t.Helper()
	w := newWorld()
	w.instance("vnf-1", "east", configMaps)
	now := func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 5, time.UTC) }
	cfg := notify.Config{Config: outbox.Config{KV: memory.New(), NewID: rand.Text, Clock: now}, Source: w}
	if edit != nil {
		edit(&cfg)
	}
	n, err := notify.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return n, w
}

func TestSubscribe(t *testing.T) {
	t.Parallel()
	n, _ := newNotifier(t, nil)
	ctx := t.Context()
	asked := nf.Subscription{
		Instance: "vnf-1", Name: "vnf-1-cnf-adapter", Callback: "http://so-cnf-adapter:8090/notify", MinInterval: 30 * time.Second,
		Metadata: json.RawMessage(` {"n":1e400,"a":[]} `), Secret: nf.Secret("hunter2"),
		LastStatus: 200, Created: time.Unix(0, 0),
	}
	want := asked
	now := time.Date(2026, 11, 21, 12, 0, 0, 5, time.UTC)
	want.Created, want.LastUpdate, want.LastNotify, want.LastStatus = now, now, now, 0
	want.Metadata = json.RawMessage(`{"n":1e400,"a":[]}`)
	got, err := n.Subscribe(ctx, asked)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "times and status are the service's own", want, got)
	kept, err := n.Subscription(ctx, "vnf-1", asked.Name)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "it is kept as it is", want, kept)
	if _, err := n.Subscribe(ctx, asked); nf.KindOf(err) != nf.Exists {
		t.Errorf("it can be made twice: %v", err)
	}
	changed, err := n.Change(ctx, nf.Subscription{Instance: "vnf-1", Name: asked.Name, Callback: "http://other.example/"})
	if err != nil {
		t.Fatal(err)
	}
	want.Callback, want.MinInterval, want.Metadata = "http://other.example/", 0, json.RawMessage("{}")
	compare(t, "a change replaces all but the secret", want, changed)
	list, err := n.SubscriptionsOf(ctx, "vnf-1")
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "the list has it", []nf.Subscription{want}, list)
	if list, err := n.SubscriptionsOf(ctx, "vnf"); err != nil || list == nil || len(list) > 0 {
		t.Errorf("another instance has %v, %v; want none", list, err)
	}
	if err := n.Unsubscribe(ctx, "vnf-1", asked.Name); err != nil {
		t.Fatal(err)
	}
	if err := n.Unsubscribe(ctx, "vnf-1", asked.Name); nf.KindOf(err) != nf.NotFound {
		t.Errorf("it can be removed twice: %v", err)
	}
	if _, err := n.Change(ctx, asked); nf.KindOf(err) != nf.NotFound {
		t.Errorf("what is gone can be changed: %v", err)
	}
	if fmt.Sprintf("%v %+v %#v", got, got, got.Secret) == "" || strings.Contains(fmt.Sprintf("%v %+v %#v", got, got, got.Secret), "hunter2") {
		t.Error("the secret is printed")
	}
}

// TestAdmit checks when a subscription needs to be admitted.
func TestAdmit(t *testing.T) {
	t.Parallel()
	var asked []string
	n, _ := newNotifier(t, func(cfg *notify.Config) {
		cfg.Admit = func(_ context.Context, s nf.Subscription) error {
			if asked = append(asked, s.Name); s.Name == "bad" {
				return nf.E(nf.Conflict, "admit", s.Name, nil)
			}
			return nil
		}
	})
	for _, s := range []struct {
		name, callback string
		want           nf.Kind
	}{{"good", "http://a.example/", nf.KindOf(nil)}, {"invalid", "no URL", nf.Invalid}, {"bad", "http://a.example/", nf.Conflict}} {
		if _, err := n.Subscribe(t.Context(), nf.Subscription{Instance: "vnf-1", Name: s.name, Callback: s.callback}); nf.KindOf(err) != s.want {
			t.Errorf("%s: %v", s.name, err)
		}
	}
	compare(t, "an invalid one is rejected before", []string{"good", "bad"}, asked)
	list, err := n.SubscriptionsOf(t.Context(), "vnf-1")
	if err != nil || len(list) != 1 || list[0].Name != "good" {
		t.Errorf("one that is not admitted is not stored: %v, %v", list, err)
	}
}

func compare(t *testing.T, reason string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s: -want +got:\n%s", reason, d)
	}
}

func TestSubscribeRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		edit   func(*nf.Subscription)
		want   nf.Kind
		field  string
	}{
		"instance":      {"one subscribes to what is there", func(s *nf.Subscription) { s.Instance = "vnf-2" }, nf.NotFound, ""},
		"no name":       {"it is addressed by its name", func(s *nf.Subscription) { s.Name = "" }, nf.Invalid, "name"},
		"slash":         {"in a path", func(s *nf.Subscription) { s.Name = "a/b" }, nf.Invalid, "name"},
		"control":       {"of characters that can be seen", func(s *nf.Subscription) { s.Name = "a\nb" }, nf.Invalid, "name"},
		"long name":     {"that is not too long", func(s *nf.Subscription) { s.Name = strings.Repeat("é", 51) }, nf.Invalid, "name"},
		"interval":      {"time does not run back", func(s *nf.Subscription) { s.MinInterval = -1 }, nf.Invalid, "min-notify-interval"},
		"long interval": {"nor is it endless", func(s *nf.Subscription) { s.MinInterval = 400 * 24 * time.Hour }, nf.Invalid, "min-notify-interval"},
		"callback":      {"callbacks do not lead everywhere", func(s *nf.Subscription) { s.Callback = "http://127.0.0.1/" }, nf.Invalid, "callback-url"},
		"long callback": {"they are not endless", func(s *nf.Subscription) { s.Callback = "http://x/" + strings.Repeat("y", 3000) }, nf.Invalid, "callback-url"},
		"array":         {"metadata are an object", func(s *nf.Subscription) { s.Metadata = json.RawMessage("[]") }, nf.Invalid, "metadata"},
		"no JSON":       {"likewise", func(s *nf.Subscription) { s.Metadata = json.RawMessage(`{"a"`) }, nf.Invalid, "metadata"},
		"large": {"of some size", func(s *nf.Subscription) {
			s.Metadata = json.RawMessage(`{"a":"` + strings.Repeat("x", 300<<10) + `"}`)
		}, nf.Invalid, "metadata"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, _ := newNotifier(t, nil)
			s := nf.Subscription{Instance: "vnf-1", Name: "sub", Callback: "http://receiver.example/"}
			tc.edit(&s)
			_, err := n.Subscribe(t.Context(), s)
			if err == nil || nf.KindOf(err) != tc.want {
				t.Fatalf("%s: got %v, want an error of kind %v", tc.reason, err, tc.want)
			}
			if v := nf.ViolationsOf(err); tc.field != "" && (len(v) != 1 || v[0].Field != tc.field) {
				t.Errorf("the violations are %v, want one of %s", v, tc.field)
			}
		})
	}
}

// TestLetterOverHTTP subscribes a real receiver, and checks what he gets.
func TestLetterOverHTTP(t *testing.T) {
	t.Parallel()
	type received struct {
		header http.Header
		body   []byte
	}
	mail := make(chan received, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what is cut off is no JSON
		mail <- received{r.Header, body}
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(receiver.Close)
	ready := make(chan struct{})
	n, w := newNotifier(t, func(cfg *notify.Config) {
		cfg.Hosts, cfg.Clock = hosts(t, "127.0.0.1"), nil
		cfg.KV = storetest.Failing{KV: cfg.KV, Lose: func(method, key string) error {
			if method == "Put" && strings.HasPrefix(key, "baselines/") {
				select {
				case <-ready:
				default:
					close(ready)
				}
			}
			return nil
		}}
	})
	secrets := nf.Ref{Version: "v1", Kind: "Secret"}
	w.instance("vnf-1", "east", configMaps, secrets)
	w.put("east", "vnf-1", configMaps, "a", "1")
	var running sync.WaitGroup
	running.Go(func() { _ = n.Run(t.Context()) }) // it always returns nil
	t.Cleanup(running.Wait)
	_, err := n.Subscribe(t.Context(), nf.Subscription{
		Instance: "vnf-1", Name: "sub", Callback: receiver.URL + "/status?x=y", Secret: nf.Secret("hunter2"),
		Metadata: json.RawMessage(`{"big":12345678901234567890,"html":"<a&b>","list":[1.0,null],"obj":{}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	<-ready
	w.tell("east", notify.Event{Owner: "vnf-1", Ref: refTo(secrets, "s"), Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"password": "aHVudGVyMg=="}, "metadata": map[string]any{
			"name": "s", "managedFields": []any{"x"}, "annotations": map[string]any{
				"kubectl.kubernetes.io/last-applied-configuration": "aHVudGVyMg==", "kept": "yes"}},
	}})
	got := <-mail
	var document map[string]json.RawMessage
	if err := json.Unmarshal(got.body, &document); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"instance-id": `"vnf-1"`, "subscription-name": `"sub"`,
		"metadata": `{"big":12345678901234567890,"html":"\u003ca\u0026b\u003e","list":[1.0,null],"obj":{}}`, // the same text, spelled otherwise
		"resource-changes": `{"created":[{"name":"s","GVK":{"Group":"","Version":"v1","Kind":"Secret"},"status":{"apiVersion":"v1","data":{"password":""},` +
			`"kind":"Secret","metadata":{"annotations":{"kept":"yes"},"name":"s"}}}],"deleted":[],"modified":[]}`,
	}
	have := map[string]string{}
	for key, value := range document {
		have[key] = string(value)
	}
	compare(t, "exactly the four keys, metadata as they were given, and no value of a Secret", want, have)
	stamp := got.header.Get(outbox.TimestampHeader)
	if sign := got.header.Get(outbox.SignatureHeader); stamp == "" || sign != outbox.Sign([]byte("hunter2"), stamp, got.body) {
		t.Errorf("the signature is %q at %q, and not that of the body", sign, stamp)
	}
	if got.header.Get("Content-Type") != "application/json" || got.header.Get(outbox.DeliveryHeader) == "" {
		t.Errorf("the header is %v", got.header)
	}
}

func hosts(t testing.TB, list ...string) outbound.Hosts {
	t.Helper()
	h, err := outbound.ParseHosts(list)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
