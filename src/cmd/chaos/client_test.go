package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

func TestAnswer(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason    string
		status    int
		body      string
		good      bool
		operation string
	}{
		"Accepted":    {"an accepted request names its operation", 202, `{"operation_id":"op1","vnf_id":"i1"}`, true, "op1"},
		"Created":     {"a created instance names it, too", 201, `{"operation_id":"op1","vnf_id":"i1"}`, true, "op1"},
		"Gone":        {"an answer may have nothing to say", 204, ``, true, ""},
		"Failed":      {"an operation that failed while it was waited for was accepted", 424, `{"kind":"failed","operation":"op1","vnf_id":"i1"}`, true, "op1"},
		"Late":        {"so was one that the wait has outlasted", 504, `{"kind":"timeout","operation":"op1","vnf_id":"i1"}`, true, "op1"},
		"Busy":        {"what is in the way goes", 409, `{"kind":"busy","operation":"op9"}`, false, ""},
		"Twin":        {"a twin is waited for", 409, `{"kind":"busy","reason":"idempotency-key-reused"}`, false, ""},
		"Confirm":     {"a refusal that wants a confirmation is an answer", 409, `{"kind":"conflict","reason":"confirmation-required","confirm":"c"}`, true, ""},
		"Missing":     {"what is not there will not be", 404, `{"kind":"not-found"}`, true, ""},
		"Unreachable": {"a store that is away comes back", 502, `{"kind":"unreachable"}`, false, ""},
		"TooMany":     {"who asks too often asks later", 429, `{"kind":"rate-limited"}`, false, ""},
		"Nonsense":    {"what is no problem document is no answer", 503, `<html>`, false, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := answer{status: tc.status, body: []byte(tc.body)}
			if tc.status >= http.StatusBadRequest {
				_ = json.Unmarshal(a.body, &a.Problem) // as once does
			}
			if operation, _ := a.accepted(); a.good() != tc.good || operation != tc.operation {
				t.Errorf("%s: good %t with operation %q, want %t with %q", tc.reason, a.good(), operation, tc.good, tc.operation)
			}
		})
	}
}

// TestClientInsists asks servers of which one is dead, one does not work, and one
// is busy at first.
func TestClientInsists(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	defer broken.Close()
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Idempotency-Key") != "k" || r.Header.Get("Prefer") != "respond-async" {
			t.Error("an attempt has lost its headers")
		}
		if asked.Add(1) < 3 {
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"kind":"busy","reason":"idempotency-key-reused"}`))
			return
		}
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte(`{"operation_id":"op1","vnf_id":"i1"}`))
	}))
	defer busy.Close()
	c := newClient([]string{dead.URL, broken.URL, busy.URL}, func(int) bool { return true }, newCounts())
	a, err := c.insist(t.Context(), call{method: http.MethodPost, path: "/v1/vnf_instances", key: "k", prefer: "respond-async", body: map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	if operation, instance := a.accepted(); operation != "op1" || instance != "i1" || asked.Load() != 3 {
		t.Errorf("accepted %q of %q after %d attempts at the third server, want op1 of i1 after 3", operation, instance, asked.Load())
	}
}
