package onap_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
	"github.com/multicloud-k8s/k8splugin/src/notify"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// targets knows the stand-in engine's instances.
type targets struct{ *engine }

func (t targets) Target(ctx context.Context, instance string) (notify.Target, error) {
	in, err := t.Instance(ctx, instance)
	return notify.Target{Region: in.Region}, err
}

func (targets) Follow(context.Context, string, nf.Ref) iter.Seq2[notify.Event, error] {
	return func(func(notify.Event, error) bool) {}
}

// subscribing is newWorld with a notifier, and the instance id1.
func subscribing(t *testing.T, strict bool) *world {
	t.Helper()
	w := newWorld(t, strict)
	n, err := notify.New(notify.Config{Source: targets{w.engine}, Config: outbox.Config{
		KV: memory.New(), NewID: rand.Text,
		Clock: func() time.Time { return time.Date(2026, 11, 20, 12, 0, 9, 123456789, time.UTC) },
	}})
	if err != nil {
		t.Fatal(err)
	}
	ids := 0
	cfg := onap.Config{
		Regions: regions{&sync.Map{}}, Surveys: w, Instances: w, Operations: w.engine, Live: w.live, Staging: onap.InStore(w.kv),
		Strict: strict, Clock: func() time.Time { return noon(9) }, Wait: time.Minute,
		NewID: func() string {
			ids++
			return fmt.Sprint("id", ids)
		},
	}
	permit(w.rights.May).access(&cfg, w.bundles, n)
	api, err := onap.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	router := mux.NewRouter().SkipClean(true)
	api.Routes(router)
	w.server = router
	w.create(t)
	return w
}

const (
	subscriptions = "/v1/instance/id1/status/subscription"
	adapterAsks   = `{"name": "id1-cnf-adapter", "callback-url": "http://so-cnf-adapter:8090/api/cnf-adapter/v1/instance/id1/status/notify",
		"min-notify-interval": 30, "metadata": {"instanceId": "id1", "tenantId": null, "vfModuleId": "v"}, "odd": "ignored"}`
	noSubscription = "Error retrieving Subscription data: Error finding master table: mongo: no documents in result"
)

func shown(name, interval, callback, metadata string) string {
	return `{"name": "` + name + `", "min-notify-interval": ` + interval + `, "last-update-time": "2026-11-20T12:00:09.123456789Z", "callback-url": "` + callback + `",
		"last-notify-time": "2026-11-20T12:00:09.123456789Z", "last-notify-status": 0, "metadata": ` + metadata + `}`
}

// TestSubscriptions is the life of the subscription that SO's adapter makes.
func TestSubscriptions(t *testing.T) {
	t.Parallel()
	w := subscribing(t, false)
	const one = subscriptions + "/id1-cnf-adapter"
	adapter := shown("id1-cnf-adapter", "30", "http://so-cnf-adapter:8090/api/cnf-adapter/v1/instance/id1/status/notify", `{"instanceId": "id1", "tenantId": null, "vfModuleId": "v"}`)
	w.want(t, "there is none at first", "GET "+subscriptions, "", 200, `[]`)
	w.want(t, "the adapter looks for its own", "GET "+one, "", 500, noSubscription)
	w.want(t, "and makes it", "POST "+subscriptions, adapterAsks, 201, adapter)
	w.want(t, "once", "POST "+subscriptions, adapterAsks, 500, "Subscription already exists")
	w.want(t, "it is there", "GET "+one, "", 200, adapter)
	w.want(t, "and in the list", "GET "+subscriptions, "", 200, `[`+adapter+`]`)
	changed := shown("id1-cnf-adapter", "0", "http://other/", `{}`)
	w.want(t, "the body's name counts", "PUT "+subscriptions+"/whatever", `{"name": "id1-cnf-adapter", "callback-url": "http://other/"}`, 200, changed)
	w.want(t, "that of the path when it has none", "PUT "+one, `{"callback-url": "http://other/"}`, 200, changed)
	w.want(t, "what is not there is not changed", "PUT "+one, `{"name": "none", "callback-url": "http://other/"}`, 500, "Subscription does not exist: "+noSubscription)
	w.want(t, "it goes", "DELETE "+one, "", 202, "")
	w.want(t, "what is gone cannot prevent the deletion of its instance", "DELETE "+one, "", 202, "")
}

// TestSubscriptionSecret gives our own secret: it is never returned.
func TestSubscriptionSecret(t *testing.T) {
	t.Parallel()
	w := subscribing(t, false)
	got := w.ask(t, "POST "+subscriptions, `{"name": "s", "callback-url": "http://r/", "secret": "hunter2", "metadata": {"n": 12345678901234567890}}`)
	got2 := w.ask(t, "GET "+subscriptions+"/s", "")
	for _, body := range []string{got.body, got2.body} {
		if strings.Contains(body, "hunter2") || strings.Contains(body, "aHVudGVyMg") || strings.Contains(body, "secret") {
			t.Errorf("the secret is told: %s", body)
		}
		var keys map[string]json.RawMessage
		if err := json.Unmarshal([]byte(body), &keys); err != nil || len(keys) != 7 || string(keys["metadata"]) != `{"n":12345678901234567890}` {
			t.Errorf("the answer is %s, want ONAP's seven fields and metadata as they were given", body)
		}
	}
}

func TestSubscriptionRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		request string
		body    string
		status  int
		want    string
	}{
		"empty":           {"a body is needed", "POST " + subscriptions, "", 400, "Body empty"},
		"empty PUT":       {"likewise", "PUT " + subscriptions + "/s", "", 400, "Body empty"},
		"no JSON":         {"of JSON", "POST " + subscriptions, "{", 422, "the document is not JSON: line 1, column 2: it ends too early"},
		"a type":          {"with the right types", "POST " + subscriptions, `{"min-notify-interval": "30"}`, 422, "min-notify-interval: an integer is needed, not a string"},
		"too large":       {"and sizes", "POST " + subscriptions, `{"min-notify-interval": 3000000000}`, 422, "min-notify-interval: an integer within the range is needed"},
		"metadata":        {"likewise", "POST " + subscriptions, `{"name": "s", "callback-url": "http://r/", "metadata": []}`, 422, "metadata: an object is needed, not an array"},
		"no name":         {"it is addressed by it", "POST " + subscriptions, `{"callback-url": "http://r/"}`, 400, "Missing name in POST request"},
		"interval":        {"time does not run back", "POST " + subscriptions, `{"name": "s", "callback-url": "http://r/", "min-notify-interval": -1}`, 400, "Min Notify Interval has invalid value"},
		"interval PUT":    {"likewise", "PUT " + subscriptions + "/s", `{"callback-url": "http://r/", "min-notify-interval": -1}`, 400, "Min Notify Interval has invalid value"},
		"long interval":   {"nor for ever", "POST " + subscriptions, `{"name": "s", "callback-url": "http://r/", "min-notify-interval": 2000000000}`, 400, "Min Notify Interval has invalid value: is not between 0 and 8784h0m0s"},
		"no callback":     {"somebody must be told", "POST " + subscriptions, `{"name": "s"}`, 400, "CallbackUrl has invalid value"},
		"no callback PUT": {"likewise", "PUT " + subscriptions + "/s", `{"name": "s"}`, 400, "CallbackUrl has invalid value"},
		"callback":        {"but not everybody", "POST " + subscriptions, `{"name": "s", "callback-url": "http://169.254.169.254/"}`, 400, "CallbackUrl has invalid value: leads to an address that only the operator may allow"},
		"odd name":        {"names go into paths", "POST " + subscriptions, `{"name": "a/b", "callback-url": "http://r/"}`, 400, "name: is not 1 to 100 printable characters without a slash"},
		"no instance":     {"of something", "POST /v1/instance/none/status/subscription", `{"name": "s", "callback-url": "http://r/"}`, 500, "Creating Status Subscription DB Entry: Cannot get instance for notify thread: " + noInstance},
		"get":             {"an instance that is not there has none", "GET /v1/instance/none/status/subscription/s", "", 500, noSubscription},
		"list":            {"at all", "GET /v1/instance/none/status/subscription", "", 200, "[]"},
		"delete":          {"and its removal succeeds", "DELETE /v1/instance/none/status/subscription/s", "", 202, ""},
		"put":             {"or to change", "PUT /v1/instance/none/status/subscription/s", `{"name": "s", "callback-url": "http://r/"}`, 500, "Subscription does not exist: " + noSubscription},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			subscribing(t, false).want(t, tc.reason, tc.request, tc.body, tc.status, tc.want)
		})
	}
}

func TestSubscriptionStrict(t *testing.T) {
	t.Parallel()
	w := subscribing(t, true)
	const one = subscriptions + "/id1-cnf-adapter"
	w.want(t, "what is not there is not found", "GET "+one, "", 404, noSubscription)
	w.want(t, "and its removal succeeds", "DELETE "+one, "", 202, "")
	w.want(t, "nor listed", "GET /v1/instance/none/status/subscription", "", 404, "Getting Status Subscription data: Error finding master table: mongo: no documents in result")
	if got := w.ask(t, "POST "+subscriptions, adapterAsks); got.status != 201 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	w.want(t, "what is there conflicts", "POST "+subscriptions, adapterAsks, 409, "Subscription already exists")
}

// TestSubscriptionForbidden needs the permission to change the instance for all
// but reading.
func TestSubscriptionForbidden(t *testing.T) {
	t.Parallel()
	w := subscribing(t, false)
	const one = subscriptions + "/id1-cnf-adapter"
	if got := w.ask(t, "POST "+subscriptions, adapterAsks); got.status != 201 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	w.rights[nf.ChangeInstance] = true
	for request, body := range map[string]string{
		"POST " + subscriptions: `{"name": "t", "callback-url": "http://r/"}`, "PUT " + one: adapterAsks, "DELETE " + one: "",
	} {
		if got := w.ask(t, request, body); got.status != 403 {
			t.Errorf("%s answers %d %s to one who may not", request, got.status, got.body)
		}
	}
	for _, request := range []string{"GET " + subscriptions, "GET " + one} {
		if got := w.ask(t, request, ""); got.status != 200 {
			t.Errorf("%s answers %d %s to one who may look", request, got.status, got.body)
		}
	}
}
