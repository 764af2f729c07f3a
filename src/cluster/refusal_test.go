package cluster

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// denial is the body of an error response.
func denial(code int, reason, message string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":%q}`, reason, code, message)
}

// patches returns a stub of a region that answers applies by a function.
func patches(apply stub) stub {
	return func(req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodPatch {
			return apply(req)
		}
		return served(req)
	}
}

// TestApplyRefused has an API server, or a webhook, that refuses an object.
func TestApplyRefused(t *testing.T) {
	const said = `admission webhook "policy" denied the request: no label`
	cases := map[string]struct {
		reason string
		code   int
		body   string
		want   nf.Kind
		word   string
		says   string
		sent   int
	}{
		"no reason": {"Kyverno sends a message only", 400, denial(400, "", said), nf.Invalid, "", said, 1},
		"free text": {"Gatekeeper has put its message into the reason", 403, denial(403, "no label", said), nf.Failed, nf.ReasonForbidden, said, 1},
		"quota":     {"a webhook may pass on the text of a quota", 403, denial(403, "", "exceeded quota: q"), nf.Failed, nf.ReasonQuota, "exceeded quota", 1},
		"not found": {"a code that has a kind", 404, denial(404, "none", said), nf.NotFound, "", said, 1},
		"conflict":  {"a code that has a kind", 409, denial(409, "twice", said), nf.Conflict, "", said, 1},
		"entity":    {"a code that has a kind", 422, denial(422, "wrong", said), nf.Invalid, "", said, 1},
		"legal":     {"any other code of a denial", 451, denial(451, "", said), nf.Failed, "", said, 1},
		"misfit": {
			"the object does not fit its schema", 500, denial(500, "", "failed to create typed patch object (ns/a; /v1, Kind=ConfigMap): .extra: field not declared in schema"),
			nf.Invalid, "", ".extra: field not declared", 1,
		},
		"convert": {
			"a value cannot be converted", 500, denial(500, "", "failed to convert new object (ns/a; /v1, Kind=ConfigMap) to proper version: quantities must match"),
			nf.Invalid, "", "quantities must match", 1,
		},
		"etcd":    {"etcd has no leader", 500, denial(500, "", "etcdserver: leader changed"), nf.Unreachable, nf.ReasonUnavailable, "leader changed", attempts},
		"webhook": {"a webhook that fails denies the request", 500, denial(500, "", said), nf.Failed, "", said, 1},
		"large":   {"etcd has a limit", 500, denial(500, "", "etcdserver: request is too large"), nf.TooLarge, "", "too large", 1},
		"larger": {
			"and so has the client of etcd", 500, denial(500, "", "rpc error: code = ResourceExhausted desc = trying to send message larger than max (9 vs. 8)"),
			nf.TooLarge, "", "larger than max", 1,
		},
		"throttled": {"a code that is temporary", 429, denial(429, "slow down", said), nf.Unreachable, nf.ReasonUnavailable, said, attempts},
		"foreign":   {"the response is not of an API server, which may answer later", 418, "", nf.Unreachable, nf.ReasonUnavailable, "418", attempts},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sent := 0
				_, c, _ := alone(t, patches(func(*http.Request) (*http.Response, error) {
					sent++
					return answer(tc.code, tc.body)
				}))
				_, err := c.ApplyNew(t.Context(), instance("vnf-1"), []*unstructured.Unstructured{configMap(t, "vnf-1", "ns", "a", "1")})
				wantKind(t, err, tc.want)
				if nf.ReasonOf(err) != tc.word || !strings.Contains(err.Error(), tc.says) || sent != tc.sent {
					t.Errorf("%s: after %d requests, reason %q: %v", tc.reason, sent, nf.ReasonOf(err), err)
				}
			})
		})
	}
}

// TestApplyDuringElection applies an object while etcd elects a leader.
func TestApplyDuringElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		_, c, _ := alone(t, patches(func(*http.Request) (*http.Response, error) {
			if sent++; sent <= 2 {
				return answer(500, denial(500, "", "etcdserver: leader changed"))
			}
			return answer(201, aConfigMap(1))
		}))
		changes, err := c.ApplyNew(t.Context(), instance("vnf-1"), []*unstructured.Unstructured{configMap(t, "vnf-1", "ns", "a", "1")})
		if err != nil || sent != 3 {
			t.Errorf("after %d requests: %v", sent, err)
		}
		diff(t, "the object is created", map[string]nf.Action{"a": nf.Created}, actions(changes))
	})
}
