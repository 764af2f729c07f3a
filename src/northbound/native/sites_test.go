package native_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
)

// siteStandIn stands in for the site manager: it has one, fails where the
// test asks for it, and remembers what it was asked for.
type siteStandIn struct {
	siteContent

	mu    sync.Mutex
	asked any
}

type siteContent struct {
	site    nf.Site
	op      nf.Operation
	updates []nf.OperationUpdate // what following yields; without a final one it waits for its context
	fail    error
}

// siteChanged is what a change was asked for.
type siteChanged struct {
	site    nf.Site
	secrets nf.SiteSecrets
	add     []nf.SiteHost
	remove  []string
	timeout time.Duration
	trace   string
	workers *int
}

// siteRemoved is what a removal was asked for.
type siteRemoved struct {
	req     nf.SiteRemoveRequest
	cascade bool
}

func newSiteStandIn() *siteStandIn {
	s := &siteStandIn{}
	s.reset()
	return s
}

// reset makes the stand-in as good as new. Nothing may be using it.
func (s *siteStandIn) reset() {
	s.ask(nil)
	s.siteContent = siteContent{
		site: nf.Site{
			ID: "edge", Project: "blue", Region: "east", Driver: nf.SiteByAnsible, State: nf.SiteReady, Registered: true, Last: "op-1",
			Hosts: []nf.SiteHost{{Name: "n1", Address: "10.0.0.1", Port: 22, User: "debian", Key: "ssh-ed25519 AAAA", Role: nf.ControlPlane, State: nf.HostPresent}},
			Roles: []string{"multus"}, Parameters: map[string]any{"size": 3.0, "colour": "red"}, Secrets: []string{"token"}, SecretsRecord: "u1/op-1",
			Proxy: nf.SiteProxy{HTTP: "http://ann:s3cret@proxy:3128", None: "10.0.0.0/8"}, Created: noon(0), Updated: noon(1),
		},
		op: nf.Operation{
			ID: "op-1", Subject: nf.Subject{Kind: nf.SiteSubject, ID: "edge"}, Region: "east", Project: "blue", Verb: nf.SiteBuild, State: nf.Running, Attempts: 1, Claim: "s3cret-claim",
			Steps: []nf.Step{{StepID: nf.StepID{Phase: nf.PhaseCheckHosts}, Started: noon(1)}}, Accepted: noon(0), Started: noon(1), Deadline: noon(59),
		},
	}
	s.ends(nf.Succeeded, nil)
}

// ends has the operation end.
func (s *siteStandIn) ends(state nf.OperationState, f *nf.Failure) {
	done := s.op
	done.State, done.Failure, done.Finished = state, f, noon(3)
	begun := s.op
	s.updates = []nf.OperationUpdate{{Operation: &begun}, {Entry: nf.LogEntry{Number: 1, Time: noon(2), Kind: nf.EventChanged, Step: "build cluster", Task: "init", Host: "n1"}}, {Operation: &done}}
}

func (s *siteStandIn) ask(what any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = what
}

func (s *siteStandIn) CreateSite(_ context.Context, req nf.SiteRequest) (nf.Operation, error) {
	req.Key = nf.RequestKey{Key: req.Key.Key}
	s.ask(req)
	if s.fail != nil {
		return s.op, s.fail
	}
	return s.op, req.Validate()
}

func (s *siteStandIn) ChangeSite(_ context.Context, id string, req nf.SiteChangeRequest) (nf.Operation, error) {
	if id != s.site.ID {
		return s.op, missing("site", id)
	}
	changed := siteChanged{site: s.site, secrets: nf.SiteSecrets{
		Password: nf.Secret("former"), Secrets: map[string]nf.Secret{"token": nf.Secret("one"), "other": nf.Secret("two")},
	}, add: req.Add, remove: req.Remove, timeout: req.Timeout, trace: req.Trace, workers: req.Workers}
	for range 2 { // as an engine does that was overtaken
		changed.site = s.site
		if err := req.Edit(&changed.site); err != nil {
			return s.op, err
		}
	}
	if req.Secrets != nil {
		if err := req.Secrets(&changed.secrets); err != nil {
			return s.op, err
		}
	}
	s.ask(changed)
	return s.op, s.fail
}

func (s *siteStandIn) RemoveSite(_ context.Context, id string, req nf.SiteRemoveRequest, cascade bool) (nf.Operation, error) {
	if id != s.site.ID {
		return s.op, missing("site", id)
	}
	s.ask(siteRemoved{req, cascade})
	return s.op, s.fail
}

func (s *siteStandIn) Site(_ context.Context, id string) (nf.Site, error) {
	if id != s.site.ID {
		return nf.Site{}, missing("site", id)
	}
	return s.site, nil
}

func (s *siteStandIn) Sites(context.Context) ([]nf.Site, error) { return []nf.Site{s.site}, s.fail }

func (s *siteStandIn) Operation(_ context.Context, site, id string) (nf.Operation, error) {
	if site != "" && site != s.op.Subject.ID || id != s.op.ID {
		return nf.Operation{}, missing("operation", id)
	}
	return s.op, s.fail
}

func (s *siteStandIn) OperationsFrom(_ context.Context, site string, c nf.Cursor) iter.Seq2[nf.Operation, error] {
	var all []nf.Operation
	if site == "" || site == s.op.Subject.ID {
		all = []nf.Operation{s.op}
	}
	return from(c, all, operationID, s.fail)
}

func (s *siteStandIn) Follow(ctx context.Context, site, id string, after int) iter.Seq2[nf.OperationUpdate, error] {
	return func(yield func(nf.OperationUpdate, error) bool) {
		if _, err := s.Operation(ctx, site, id); err != nil {
			yield(nf.OperationUpdate{}, err)
			return
		}
		for _, u := range s.updates {
			if u.Operation == nil && u.Entry.Number <= after {
				continue
			}
			if !yield(u, nil) || u.Operation != nil && u.Operation.State.Final() {
				return
			}
		}
		<-ctx.Done()
	}
}

func (s *siteStandIn) Cancel(ctx context.Context, site, id string) (nf.Operation, error) {
	op, err := s.Operation(ctx, site, id)
	op.Cancel = true
	return op, err
}

const (
	siteBody = `{"site_id": "edge", "cloud_region_id": "east", "project": "blue", "driver": "ansible",
		"hosts": [{"name": "n1", "address": "10.0.0.1", "port": 22, "user": "debian", "host_key": "ssh-ed25519 AAAA", "role": "control_plane", "state": "present"}],
		"roles": ["multus"], "parameters": {"size": 3, "colour": "red"}, "secrets": ["token"], "proxy": {"http": "http://ann:%2A%2A%2A%2A%2A%2A%2A%2A@proxy:3128", "no_proxy": "10.0.0.0/8"},
		"state": "ready", "registered": true, "operation_id": "op-1", "links": {"...": ""}, "created_at": "2026-11-20T12:00:00Z", "updated_at": "2026-11-20T12:00:01Z"}`
	machineSite = `{"site_id": "edge", "user": "debian", "trust_on_first_use": true, "credential": {"password": "s3cret"}, "machines": {"cloud_region_id": "cloud",
		"image": "debian", "flavor": "medium", "networks": ["management"], "key_pair": "ops", "control_planes": 1, "workers": 1}}`
	newSite = `{"site_id": "edge", "cloud_region_id": "east", "user": "debian", "hosts": [{"name": "n1", "address": "10.0.0.1", "role": "control_plane", "host_key": "ssh-ed25519 AAAA"}],
		"credential": {"password": "s3cret"}, "roles": ["multus"], "parameters": {"size": 3}, "secrets": {"token": "s3cret"}, "timeout": "1h"}`
	siteOp = `{"operation_id": "op-1", "subject": {"kind": "site", "id": "edge"}, "site_id": "edge", "cloud_region_id": "east", "project": "blue", "verb": "build", "state": "running", "...": ""}`

	callersTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
)

func TestSites(t *testing.T) {
	t.Parallel()
	wanted := nf.SiteRequest{
		Site: nf.Site{
			ID: "edge", Region: "east", Driver: nf.SiteByAnsible, Roles: []string{"multus"}, Parameters: map[string]any{"size": 3.0},
			Hosts: []nf.SiteHost{{Name: "n1", Address: "10.0.0.1", Port: 22, User: "debian", Key: "ssh-ed25519 AAAA", Role: nf.ControlPlane}},
		},
		Secrets: nf.SiteSecrets{Password: nf.Secret("s3cret"), Secrets: map[string]nf.Secret{"token": nf.Secret("s3cret")}},
		Timeout: time.Hour,
	}
	wantedMachines := nf.SiteRequest{
		Site: nf.Site{
			ID: "edge", Region: "edge", Driver: nf.SiteByAnsible, FirstUse: true,
			Machines: &nf.Machines{Cloud: "cloud", Image: "debian", Flavor: "medium", Networks: []string{"management"}, KeyPair: "ops"},
			Hosts:    []nf.SiteHost{{Name: "master1", Port: 22, User: "debian", Role: nf.ControlPlane}, {Name: "worker1", Port: 22, User: "debian", Role: nf.Worker}},
		},
		Secrets: nf.SiteSecrets{Password: nf.Secret("s3cret")},
	}
	wantedTraced := wanted
	wantedTraced.Trace = callersTrace
	edited := func(f func(*siteChanged)) siteChanged {
		c := siteChanged{site: newSiteStandIn().site, secrets: nf.SiteSecrets{
			Password: nf.Secret("former"), Secrets: map[string]nf.Secret{"token": nf.Secret("one"), "other": nf.Secret("two")},
		}, add: []nf.SiteHost{}}
		f(&c)
		return c
	}
	cases := map[string]struct {
		exchange

		arrange func(*siteStandIn)
		asked   any
	}{
		"Create": {
			exchange: exchange{reason: "the region is registered", request: "POST /v1/sites", header: []string{asJSON}, body: newSite, status: 201, want: siteBody, headers: []string{"Location: /v1/sites/edge"}},
			asked:    wanted,
		},
		"CreateMachines": {
			exchange: exchange{reason: "the hosts are machines", request: "POST /v1/sites", header: []string{asJSON}, body: machineSite, status: 201, want: siteBody},
			asked:    wantedMachines,
		},
		"CreateBoth": {exchange: exchange{
			reason: "hosts are given or created", request: "POST /v1/sites", header: []string{asJSON}, status: 400,
			body: strings.Replace(machineSite, `"machines"`, `"hosts": [{"name": "n1", "address": "10.0.0.1", "role": "control_plane"}], "machines"`, 1), want: problem("invalid", `"errors": [{"field": "hosts", "message": "<<>>"}]`),
		}},
		"Scale": {
			exchange: exchange{reason: "the number of workers is a field of the site", request: "PATCH /v1/sites/edge", header: []string{asPatch}, body: `{"machines": {"workers": 3}}`, status: 200, want: siteBody},
			asked:    edited(func(c *siteChanged) { c.workers = new(3) }),
		},
		"CreateAsync": {exchange: exchange{
			reason: "who does not wait gets the operation", request: "POST /v1/sites", header: []string{asJSON, "Prefer: respond-async"}, body: newSite, status: 202, want: siteBody,
			headers: []string{"Location: /v1/sites/edge/operations/op-1", "Preference-Applied: respond-async"},
		}},
		"CreateFailed": {
			arrange: func(s *siteStandIn) {
				s.ends(nf.OperationFailed, &nf.Failure{Kind: nf.Unreachable, Reason: "unauthorized", Step: "check hosts", Message: "host n1 rejects the credential"})
			},
			exchange: exchange{
				reason: "the failure is reported, with the place of its details", request: "POST /v1/sites", header: []string{asJSON}, body: newSite, status: 502,
				want: problem("unreachable", `"reason": "unauthorized"`, `"operation": "op-1"`, `"operation_url": "/v1/sites/edge/operations/op-1"`, `"detail": "cannot build site edge: host n1 rejects the credential"`),
			},
		},
		"CreateLate": {
			arrange: func(s *siteStandIn) {
				s.ends(nf.OperationFailed, nf.FailureOf("build cluster", nf.E(nf.Timeout, "build", "site edge", errors.New("it took longer than 1h0m0s"))))
			},
			exchange: exchange{
				reason: "a failure that names the operation's action and site is not repeated", request: "POST /v1/sites", header: []string{asJSON}, body: newSite, status: 504,
				want: problem("timeout", `"detail": "cannot build site edge: it took longer than 1h0m0s"`),
			},
		},
		"CreateCancelled": {
			arrange: func(s *siteStandIn) {
				s.ends(nf.OperationCancelled, &nf.Failure{Kind: nf.Cancelled, Message: "it was cancelled"})
			},
			exchange: exchange{reason: "a cancellation is reported", request: "POST /v1/sites", header: []string{asJSON}, body: newSite, status: 409, want: problem("cancelled")},
		},
		"CreateInvalid": {exchange: exchange{
			reason: "what is wrong is named", request: "POST /v1/sites", header: []string{asJSON}, status: 400,
			body: `{"site_id": "edge", "hosts": [{"name": "N1", "address": "-x", "role": "worker"}], "credential": {}}`, want: problem("invalid", `"errors": "<<>>"`),
		}},
		"CreateUnknown": {exchange: exchange{reason: "a field that is none is refused", request: "POST /v1/sites", header: []string{asJSON}, body: `{"site_id": "edge", "hosts": [], "password": "s3cret"}`, status: 400, want: problem("invalid")}},
		"CreateTaken": {
			arrange: func(s *siteStandIn) {
				s.fail = nf.E(nf.Exists, "build", "site edge", nf.Violations{{Field: "site_id", Message: "is taken"}})
			},
			exchange: exchange{reason: "an id is one site's", request: "POST /v1/sites", header: []string{asJSON}, body: newSite, status: 409, want: problem("already-exists")},
		},
		"List":     {exchange: exchange{reason: "all there are", request: "GET /v1/sites?state=ready&project=blue", status: 200, want: `{"sites": [` + siteBody + `]}`}},
		"ListNone": {exchange: exchange{reason: "the filters select", request: "GET /v1/sites?state=failed", status: 200, want: `{"sites": []}`}},
		"Get":      {exchange: exchange{reason: "without what is secret", request: "GET /v1/sites/edge", status: 200, want: siteBody}},
		"GetNone":  {exchange: exchange{reason: "there is no other", request: "GET /v1/sites/core", status: 404, want: problem("not-found")}},
		"Change": {
			exchange: exchange{
				reason: "what is given is merged", request: "PATCH /v1/sites/edge", header: []string{asPatch}, status: 200, want: siteBody,
				body: `{"roles": ["ovn"], "parameters": {"colour": null, "shape": "round"}, "proxy": null, "user": "debian", "add_hosts": [{"name": "n3", "address": "10.0.0.3", "role": "worker"}], "remove_hosts": ["n2"], "timeout": 60}`,
			},
			asked: edited(func(c *siteChanged) {
				c.site.Roles, c.site.Parameters, c.site.Proxy = []string{"ovn"}, map[string]any{"size": 3.0, "shape": "round"}, nf.SiteProxy{}
				c.add = []nf.SiteHost{{Name: "n3", Address: "10.0.0.3", Port: 22, User: "debian", Role: nf.Worker}}
				c.remove, c.timeout = []string{"n2"}, time.Minute
			}),
		},
		"ChangeSecrets": {
			exchange: exchange{
				reason: "a credential is replaced, a secret by its name", request: "PATCH /v1/sites/edge", header: []string{asPatch}, status: 200, want: siteBody,
				body: `{"credential": {"private_key": "s3cret key"}, "secrets": {"token": null, "third": "s3cret"}}`,
			},
			asked: edited(func(c *siteChanged) {
				c.secrets = nf.SiteSecrets{PrivateKey: nf.Secret("s3cret key"), Secrets: map[string]nf.Secret{"other": nf.Secret("two"), "third": nf.Secret("s3cret")}}
			}),
		},
		"ChangeNothing": {exchange: exchange{reason: "everything runs again", request: "PATCH /v1/sites/edge", header: []string{asPatch}, body: `{}`, status: 200, want: siteBody}, asked: edited(func(*siteChanged) {})},
		"ChangeMask":    {exchange: exchange{reason: "the mask of a password is none", request: "PATCH /v1/sites/edge", header: []string{asPatch}, body: `{"secrets": {"token": "********"}}`, status: 400, want: problem("invalid")}},
		"ChangeBusy": {
			arrange: func(s *siteStandIn) {
				s.fail = &nf.Error{Kind: nf.Busy, Op: "change", Subject: "site edge", Operation: "op-0"}
			},
			exchange: exchange{reason: "one change at a time", request: "PATCH /v1/sites/edge", header: []string{asPatch}, body: `{}`, status: 409, want: problem("busy", `"operation": "op-0"`)},
		},
		"CreateTraced": {
			exchange: exchange{reason: "the operation continues the caller's trace", request: "POST /v1/sites", header: []string{asJSON, "Traceparent: " + callersTrace}, body: newSite, status: 201, want: siteBody},
			asked:    wantedTraced,
		},
		"ChangeTraced": {
			exchange: exchange{reason: "a change too", request: "PATCH /v1/sites/edge", header: []string{asPatch, "Traceparent: " + callersTrace}, body: `{}`, status: 200, want: siteBody},
			asked:    edited(func(c *siteChanged) { c.trace = callersTrace }),
		},
		"RemoveTraced": {
			exchange: exchange{reason: "and a removal", request: "DELETE /v1/sites/edge", header: []string{"Traceparent: " + callersTrace}, status: 204},
			asked:    siteRemoved{nf.SiteRemoveRequest{Trace: callersTrace}, false},
		},
		"Remove": {
			exchange: exchange{reason: "it is gone", request: "DELETE /v1/sites/edge?cascade=true&keep_hosts=true&timeout=10m", status: 204},
			asked:    siteRemoved{nf.SiteRemoveRequest{KeepHosts: true, Timeout: 10 * time.Minute}, true},
		},
		"RemoveAsync": {exchange: exchange{reason: "who does not wait gets the operation", request: "DELETE /v1/sites/edge", header: []string{"Prefer: respond-async"}, status: 202, want: siteOp, headers: []string{"Location: /v1/sites/edge/operations/op-1"}}, asked: siteRemoved{}},
		"RemoveUsed": {
			arrange: func(s *siteStandIn) {
				s.fail = nf.E(nf.Conflict, "remove", "site edge", nf.Violations{{Message: "its region is used by VNF instance vnf-1"}})
			},
			exchange: exchange{reason: "what is in the way is named", request: "DELETE /v1/sites/edge", status: 409, want: problem("conflict", `"errors": [{"message": "its region is used by VNF instance vnf-1"}]`)},
		},
		"Operations":    {exchange: exchange{reason: "those of the site", request: "GET /v1/sites/edge/operations", status: 200, want: `{"operations": [` + siteOp + `]}`}},
		"Operation":     {exchange: exchange{reason: "one of them", request: "GET /v1/sites/edge/operations/op-1", status: 200, want: siteOp}},
		"OperationNone": {exchange: exchange{reason: "there is no other", request: "GET /v1/sites/edge/operations/op-2", status: 404, want: problem("not-found")}},
		"Cancel":        {exchange: exchange{reason: "it will stop", request: "POST /v1/sites/edge/operations/op-1/cancel", status: 202, want: `{"cancel_requested": true, "operation_id": "op-1", "...": ""}`}},
		"EventsNone":    {exchange: exchange{reason: "there is nothing to follow", request: "GET /v1/sites/edge/operations/op-2/events", status: 404, want: problem("not-found")}},
	}
	s, general := newSiteStandIn(), newStandIn()
	site := serve(t, general, func(c *native.Config) { c.Sites, c.SiteOperations = s, s })
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s.reset()
			if tc.arrange != nil {
				tc.arrange(s)
			}
			tc.exchange.run(t, general, site)
			if diff := cmp.Diff(tc.asked, s.asked, cmp.AllowUnexported(siteChanged{}, siteRemoved{}), cmpopts.EquateEmpty()); tc.asked != nil && diff != "" {
				t.Errorf("%s: it was asked for something else (-want +got):\n%s", tc.reason, diff)
			}
			if strings.Contains(site.log.String(), "s3cret") {
				t.Errorf("%s: the log tells a secret\n%s", tc.reason, site.log)
			}
		})
	}
}

func TestNoSites(t *testing.T) {
	t.Parallel()
	s := newStandIn()
	site := serve(t, s)
	for _, request := range []string{
		"GET /v1/sites", "GET /v1/sites/edge", "DELETE /v1/sites/edge", "GET /v1/sites/edge/operations", "GET /v1/sites/edge/operations/o",
		"GET /v1/sites/edge/operations/o/events", "POST /v1/sites/edge/operations/o/cancel",
	} {
		exchange{reason: "a service without sites has none", request: request, status: 404, want: problem("not-found")}.run(t, s, site)
	}
}
