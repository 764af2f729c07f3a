package nfvo_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/nfvo"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/nfvo"
)

const password = "gr4nt-s3cret"

// direct sends requests to a handler in this process, so that time can stand still.
type direct struct{ http.Handler }

func (d direct) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	defer func() {
		if recover() != nil {
			err = io.ErrUnexpectedEOF // the handler has cut the connection
		}
	}()
	served := req.Clone(req.Context())
	if served.Body == nil {
		served.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, served)
	return w.Result(), nil
}

func newClient(t *testing.T, of http.Handler, tokens bool) *nfvo.Client {
	t.Helper()
	cfg := nfvo.Config{
		URL: "http://nfvo.example/", Transport: direct{of}, Callback: "https://k8splugin.example/",
		Credentials: func(context.Context) (string, nf.Secret) { return "k8splugin", nf.Secret(password) },
	}
	if tokens {
		cfg.TokenURL = "http://nfvo.example/token"
	}
	c, err := nfvo.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// instantiate asks for two pods of web and one of db.
func instantiate() nf.GrantRequest {
	return nf.GrantRequest{
		VNF: "v1", Occurrence: "o1", VNFD: "d1", Flavor: "simple", Level: "small", Operation: nf.OccurrenceInstantiate, Params: map[string]any{"namespace": "edge"},
		Resources: []nf.GrantResource{{ID: "web-1", VDU: "web", Change: nf.VNFCAdded}, {ID: "web-2", VDU: "web", Change: nf.VNFCAdded}, {ID: "db-1", VDU: "db", Change: nf.VNFCAdded}},
	}
}

// grant asks for a grant, and waits for the decision.
func grant(ctx context.Context, c *nfvo.Client, req nf.GrantRequest) (nf.Grant, error) {
	g, pending, err := c.Ask(ctx, req)
	if err != nil || pending.At == "" {
		return g, err
	}
	return c.Await(ctx, req, pending)
}

func TestGrant(t *testing.T) {
	t.Parallel()
	scale := instantiate()
	scale.Operation = nf.OccurrenceScale
	scale.Resources = []nf.GrantResource{{ID: "web-1", VDU: "web", Change: nf.VNFCRemoved, Resource: "web-5d5f-abcde"}}
	upgrade := scale
	upgrade.Operation, upgrade.Destination = nf.OccurrenceCurrentPackage, "d2"
	upgrade.Resources = []nf.GrantResource{{ID: "web-1", VDU: "web", Change: nf.VNFCModified, Resource: "web-5d5f-abcde"}}
	placed := func(zones ...string) func(map[string]any) {
		return func(g map[string]any) {
			g["vimConnectionInfo"] = map[string]any{"edge": map[string]any{"vimId": "vim-1", "vimType": "ETSINFV.KUBERNETES.V_1"}}
			g["zones"] = []any{map[string]any{"id": "a", "zoneId": "zone-a"}, map[string]any{"id": "b", "zoneId": "zone-b"}}
			var all []any
			for i, id := range []string{"web-1", "web-2", "db-1"} {
				all = append(all, map[string]any{"resourceDefinitionId": id, "vimConnectionId": "edge", "zoneId": zones[i]})
			}
			g["addResources"] = all
		}
	}
	only := func(info map[string]any) func(map[string]any) {
		return func(g map[string]any) { g["addResources"] = []any{info} }
	}
	on := func(req nf.GrantRequest, vims ...string) nf.GrantRequest {
		req.VIMs = vims
		return req
	}
	edge := map[string]nf.VIMConnectionRequest{"edge": {VIM: "vim-1", Type: "ETSINFV.KUBERNETES.V_1"}}
	none := map[string]nf.VIMConnectionRequest{}
	cases := map[string]struct {
		reason string
		req    nf.GrantRequest
		fault  simulator.Fault
		want   nf.Grant
		kind   nf.Kind
		says   string
	}{
		"granted":         {"all is permitted, without places", instantiate(), simulator.Fault{}, nf.Grant{VIMs: none, Zones: map[string]string{}}, 0, ""},
		"scale in":        {"a resource that is removed is named", scale, simulator.Fault{}, nf.Grant{VIMs: none, Zones: map[string]string{}}, 0, ""},
		"package":         {"the package that is to come is named", upgrade, simulator.Fault{}, nf.Grant{VIMs: none, Zones: map[string]string{}}, 0, ""},
		"placed":          {"the VIM and the zones are read", instantiate(), simulator.Fault{Edit: placed("a", "a", "b")}, nf.Grant{VIMs: edge, VIM: "edge", Zones: map[string]string{"web": "zone-a", "db": "zone-b"}}, 0, ""},
		"later":           {"a decision that is taken later is waited for", instantiate(), simulator.Fault{Later: 7}, nf.Grant{VIMs: none, Zones: map[string]string{}}, 0, ""},
		"refused":         {"the NFVO refuses", instantiate(), simulator.Fault{Status: 403, Detail: "no room in edge"}, nf.Grant{}, nf.Forbidden, "no room in edge"},
		"refused later":   {"it may refuse after a while", instantiate(), simulator.Fault{Later: 2, Status: 403, Detail: "no room in edge"}, nf.Grant{}, nf.Forbidden, "no room in edge"},
		"broken":          {"an NFVO that fails has not refused", instantiate(), simulator.Fault{Status: 500, Detail: "out of order"}, nf.Grant{}, nf.Unreachable, "500: out of order"},
		"busy":            {"nor has one that is busy", instantiate(), simulator.Fault{Status: 429, Detail: "slowly"}, nf.Grant{}, nf.Unreachable, "429"},
		"misunderstood":   {"asking again would not help", instantiate(), simulator.Fault{Status: 422, Detail: "unknown VNFD"}, nf.Grant{}, nf.Unsupported, "unknown VNFD"},
		"cut":             {"there is no answer", instantiate(), simulator.Fault{Cut: true}, nf.Grant{}, nf.Unreachable, "the NFVO"},
		"no JSON":         {"the answer is none", instantiate(), simulator.Fault{Raw: "<html>" + password}, nf.Grant{}, nf.Unsupported, "not a Grant"},
		"no id":           {"a grant without id cannot be shown", instantiate(), simulator.Fault{Edit: func(g map[string]any) { delete(g, "id") }}, nf.Grant{}, nf.Unsupported, "no id"},
		"of another":      {"the grant of another occurrence permits nothing", instantiate(), simulator.Fault{Edit: func(g map[string]any) { g["vnfLcmOpOccId"] = "o2" }}, nf.Grant{}, nf.Unsupported, "another"},
		"two zones":       {"the pods of a workload are alike", instantiate(), simulator.Fault{Edit: placed("a", "b", "b")}, nf.Grant{}, nf.Unsupported, `VDU web in the zones "zone-a" and "zone-b"`},
		"unknown zone":    {"a zone must be described", instantiate(), simulator.Fault{Edit: only(map[string]any{"resourceDefinitionId": "db-1", "zoneId": "c"})}, nf.Grant{}, nf.Unsupported, `no "c"`},
		"unknown VIM":     {"so must a VIM", instantiate(), simulator.Fault{Edit: only(map[string]any{"resourceDefinitionId": "db-1", "vimConnectionId": "far"})}, nf.Grant{}, nf.Unsupported, `no "far"`},
		"known VIM":       {"the NFVO need not describe a VIM of the VNF again", on(instantiate(), "far"), simulator.Fault{Edit: only(map[string]any{"resourceDefinitionId": "db-1", "vimConnectionId": "far"})}, nf.Grant{VIMs: none, VIM: "far", Zones: map[string]string{}}, 0, ""},
		"unknown request": {"the NFVO grants what was not asked for", instantiate(), simulator.Fault{Edit: only(map[string]any{"resourceDefinitionId": "x"})}, nf.Grant{}, nf.Unsupported, `"x"`},
		"two VIMs": {"a VNF is in one region", instantiate(), simulator.Fault{Edit: func(g map[string]any) {
			placed("a", "a", "a")(g)
			g["vimConnectionInfo"].(map[string]any)["far"] = map[string]any{"vimId": "vim-2"}
			g["addResources"].([]any)[2].(map[string]any)["vimConnectionId"] = "far"
		}}, nf.Grant{}, nf.Unsupported, "one VIM"},
	}
	for name, tc := range cases {
		for _, tokens := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, tokens %t", name, tokens), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := simulator.New(simulator.Config{User: "k8splugin", Password: password, Tokens: tokens})
					s.Script(tc.fault)
					got, err := grant(t.Context(), newClient(t, s, tokens), tc.req)
					if (err != nil) != (tc.kind != 0) || err != nil && (nf.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), password)) {
						t.Fatalf("%s: got the error %v of kind %v, want kind %v that says %q", tc.reason, err, nf.KindOf(err), tc.kind, tc.says)
					}
					if err == nil && got.ID == "" {
						t.Errorf("%s: the grant has no id", tc.reason)
					}
					got.ID = ""
					if diff := cmp.Diff(tc.want, got); diff != "" {
						t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
					}
				})
			})
		}
	}
}

// TestPendingGrant ends the operation while the NFVO decides.
func TestPendingGrant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := simulator.New(simulator.Config{User: "k8splugin", Password: password})
		s.Script(simulator.Fault{Later: 1 << 30})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		_, err := grant(ctx, newClient(t, s, false), instantiate())
		if nf.KindOf(err) != nf.Unreachable || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want that the deadline passed", err)
		}
		if n := len(s.Journal()); n < 20 || n > 60 {
			t.Errorf("the NFVO was asked %d times in 10 minutes, want about every half minute", n)
		}
	})
}

// TestStrayAnswers has servers that lead elsewhere: the credentials must not follow.
func TestStrayAnswers(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		answer func(w http.ResponseWriter)
		says   string
	}{
		"redirect": {"a redirect is not followed", func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://other.example/grant/v1/grants")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, "307"},
		"another host": {"a pending grant is at the NFVO", func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://other.example/grant/v1/grants/1")
			w.WriteHeader(http.StatusAccepted)
		}, "no Location"},
		"no location": {"it must say where it is", func(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted) }, "no Location"},
		"endless":     {"an answer has a limit", func(w http.ResponseWriter) { _, _ = w.Write(make([]byte, 5<<20)) }, "bytes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Host != "nfvo.example" {
					t.Errorf("%s: a request went to %s", tc.reason, r.URL.Host)
				}
				tc.answer(w)
			}), false)
			if _, err := grant(t.Context(), c, instantiate()); nf.KindOf(err) != nf.Unsupported || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: got %v, want an error that says %q", tc.reason, err, tc.says)
			}
		})
	}
}

// TestWrongCredentials shows that no error has the password.
func TestWrongCredentials(t *testing.T) {
	t.Parallel()
	for _, tokens := range []bool{false, true} {
		s := simulator.New(simulator.Config{User: "k8splugin", Password: "another", Tokens: tokens})
		_, err := grant(t.Context(), newClient(t, s, tokens), instantiate())
		if nf.KindOf(err) != nf.Unreachable || !strings.Contains(err.Error(), "401") || strings.Contains(err.Error(), password) {
			t.Errorf("tokens %t: got %v, want the status 401 and no password", tokens, err)
		}
	}
}
