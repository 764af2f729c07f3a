package vnfsubscription_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/northbound/sol013"
	"github.com/multicloud-k8s/k8splugin/src/northbound/sol013/sol013test"
	"github.com/multicloud-k8s/k8splugin/src/northbound/vnfsubscription"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/simulator/subscriber"
	"github.com/multicloud-k8s/k8splugin/src/sol003/notify"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// none is a source without notices.
type none struct{ notify.Source }

func (none) Noticed() <-chan struct{} { return delay.NewSignal() }

// world is the API on a notifier in memory.
type world struct {
	t      *testing.T
	to     *subscriber.Simulator
	kv     store.KV
	server *sol013test.Server
}

func newWorld(t *testing.T, cfg subscriber.Config) *world {
	t.Helper()
	w := &world{t: t, to: subscriber.New(cfg), kv: memory.New()}
	ids := 0
	keeper, err := notify.New(notify.Config{
		Via: w.to, Sources: map[string]notify.Source{"none": none{}},
		Config: outbox.Config{KV: w.kv, NewID: func() string { ids++; return fmt.Sprint(ids) }},
	})
	if err != nil {
		t.Fatal(err)
	}
	api, err := vnfsubscription.New(vnfsubscription.Config{Subscriptions: keeper})
	if err != nil {
		t.Fatal(err)
	}
	w.server = sol013test.New(t, k8splugin.Swagger, api)
	return w
}

type answer struct {
	status int
	header http.Header
	body   string
}

// ask sends a request with the version of the path's interface.
func (w *world) ask(method, path, body string) answer {
	return w.askAs(sol013.VersionOf(path), method, path, body)
}

func (w *world) askAs(version, method, path, body string) answer {
	w.t.Helper()
	got := w.server.Ask(method, path, body, "Version", version)
	return answer{got.Status, got.Header, got.Body}
}

func decoded(t *testing.T, text string) (out any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

const (
	root     = "/vnflcm/v2/subscriptions"
	callback = "http://nfvo.example" + subscriber.Callback
)

// TestFilters stores and shows the filters of each interface.
func TestFilters(t *testing.T) {
	t.Parallel()
	const vnfs = `"vnfInstanceSubscriptionFilter": {"vnfdIds": ["d"], "vnfInstanceIds": ["i"], "vnfInstanceNames": ["n"],
		"vnfProductsFromProviders": [{"vnfProvider": "a"}, {"vnfProvider": "b", "vnfProducts": [{"vnfProductName": "p"},
		{"vnfProductName": "q", "versions": [{"vnfSoftwareVersion": "1"}, {"vnfSoftwareVersion": "2", "vnfdVersions": ["3", "4"]}]}]}]}`
	for name, tc := range map[string]struct{ reason, path, filter, verbosity, shown string }{
		"None":      {"a subscription to all", root, "", "", "FULL"},
		"Empty":     {"likewise", root, "{}", "SHORT", "SHORT"},
		"Full":      {"every list", root, `{` + vnfs + `, "notificationTypes": ["VnfIdentifierCreationNotification"], "operationTypes": ["SCALE", "OPERATE"], "operationStates": ["FAILED"]}`, "", "FULL"},
		"Version 1": {"it has no verbosity", "/vnflcm/v1/subscriptions", `{` + vnfs + `}`, "", ""},
		"Alarms":    {"what alarms have", "/vnffm/v1/subscriptions", `{` + vnfs + `, "notificationTypes": ["AlarmNotification"], "faultyResourceTypes": ["COMPUTE"], "perceivedSeverities": ["CRITICAL"], "eventTypes": ["EQUIPMENT_ALARM"], "probableCauses": ["c"]}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, subscriber.Config{Version: sol013.VersionOf(tc.path)})
			body := `{"callbackUri": "` + callback + `"`
			if tc.filter != "" {
				body += `, "filter": ` + tc.filter
			}
			if tc.verbosity != "" {
				body += `, "verbosity": "` + tc.verbosity + `"`
			}
			made := w.ask("POST", tc.path, body+"}")
			if made.status != 201 {
				t.Fatalf("%s: %+v", tc.reason, made)
			}
			at := made.header.Get("Location")
			id := strings.TrimPrefix(at, tc.path+"/")
			want := map[string]any{"id": id, "callbackUri": callback, "_links": map[string]any{"self": map[string]any{"href": at}}}
			if tc.filter != "" && tc.filter != "{}" {
				want["filter"] = decoded(t, tc.filter)
			}
			if tc.shown != "" {
				want["verbosity"] = tc.shown
			}
			for _, got := range []answer{made, w.ask("GET", at, "")} {
				if d := cmp.Diff(any(want), decoded(t, got.body)); d != "" {
					t.Errorf("%s: -want +got:\n%s", tc.reason, d)
				}
			}
			if d := cmp.Diff(any([]any{want}), decoded(t, w.ask("GET", tc.path, "").body)); d != "" {
				t.Errorf("%s: the list: -want +got:\n%s", tc.reason, d)
			}
			for _, other := range []string{root, "/vnflcm/v1/subscriptions", "/vnffm/v1/subscriptions"} {
				if other == tc.path {
					continue
				}
				if got := w.ask("GET", other, ""); got.body != "[]\n" {
					t.Errorf("another interface shows it: %s", got.body)
				}
				if got := w.ask("DELETE", other+"/"+id, ""); got.status != 404 {
					t.Errorf("another interface deletes it: %d", got.status)
				}
			}
			for _, status := range []int{204, 404} {
				if got := w.ask("DELETE", at, ""); got.status != status {
					t.Errorf("deletion: %d, want %d", got.status, status)
				}
			}
			if wrong := w.to.Violations(); len(wrong) > 0 {
				t.Errorf("violations: %q", wrong)
			}
		})
	}
}

// TestRefusals rejects requests that no subscription can be made of.
func TestRefusals(t *testing.T) {
	t.Parallel()
	with := func(more string) string { return `{"callbackUri": "` + callback + `"` + more + `}` }
	for name, tc := range map[string]struct {
		reason string
		body   string
		status int
		says   string
	}{
		"Callback":  {"there is none", `{}`, 400, "callbackUri"},
		"Unknown":   {"a filter without the attribute would select more", with(`, "filter": {"states": ["FAILED"]}`), 400, "states"},
		"Type":      {"a type is unknown", with(`, "filter": {"notificationTypes": ["X"]}`), 400, "notificationTypes"},
		"Address":   {"the operator has not allowed it", `{"callbackUri": "http://127.0.0.1:1/"}`, 400, "callbackUri"},
		"No params": {"there is no password", with(`, "authentication": {"authType": ["BASIC"]}`), 400, "authentication"},
		"Other":     {"there are parameters of another type", with(`, "authentication": {"authType": ["OAUTH2_CLIENT_CREDENTIALS"], "paramsBasic": {"userName": "u", "password": "p"}}`), 400, "authentication"},
		"Wrong":     {"the callback requires another password", with(`, "authentication": {"authType": ["BASIC"], "paramsBasic": {"userName": "u", "password": "wr0ng"}}`), 422, "401 instead of 204"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, subscriber.Config{Version: "2.0.0", User: "u", Password: "s3cr3t"})
			got := w.ask("POST", root, tc.body)
			if got.status != tc.status || !strings.Contains(got.body, tc.says) || strings.Contains(got.body, "wr0ng") {
				t.Errorf("%s: %+v", tc.reason, got)
			}
		})
	}
}

// TestUnknownAttribute ignores an attribute of a later version of SOL003, or of a vendor.
func TestUnknownAttribute(t *testing.T) {
	t.Parallel()
	w := newWorld(t, subscriber.Config{Version: "2.0.0"})
	if got := w.ask("POST", root, `{"callbackUri": "`+callback+`", "x-vendor": {"a": 1}}`); got.status != 201 || strings.Contains(got.body, "x-vendor") {
		t.Errorf("the response is %+v", got)
	}
}

// TestAuthentication authenticates by the type that has parameters, and never shows them.
func TestAuthentication(t *testing.T) {
	t.Parallel()
	const basic = `"paramsBasic": {"userName": "u", "password": "s3cr3t"}`
	const client = `"paramsOauth2ClientCredentials": {"clientId": "u", "clientPassword": "s3cr3t", "tokenEndpoint": "http://nfvo.example` + subscriber.TokenPath + `"}`
	for name, tc := range map[string]struct {
		reason string
		tokens bool
		auth   string
	}{
		"Basic": {"a password", false, `{"authType": ["BASIC"], ` + basic + `}`},
		"Token": {"a token", true, `{"authType": ["OAUTH2_CLIENT_CREDENTIALS"], ` + client + `}`},
		"Both":  {"a token is better than a password", true, `{"authType": ["BASIC", "OAUTH2_CLIENT_CREDENTIALS"], ` + basic + `, ` + client + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, subscriber.Config{Version: "2.0.0", User: "u", Password: "s3cr3t", Tokens: tc.tokens})
			made := w.ask("POST", root, `{"callbackUri": "`+callback+`", "authentication": `+tc.auth+`}`)
			if made.status != 201 {
				t.Fatalf("%s: %+v", tc.reason, made)
			}
			for _, got := range []answer{made, w.ask("GET", made.header.Get("Location"), ""), w.ask("GET", root+"?all_fields", "")} {
				if strings.Contains(got.body, "s3cr3t") || strings.Contains(got.body, "authentication") {
					t.Errorf("%s: %s", tc.reason, got.body)
				}
			}
		})
	}
}

// TestVersions answers requests for the version of the interface only.
func TestVersions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, subscriber.Config{})
	for _, tc := range []struct {
		version, path string
		status        int
	}{
		{"", root, 400}, {"2", root, 400}, {"1.3.0", root, 406}, {"2.0.0", root, 200}, {"2.0.0-impl:x:y:1", root, 200},
		{"2.0.0", "/vnflcm/v1/subscriptions", 406}, {"1.3.0", "/vnflcm/v1/subscriptions", 200}, {"1.3.0", "/vnffm/v1/subscriptions", 200},
	} {
		if got := w.askAs(tc.version, "GET", tc.path, ""); got.status != tc.status || got.header.Get("Version") != sol013.VersionOf(tc.path) {
			t.Errorf("version %q of %s: %+v, want %d", tc.version, tc.path, got, tc.status)
		}
	}
}

// TestPages lists more subscriptions than a page has, and filters them.
func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, subscriber.Config{Version: "2.0.0"})
	for i := range 120 {
		if got := w.ask("POST", root, fmt.Sprintf(`{"callbackUri": "%s?n=%d"}`, callback, i)); got.status != 201 {
			t.Fatalf("%+v", got)
		}
	}
	found := 0
	for path := root; path != ""; {
		got := w.ask("GET", path, "")
		found += len(decoded(t, got.body).([]any))
		link := got.header.Get("Link")
		path, _, _ = strings.Cut(strings.TrimPrefix(link, "<"), ">")
	}
	if found != 120 {
		t.Errorf("%d subscriptions, want 120", found)
	}
	if got := decoded(t, w.ask("GET", root+"?filter=(eq,callbackUri,%27"+callback+"?n=7%27)", "").body).([]any); len(got) != 1 {
		t.Errorf("%d subscriptions have the callback", len(got))
	}
}

// TestNewRefuses rejects a configuration that is not complete.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, err := vnfsubscription.New(vnfsubscription.Config{}); err == nil {
		t.Error("it needs a store of subscriptions")
	}
}
