package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// die keeps a dead letter of an instance, as if no subscriber had accepted it for a day,
// and returns its id.
func (s *testService) die(instance, uid string, number int) string {
	s.t.Helper()
	id := fmt.Sprintf("%s-%010d", uid, number)
	text, err := json.Marshal(map[string]any{
		"id": id, "key": uid, "number": number, "note": map[string]string{"instance": instance, "subscription": "so"}, "body": []byte(`{"created":"a secret"}`),
		"created": time.Now().UTC(), "died": time.Now().UTC(), "attempts": 20, "last_status": 500, "last_error": "connection refused",
	})
	if err == nil {
		_, err = s.db.kv.Put(s.t.Context(), "notifications/dead/"+id, text, store.Absent)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// dieHandOver keeps a dead letter that hands a kubeconfig of an instance's region over, and
// returns its id.
func (s *testService) dieHandOver(instance, region string) string {
	s.t.Helper()
	id := region + "-0000000001"
	text, err := json.Marshal(map[string]any{
		"id": id, "key": region, "number": 1, "method": "POST", "url": "http://203.0.113.1/", "note": map[string]string{"instance": instance}, "body": []byte("a secret"),
		"created": time.Now().UTC(), "died": time.Now().UTC(), "attempts": 20, "last_status": 500,
	})
	if err == nil {
		_, err = s.db.kv.Put(s.t.Context(), "handovers/dead/"+id, text, store.Absent)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// subscribed returns what the records of a subscription are known by.
func (s *testService) subscribed(instance string) string {
	s.t.Helper()
	if _, err := s.parts.notifier.Subscribe(s.t.Context(), nf.Subscription{Instance: instance, Name: "so", Callback: "http://203.0.113.1/"}); err != nil {
		s.t.Fatal(err)
	}
	entry, err := s.db.kv.Get(s.t.Context(), "subscriptions/"+instance+"/so")
	if err != nil {
		s.t.Fatal(err)
	}
	var rec struct {
		UID string `json:"uid"`
	}
	if err := json.Unmarshal(entry.Value, &rec); err != nil || rec.UID == "" {
		s.t.Fatalf("the subscription is %s (%v)", entry.Value, err)
	}
	return rec.UID
}

// TestDeadLetters lets every identity request the dead letters of an instance that is
// there, of one that is not, and of one of another project.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	w := newRoleWorld(t)
	own, others := w.instances[accesstest.ProjectA+accesstest.East], w.instances[accesstest.ProjectB+accesstest.West]
	uid := w.subscribed(own)
	mine, gone := w.die(own, uid, 1), w.die("gone", "0", 1)
	theirs := w.die(others, "1", 1)
	ofRegion, theirRegion := w.dieHandOver(own, "edge-a"), w.dieHandOver(others, "edge-b")
	const dead = "/v1/notifications/dead"
	ids := func(who string) []string {
		var list struct {
			Letters []struct {
				ID string `json:"notification_id"`
			} `json:"dead_letters"`
		}
		got := w.want(http.StatusOK, w.as(who, "GET", dead, nil))
		if err := json.Unmarshal(got.body, &list); err != nil {
			t.Fatal(err)
		}
		out := []string{}
		for _, l := range list.Letters {
			out = append(out, l.ID)
		}
		slices.Sort(out)
		return out
	}
	for who, want := range map[string][]string{
		"viewer-a-east": {mine, ofRegion}, "operator-a-east": {mine, ofRegion}, "admin-all": {gone, theirs, mine, ofRegion, theirRegion},
	} {
		slices.Sort(want) // the subscription's id is random
		if diff := cmp.Diff(want, ids(who)); diff != "" {
			t.Errorf("%s is shown others (-want +got)\n%s", who, diff)
		}
	}
	w.want(http.StatusUnauthorized, w.as(accesstest.Anonymous, "GET", dead, nil))
	for _, what := range []struct{ method, path string }{{"POST", "/resend"}, {"DELETE", ""}} {
		for who, want := range map[string]map[string]int{
			accesstest.Anonymous: {mine: http.StatusUnauthorized, "none": http.StatusUnauthorized},
			"viewer-a-east":      {mine: http.StatusForbidden, ofRegion: http.StatusForbidden, theirs: http.StatusNotFound, theirRegion: http.StatusNotFound, gone: http.StatusNotFound, "none": http.StatusNotFound},
			"operator-a-east":    {theirs: http.StatusNotFound, theirRegion: http.StatusNotFound, gone: http.StatusNotFound, "none": http.StatusNotFound},
			"admin-all":          {"none": http.StatusNotFound},
		} {
			for id, status := range want {
				if got := w.as(who, what.method, dead+"/"+id+what.path, nil); got.status != status {
					t.Errorf("%s by %q: %d, want %d: %s", got.request, who, got.status, status, got.body)
				}
			}
		}
	}
	sent := w.want(http.StatusOK, w.as("operator-a-east", "POST", dead+"/"+mine+"/resend", nil))
	if sent.field(t, "attempts") != 0.0 || sent.field(t, "abandoned_at") != nil {
		t.Errorf("the letter is not on its way: %s", sent.body)
	}
	w.want(http.StatusNotFound, w.as("operator-a-east", "POST", dead+"/"+mine+"/resend", nil))
	again := w.die(own, uid, 2)
	w.want(http.StatusNoContent, w.as("operator-a-east", "DELETE", dead+"/"+again, nil))
	w.want(http.StatusNotFound, w.as("admin-all", "POST", dead+"/"+gone+"/resend", nil)) // not to this identity either
	w.want(http.StatusNoContent, w.as("admin-all", "DELETE", dead+"/"+gone, nil))
	w.want(http.StatusNotFound, w.as("operator-a-east", "POST", dead+"/"+ofRegion+"/resend", nil)) // its region is not registered
	w.want(http.StatusNoContent, w.as("operator-a-east", "DELETE", dead+"/"+ofRegion, nil))
	w.want(http.StatusNoContent, w.as("admin-all", "DELETE", dead+"/"+theirRegion, nil))
	if diff := cmp.Diff([]string{theirs}, ids("admin-all")); diff != "" {
		t.Errorf("what is left (-want +got)\n%s", diff)
	}
}
