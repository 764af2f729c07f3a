package native_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
)

// keyOf returns the key that the stand-in was given with the last request.
func keyOf(t *testing.T, s *standIn) nf.RequestKey {
	t.Helper()
	switch asked := s.asked.(type) {
	case nf.Region:
		return asked.Request
	case upload:
		return asked.as.Request
	case nf.InstantiateRequest:
		return asked.Key
	case upgrade:
		return asked.options.Key
	case nf.RollbackRequest:
		return asked.Key
	case nf.TestRequest:
		return asked.Key
	case nf.ActRequest:
		return asked.Key
	case configuration:
		return asked.options.Key
	case nf.TerminateRequest:
		return asked.Key
	case repair:
		return asked.options.Key
	case nf.Package:
		return asked.Request
	case nf.RequestKey:
		return asked
	default:
		t.Fatalf("nothing with a key was asked for: %#v", asked)
		return nf.RequestKey{}
	}
}

const asForm = "Content-Type: multipart/form-data; boundary=x"

func part(name, content string) string {
	return "--x\nContent-Disposition: form-data; name=\"" + name + "\"\n\n" + content + "\n"
}

// TestKeys asks for the same in two ways, and then for something else.
func TestKeys(t *testing.T) {
	t.Parallel()
	gone := func(s *standIn) { s.versions = []nf.Operation{finished(s.operation, nf.Succeeded, nil)} }
	region := `{"cloud_region_id": "east", "kubeconfig": "` + kubeconfig + `"}`
	form := part("kubeconfig", "kind: Config") + part("cloud_region_id", "east") + "--x--\n"
	cases := map[string]struct {
		reason           string
		request, header  string
		body, same       string
		other, otherBody string // another request
	}{
		"Instance": {
			reason: "the order of fields and the blanks between them say nothing", request: "POST /v1/vnf_instances", header: asJSON,
			body: `{"cloud_region_id": "east", "csar_id": "firewall"}`, same: "{\"csar_id\":\"firewall\",\n\"cloud_region_id\":\"east\"}",
			otherBody: `{"cloud_region_id": "east", "csar_id": "firewall", "namespace": "edge"}`,
		},
		"InstanceOf2018": {
			reason: "one path has a slash more", request: "POST /v1/vnf_instances/", header: asJSON, body: create, same: create,
			other: "POST /v1/vnf_instances", otherBody: `{"cloud_region_id": "west", "csar_id": "firewall"}`,
		},
		"Upgrade":      {reason: "a patch is a request", request: "PATCH /v1/vnf_instances/vnf-1", header: asPatch, body: `{"labels": {"a": "b"}}`, same: `{"labels":{"a":"b"}}`, otherBody: `{"labels": {"a": null}}`},
		"Rollback":     {reason: "no body is an empty one", request: "POST /v1/vnf_instances/vnf-1/rollback", header: asJSON, body: "", same: "{}", otherBody: `{"revision": 1}`},
		"Remove":       {reason: "how long it may take does not matter, what is left does", request: "DELETE /v1/vnf_instances/vnf-1", other: "DELETE /v1/vnf_instances/vnf-1?orphan=true"},
		"RemoveClaims": {reason: "and so do the claims that are left", request: "DELETE /v1/vnf_instances/vnf-1", other: "DELETE /v1/vnf_instances/vnf-1?claims=delete"},
		"Retry":        {reason: "two verbs are two requests", request: "POST /v1/operations/op-1/retry", other: "POST /v1/operations/op-1/undo"},
		"Undo":         {reason: "so are two bodies", request: "POST /v1/operations/op-1/undo", header: asJSON, body: `{"timeout": 60}`, same: `{"timeout": 6e1}`, otherBody: `{"timeout": 61}`},
		"Amend":        {reason: "an amendment is a request", request: "PUT /v1/vnf_instances/vnf-1/amendments/a", header: asJSON, body: `{"csar_id": "p"}`, same: `{"csar_id":"p"}`, otherBody: `{"csar_id": "q"}`},
		"Unamend":      {reason: "so is the end of one", request: "DELETE /v1/vnf_instances/vnf-1/amendments/logs", other: "DELETE /v1/vnf_instances/vnf-1/amendments/rules"},
		"Test":         {reason: "tests are run once", request: "POST /v1/vnf_instances/vnf-1/tests", header: asJSON, same: "{}", otherBody: `{"timeout": 60}`},
		"Region":       {reason: "a region is registered once", request: "POST /v1/cloud_regions", header: asJSON, body: region, same: region + "\n", otherBody: strings.Replace(region, "east", "west", 1)},
		"RegionForm": {
			reason: "of a form the fields count, not their order", request: "POST /v1/cloud_regions", header: asForm, body: form,
			same:      part("cloud_region_id", "east") + part("kubeconfig", "kind: Config") + "--x--\n",
			otherBody: part("kubeconfig", "kind: Config") + part("cloud_region_id", "west") + "--x--\n",
		},
		"Package": {reason: "of an upload the content counts", request: "POST /v1/packages", header: asZip, body: "archive", same: "archive", otherBody: "another"},
		"PackageProject": {
			reason: "and where it goes", request: "POST /v1/packages", header: asZip, body: "archive", same: "archive",
			other: "POST /v1/packages?project=blue", otherBody: "archive",
		},
		"EmptyPackage": {
			reason: "also without an archive", request: "POST /v1/packages", header: asJSON, body: `{"csar_id": "p"}`, same: `{"csar_id":"p"}`,
			other: "POST /v1/packages?project=blue", otherBody: `{"csar_id": "p"}`,
		},
	}
	s := newStandIn()
	site := serve(t, s)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s.reset()
			gone(s)
			amended(s)
			ask := func(request, body string) (nf.RequestKey, answer) {
				header := []string{"Idempotency-Key: k 1~"}
				if c.header != "" {
					header = append(header, c.header)
				}
				got := site.ask(t, request, body, header...)
				if got.StatusCode >= 300 {
					t.Fatalf("%s: %s is answered %s: %s", c.reason, request, got.Status, got.body)
				}
				return keyOf(t, s), got
			}
			first, one := ask(c.request, c.body)
			again, two := ask(c.request, c.same)
			if c.other == "" {
				c.other = c.request
			}
			other, _ := ask(c.other, c.otherBody)
			if first.Key != "k 1~" || len(first.Digest) != len("sha256:")+64 || first != again {
				t.Errorf("%s: the key is %+v, and then %+v", c.reason, first, again)
			}
			if other.Key != first.Key || other.Digest == first.Digest {
				t.Errorf("%s: another request has the key %+v, the first one had %+v", c.reason, other, first)
			}
			if one.StatusCode != two.StatusCode || one.Header.Get("Location") != two.Header.Get("Location") || string(one.body) != string(two.body) {
				t.Errorf("%s: the second answer differs: %s %s, then %s %s", c.reason, one.Status, one.body, two.Status, two.body)
			}
		})
	}
}

// TestKeysAreOfTheirClient has two clients choose the same key.
func TestKeysAreOfTheirClient(t *testing.T) {
	t.Parallel()
	s := newStandIn()
	api, err := native.New(config(s))
	if err != nil {
		t.Fatal(err)
	}
	handler, err := northbound.New(northbound.Config{Swagger: k8splugin.Swagger, APIs: []northbound.API{known{api}}})
	if err != nil {
		t.Fatal(err)
	}
	site := serveHandler(t, handler)
	for name, want := range map[string]string{"": "", "ann": "user:ann"} {
		site.ask(t, "POST /v1/vnf_instances", create, asJSON, "Idempotency-Key: k", "X-Name: "+name)
		if got := keyOf(t, s); got.Client != want {
			t.Errorf("the key of %q is %+v", name, got)
		}
	}
}

// known is an API whose clients say who they are, and are believed.
type known struct{ northbound.API }

func (k known) Routes(r *mux.Router) {
	r.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if name := r.Header.Get("X-Name"); name != "" {
				r = r.WithContext(nf.WithIdentity(r.Context(), nf.Identity{Kind: "user", Name: name}))
			}
			next.ServeHTTP(w, r)
		})
	})
	k.API.Routes(r)
}

func TestRepeatedUploads(t *testing.T) {
	t.Parallel()
	body := part("file", "archive") + part("csar_id", "firewall") + "--x--\n"
	known := "Idempotency-Key: k"
	made := func(digest string) func(*standIn) {
		return func(s *standIn) {
			s.pkg.Request, s.created = nf.RequestKey{Key: "k", Digest: digest}, false
		}
	}
	s := newStandIn()
	s.pkg.ID = "other"
	if got := serve(t, s).ask(t, "POST /v1/packages", body, asForm, known); got.StatusCode != 201 {
		t.Fatalf("the first upload is answered %s", got.Status)
	}
	digest := keyOf(t, s).Digest
	runAll(t, map[string]exchange{
		"Same": {
			reason: "the package that the request made is answered as it was then", arrange: made(digest), request: "POST /v1/packages", header: []string{asForm, known}, body: body,
			status: 201, want: `{"csar_id": "firewall", "...": ""}`, headers: []string{"Location: /v1/packages/firewall"},
		},
		"Other": {
			reason: "another request must not have the key", arrange: made("sha256:other"), request: "POST /v1/packages", header: []string{asForm, known}, body: body,
			status: 409, want: problem("conflict", `"reason": "idempotency-key-reused"`),
		},
		"Unkeyed": {
			reason: "without a key nothing is repeated", arrange: made(digest), request: "POST /v1/packages", header: []string{asForm}, body: body,
			status: 409, want: problem("already-exists"),
		},
		"CutOff": {
			reason: "half an archive is no archive", request: "POST /v1/packages", header: []string{asZip, known}, body: strings.Repeat("x", uploadLimit+1),
			status: 413, want: problem("too-large"),
		},
	})
}

func TestBadKeys(t *testing.T) {
	t.Parallel()
	cases := map[string]exchange{}
	for name, header := range map[string][]string{
		"Empty": {"Idempotency-Key: "}, "Long": {"Idempotency-Key: " + strings.Repeat("x", 129)},
		"Control": {"Idempotency-Key: a\tb"}, "Foreign": {"Idempotency-Key: ü"}, "Twice": {"Idempotency-Key: a", "Idempotency-Key: b"},
	} {
		for where, body := range map[string]string{"/v1/vnf_instances": create, "/v1/operations/op-1/retry": "", "/v1/packages": ""} {
			media := asJSON
			if body == "" {
				media = "Content-Type: application/json"
			}
			if where == "/v1/packages" {
				media = asZip
			}
			cases[name+where] = exchange{
				reason: "a key is 1 to 128 printable characters, once", request: "POST " + where, header: append([]string{media}, header...), body: body,
				status: 400, want: problem("invalid", `"errors": [{"field": "Idempotency-Key", "message": "<<>>"}]`),
			}
		}
	}
	cases["Taken"] = exchange{
		reason: "the engine's error about a key is reported", arrange: failing("Instantiate", &nf.Error{
			Kind: nf.Conflict, Op: "repeat", Subject: `the request with key "k"`, Reason: "idempotency-key-reused", Err: errors.New("another request was made under this key"),
		}),
		request: "POST /v1/vnf_instances", header: []string{asJSON, "Idempotency-Key: k"}, body: create, status: 409,
		want: problem("conflict", `"reason": "idempotency-key-reused", "detail": "cannot repeat the request with key \"k\": another request was made under this key"`),
	}
	runAll(t, cases)
}
