package vnffm_test

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/sol013/sol013test"
	"github.com/multicloud-k8s/k8splugin/src/northbound/vnffm"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

const root = "/vnffm/v1/alarms"

// alarms is a stand-in for a keeper of alarms.
type alarms struct{ store.Table[nf.Alarm] }

func (a alarms) Alarm(ctx context.Context, id string) (nf.Alarm, error) { return a.Get(ctx, id) }

func (a alarms) AlarmsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Alarm, error] {
	return a.From(ctx, "", from.After)
}

func (a alarms) UpdateAlarm(ctx context.Context, id string, edit func(*nf.Alarm) error) (nf.Alarm, error) {
	return a.Update(ctx, id, edit)
}

// world is the API on alarms in memory.
type world struct {
	t      *testing.T
	alarms alarms
	server *sol013test.Server
}

func newWorld(t *testing.T, all ...nf.Alarm) *world {
	t.Helper()
	w := &world{t: t, alarms: alarms{store.NewTable[nf.Alarm](memory.New(), "alarms/", "alarm")}}
	for _, a := range all {
		if err := w.alarms.Insert(t.Context(), a.ID, a); err != nil {
			t.Fatal(err)
		}
	}
	at := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	api, err := vnffm.New(vnffm.Config{Alarms: w.alarms, Clock: at})
	if err != nil {
		t.Fatal(err)
	}
	w.server = sol013test.New(t, k8splugin.Swagger, api)
	return w
}

// ask sends a request with headers: name, value, ….
func (w *world) ask(method, path, body string, headers ...string) (status int, header http.Header, document string) {
	w.t.Helper()
	got := w.server.Ask(method, path, body, headers...)
	return got.Status, got.Header, got.Body
}

func alarm(id string, severity nf.AlarmSeverity) nf.Alarm {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return nf.Alarm{
		ID: id, VNF: "v", Region: "east", VNFCs: []string{"VDU1-web-1"}, VIM: "vim1", ResourceID: "web-1", ResourceKind: "Pod", ResourceType: "COMPUTE",
		Severity: severity, Event: "PROCESSING_ERROR_ALARM", Fault: "CrashLoop", Cause: "Containers end", Details: []string{"web-1: it ends"}, Observed: at, Raised: at,
	}
}

// TestAlarm shows an alarm as SOL003 describes it.
func TestAlarm(t *testing.T) {
	t.Parallel()
	w := newWorld(t, alarm("a", nf.AlarmMajor))
	status, header, body := w.ask("GET", root+"/a", "")
	const want = `{"id": "a", "managedObjectId": "v", "vnfcInstanceIds": ["VDU1-web-1"], "rootCauseFaultyResource": {"faultyResourceType": "COMPUTE",
		"faultyResource": {"vimConnectionId": "vim1", "resourceId": "web-1", "vimLevelResourceType": "Pod"}},
		"alarmRaisedTime": "2026-01-01T00:00:00Z", "eventTime": "2026-01-01T00:00:00Z", "ackState": "UNACKNOWLEDGED", "perceivedSeverity": "MAJOR",
		"eventType": "PROCESSING_ERROR_ALARM", "faultType": "CrashLoop", "probableCause": "Containers end", "isRootCause": true, "faultDetails": ["web-1: it ends"],
		"_links": {"self": {"href": "/vnffm/v1/alarms/a"}, "objectInstance": {"href": "/vnflcm/v2/vnf_instances/v"}}}`
	var expected, got any
	if err := json.Unmarshal([]byte(want), &expected); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 || header.Get("ETag") == "" || header.Get("Version") != "1.3.0" {
		t.Fatalf("%d %v %s: %v", status, header, body, err)
	}
	if d := cmp.Diff(expected, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if status, _, _ := w.ask("GET", root+"/b", ""); status != 404 {
		t.Errorf("an alarm that does not exist: %d", status)
	}
}

// TestList filters alarms, and selects attributes.
func TestList(t *testing.T) {
	t.Parallel()
	w := newWorld(t, alarm("a", nf.AlarmMajor), alarm("b", nf.AlarmCritical))
	for name, tc := range map[string]struct {
		reason, query string
		want          int
		details       bool
	}{
		"All":      {"no filter", "", 2, true},
		"Severity": {"a severity", "?filter=(eq,perceivedSeverity,CRITICAL)", 1, true},
		"Nested":   {"an attribute in another one", "?filter=(eq,rootCauseFaultyResource/faultyResourceType,STORAGE)", 0, false},
		"Fields":   {"the mandatory attributes, and one more", "?fields=faultType", 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, _, body := w.ask("GET", root+tc.query, "")
			var got []map[string]any
			if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 || len(got) != tc.want || strings.Contains(body, "faultDetails") != tc.details {
				t.Errorf("%s: %d %s, want %d alarms", tc.reason, status, body, tc.want)
			}
		})
	}
}

// TestAcknowledge acknowledges an alarm, and takes that back.
func TestAcknowledge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, alarm("a", nf.AlarmMajor))
	_, header, _ := w.ask("GET", root+"/a", "")
	const yes, no = `{"ackState": "ACKNOWLEDGED"}`, `{"ackState": "UNACKNOWLEDGED"}`
	for _, tc := range []struct {
		reason, path, body, match string
		status                    int
	}{
		{"it is not acknowledged", "/a", no, "", 409},
		{"it does not exist", "/b", yes, "", 404},
		{"the state is unknown", "/a", `{"ackState": "CLEARED"}`, "", 400},
		{"there is no state", "/a", `{}`, "", 400},
		{"the alarm is another one", "/a", yes, `"x"`, 412},
		{"it is as the client has read it", "/a", yes, header.Get("ETag"), 200},
		{"it has changed since", "/a", no, header.Get("ETag"), 412},
		{"it is acknowledged", "/a", yes, "", 409},
		{"any alarm", "/a", no, "*", 200},
	} {
		headers := []string{"Content-Type", "application/merge-patch+json"}
		if tc.match != "" {
			headers = append(headers, "If-Match", tc.match)
		}
		status, _, body := w.ask("PATCH", root+tc.path, tc.body, headers...)
		if status != tc.status {
			t.Errorf("%s: %d, want %d: %s", tc.reason, status, tc.status, body)
		}
		if status == 200 && strings.ReplaceAll(tc.body, " ", "")+"\n" != body {
			t.Errorf("%s: the response is %s", tc.reason, body)
		}
	}
	if status, _, _ := w.ask("PATCH", root+"/a", yes); status != 200 {
		t.Errorf("a client sends application/json: %d", status)
	}
	_, _, body := w.ask("GET", root+"/a", "")
	if !strings.Contains(body, `"ackState":"ACKNOWLEDGED"`) || !strings.Contains(body, `"alarmAcknowledgedTime":"2026-01-02T03:04:05Z"`) {
		t.Errorf("the alarm is %s", body)
	}
}

// TestNewRefuses rejects a configuration that is not complete.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, err := vnffm.New(vnffm.Config{}); err == nil {
		t.Error("it needs alarms")
	}
}
