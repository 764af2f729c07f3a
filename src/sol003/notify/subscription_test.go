package notify_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/simulator/subscriber"
	"github.com/multicloud-k8s/k8splugin/src/sol003/notify"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

func decoded(t *testing.T, document string) (out map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(document), &out); err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	return out
}

const password = "pa55 word:é"

// TestCredentials sends each request with the credentials of its subscription, which are
// in no stored request.
func TestCredentials(t *testing.T) {
	t.Parallel()
	const tokens = "http://nfvo.example" + subscriber.TokenPath
	for name, tc := range map[string]struct {
		reason string
		to     subscriber.Config
		auth   nf.CallbackAuth
		fetch  int // requests for tokens
	}{
		"None":   {"the callback requires none", subscriber.Config{}, nf.CallbackAuth{}, 0},
		"Basic":  {"user and password", subscriber.Config{User: "u", Password: password}, nf.CallbackAuth{Kind: nf.CallbackBasic, User: "u", Password: nf.Secret(password)}, 0},
		"Tokens": {"a token is kept, and fetched again after 401", subscriber.Config{User: "u", Password: "secret-of-u", Tokens: true}, nf.CallbackAuth{Kind: nf.CallbackClientCredentials, User: "u", Password: nf.Secret("secret-of-u"), TokenURL: tokens}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, tc.to, func(t *testing.T, w *world) {
				r := w.replica(nil)
				w.subscribe(r, func(s *nf.VNFSubscription) { s.Auth = tc.auth })
				w.start(r)
				w.notice(r, created("a"))
				w.notice(r, created("b"))
				w.later(time.Second)
				w.to.Revoke()
				w.to.Script(subscriber.Fault{Lost: true}, 1)
				w.notice(r, created("c"))
				w.later(0)
				for e, err := range w.kv.List(t.Context(), "vnfnotifications/pending/", "") {
					if err != nil || bytes.Contains(e.Value, []byte("secret")) || bytes.Contains(e.Value, []byte("uthorization")) || bytes.Contains(e.Value, []byte("token")) {
						t.Errorf("%s: a stored request has credentials: %s", tc.reason, e.Value)
					}
				}
				w.later(time.Minute)
				fetched, got := 0, 0
				for _, e := range w.to.Journal() {
					switch {
					case e.Path == subscriber.TokenPath && e.Status == 200:
						fetched++
					case e.Method == "POST" && e.Path == subscriber.Callback && e.Status == 204:
						got++
					}
				}
				if fetched != tc.fetch || got != 3 {
					t.Errorf("%s: %d tokens and %d notifications, want %d and 3", tc.reason, fetched, got, tc.fetch)
				}
			})
		})
	}
}

// TestSubscribe rejects subscriptions that cannot be served.
func TestSubscribe(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		edit   func(*nf.VNFSubscription)
		fault  subscriber.Fault
		kind   nf.Kind
		says   string
		user   string // that the callback and the token endpoint accept
	}{
		"Scheme":       {"callbacks are HTTP", func(s *nf.VNFSubscription) { s.Callback = "ftp://nfvo.example/" }, subscriber.Fault{}, nf.Invalid, "callbackUri", ""},
		"Address":      {"the operator has not allowed it", func(s *nf.VNFSubscription) { s.Callback = "http://169.254.169.254/" }, subscriber.Fault{}, nf.Invalid, "operator", ""},
		"Long":         {"it is too long", func(s *nf.VNFSubscription) { s.Callback += strings.Repeat("x", notify.MaxURL) }, subscriber.Fault{}, nf.Invalid, "callbackUri", ""},
		"Token URL":    {"tokens come from allowed hosts, too", auth(nf.CallbackAuth{Kind: nf.CallbackClientCredentials, User: "u", Password: []byte("p"), TokenURL: "http://127.0.0.1/"}), subscriber.Fault{}, nf.Invalid, "tokenEndpoint", ""},
		"User":         {"there is no user", auth(nf.CallbackAuth{Kind: nf.CallbackBasic}), subscriber.Fault{}, nf.Invalid, "user", ""},
		"Client":       {"there is no client", auth(nf.CallbackAuth{Kind: nf.CallbackClientCredentials, TokenURL: callback}), subscriber.Fault{}, nf.Invalid, "client", ""},
		"Certificate":  {"the service has none", auth(nf.CallbackAuth{Kind: nf.CallbackTLS}), subscriber.Fault{}, nf.Invalid, "certificate", ""},
		"Filter":       {"it is too large", func(s *nf.VNFSubscription) { s.Filter.Names = make([]string, 2000) }, subscriber.Fault{}, nf.Invalid, "filter", ""},
		"Status":       {"the callback must answer 204", nil, subscriber.Fault{Status: 200}, nf.Failed, "200 instead of 204", ""},
		"Not found":    {"likewise", nil, subscriber.Fault{Status: 404}, nf.Failed, "404 instead of 204", ""},
		"No response":  {"likewise", nil, subscriber.Fault{Lost: true}, nf.Failed, "no valid HTTP response", ""},
		"Slow":         {"it has 20 seconds", nil, subscriber.Fault{Delay: 21 * time.Second}, nf.Failed, "cannot get the notification", ""},
		"Not so slow":  {"they are enough", nil, subscriber.Fault{Delay: 19 * time.Second}, -1, "", ""},
		"Wrong client": {"its credentials are tested, too", auth(nf.CallbackAuth{Kind: nf.CallbackClientCredentials, User: "x", Password: []byte("s3cr3t"), TokenURL: "http://nfvo.example" + subscriber.TokenPath}), subscriber.Fault{}, nf.Failed, "the token endpoint answered 401", "u"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, subscriber.Config{User: tc.user}, func(t *testing.T, w *world) {
				w.to.Script(tc.fault, 1)
				r := w.replica(nil)
				s := nf.VNFSubscription{Interface: nf.VNFLifecycle, Callback: callback}
				if tc.edit != nil {
					tc.edit(&s)
				}
				_, err := r.Subscribe(t.Context(), s)
				if (err == nil) != (tc.kind < 0) || err != nil && (nf.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.says)) {
					t.Errorf("%s: got %v", tc.reason, err)
				}
				if err != nil && strings.Contains(err.Error(), "s3cr3t") {
					t.Errorf("%s: it has the password: %v", tc.reason, err)
				}
				for s, err := range r.SubscriptionsFrom(t.Context(), nf.Cursor{}) {
					if tc.kind >= 0 {
						t.Errorf("%s: %v is stored, %v", tc.reason, s.ID, err)
					}
				}
			})
		})
	}
}

func auth(a nf.CallbackAuth) func(*nf.VNFSubscription) {
	return func(s *nf.VNFSubscription) { s.Auth = a }
}

// TestSubscriptionsFrom yields the subscriptions after a cursor.
func TestSubscriptionsFrom(t *testing.T) {
	t.Parallel()
	play(t, subscriber.Config{}, func(t *testing.T, w *world) {
		r := w.replica(nil)
		for range 3 {
			w.subscribe(r, nil)
		}
		var ids []string
		for after := ""; len(ids) < 10; {
			found := false
			for s, err := range r.SubscriptionsFrom(t.Context(), nf.Cursor{After: after}) {
				if err != nil {
					t.Fatal(err)
				}
				ids, after, found = append(ids, s.ID), s.ID, true
				break
			}
			if !found {
				break
			}
		}
		if len(ids) != 3 || ids[0] >= ids[1] || ids[1] >= ids[2] {
			t.Errorf("got %q", ids)
		}
		if got, err := r.Subscription(t.Context(), ids[0]); err != nil || got.Callback != callback {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

// TestSecretsAreHidden prints a subscription.
func TestSecretsAreHidden(t *testing.T) {
	t.Parallel()
	s := nf.VNFSubscription{Auth: nf.CallbackAuth{Kind: nf.CallbackBasic, User: "u", Password: []byte("s3cr3t")}}
	if text := fmt.Sprintf("%v %+v", s, s); strings.Contains(text, "s3cr3t") {
		t.Error(text)
	}
}

// TestNewRefuses rejects configurations that are not complete.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, err := notify.New(notify.Config{}); err == nil {
		t.Error("it needs no store")
	}
	if _, err := notify.New(notify.Config{Config: outbox.Config{KV: memory.New(), NewID: func() string { return "x" }}}); err == nil {
		t.Error("it needs no source")
	}
}
