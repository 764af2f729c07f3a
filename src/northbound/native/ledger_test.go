package native_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
)

// TestOperationsOfEveryKind has the operations a-1 and a-3 of VNF instance vnf-1
// and the operation a-2 of site edge.
func TestOperationsOfEveryKind(t *testing.T) {
	t.Parallel()
	const (
		one   = `{"operation_id": "a-1", "subject": {"kind": "vnf_instance", "id": "vnf-1"}, "vnf_id": "vnf-1", "...": ""}`
		two   = `{"operation_id": "a-2", "subject": {"kind": "site", "id": "edge"}, "site_id": "edge", "project": "blue", "verb": "build", "state": "running", "...": ""}`
		three = `{"operation_id": "a-3", "subject": {"kind": "vnf_instance", "id": "vnf-1"}, "vnf_id": "vnf-1", "...": ""}`
	)
	noInstances := func(s *standIn, _ *siteStandIn) { s.fail["Operations"] = errDisk }
	noSites := func(_ *standIn, s *siteStandIn) { s.fail = errDisk }
	refused := func(field string) string {
		return problem("invalid", `"errors": [{"field": "`+field+`", "message": "<<>>"}]`)
	}
	cases := map[string]struct {
		exchange

		arrange func(*standIn, *siteStandIn)
	}{
		"List":         {exchange: exchange{reason: "the operations of all kinds are in the order of acceptance", request: "GET /v1/operations", status: 200, want: `{"operations": [` + one + `, ` + two + `, ` + three + `]}`}},
		"FirstPage":    {exchange: exchange{reason: "a page has operations of both kinds", request: "GET /v1/operations?limit=2", status: 200, want: `{"operations": [` + one + `, ` + two + `], "next": "a-2"}`, headers: []string{`Link: </v1/operations?limit=2&marker=a-2>; rel="next"`}}},
		"NextPage":     {exchange: exchange{reason: "the next page begins after an operation of another kind", request: "GET /v1/operations?limit=2&marker=a-2", status: 200, want: `{"operations": [` + three + `]}`}},
		"Instances":    {arrange: noSites, exchange: exchange{reason: "one kind alone; the other is not read", request: "GET /v1/operations?subject=vnf_instance", status: 200, want: `{"operations": [` + one + `, ` + three + `]}`}},
		"Instance":     {arrange: noSites, exchange: exchange{reason: "one instance alone", request: "GET /v1/operations?subject=vnf_instance/vnf-1", status: 200, want: `{"operations": [` + one + `, ` + three + `]}`}},
		"InstanceNone": {exchange: exchange{reason: "an instance without operations", request: "GET /v1/operations?subject=vnf_instance/edge", status: 200, want: `{"operations": []}`}},
		"VNF":          {arrange: noSites, exchange: exchange{reason: "vnf_id is a subject", request: "GET /v1/operations?vnf_id=vnf-1", status: 200, want: `{"operations": [` + one + `, ` + three + `]}`}},
		"Sites":        {arrange: noInstances, exchange: exchange{reason: "the other kind alone", request: "GET /v1/operations?subject=site", status: 200, want: `{"operations": [` + two + `]}`}},
		"Site":         {arrange: noInstances, exchange: exchange{reason: "one site alone", request: "GET /v1/operations?subject=site/edge", status: 200, want: `{"operations": [` + two + `]}`}},
		"SiteNone":     {exchange: exchange{reason: "a site without operations", request: "GET /v1/operations?subject=site/vnf-1", status: 200, want: `{"operations": []}`}},
		"Project":      {exchange: exchange{reason: "filters apply to all kinds", request: "GET /v1/operations?project=blue", status: 200, want: `{"operations": [` + two + `]}`}},
		"State":        {exchange: exchange{reason: "a filter goes with a subject", request: "GET /v1/operations?subject=site&state=failed", status: 200, want: `{"operations": []}`}},
		"Kind":         {exchange: exchange{reason: "a kind that does not exist", request: "GET /v1/operations?subject=pod/x", status: 400, want: refused("subject")}},
		"NoID":         {exchange: exchange{reason: "an id that is missing", request: "GET /v1/operations?subject=site/", status: 400, want: refused("subject")}},
		"NoSubject":    {exchange: exchange{reason: "a subject that is missing", request: "GET /v1/operations?subject=", status: 400, want: refused("subject")}},
		"Both":         {exchange: exchange{reason: "two subjects", request: "GET /v1/operations?subject=site&vnf_id=vnf-1", status: 400, want: refused("vnf_id")}},
		"Unreadable":   {arrange: noSites, exchange: exchange{reason: "half a list is no list", request: "GET /v1/operations", status: 500, want: problem("internal")}},

		"Get":           {exchange: exchange{reason: "an operation of a site by its id alone", request: "GET /v1/operations/a-2", status: 200, want: two}},
		"GetUnreadable": {arrange: noSites, exchange: exchange{reason: "an error is not taken for an absence", request: "GET /v1/operations/a-2", status: 500, want: problem("internal")}},
		"GetMissing":    {exchange: exchange{reason: "an operation of no kind", request: "GET /v1/operations/a-4", status: 404, want: problem("not-found")}},
		"Cancel":        {exchange: exchange{reason: "an operation of a site is cancelled", request: "POST /v1/operations/a-2/cancel", status: 202, want: `{"operation_id": "a-2", "cancel_requested": true, "...": ""}`, headers: []string{"Location: /v1/operations/a-2"}}},
		"CancelMissing": {exchange: exchange{reason: "an operation of no kind", request: "POST /v1/operations/a-4/cancel", status: 404, want: problem("not-found")}},
		"CancelView":    {exchange: exchange{reason: "the view names the operation below its site", request: "POST /v1/sites/edge/operations/a-2/cancel", status: 202, want: `{"operation_id": "a-2", "...": ""}`, headers: []string{"Location: /v1/sites/edge/operations/a-2"}}},
		"View":          {exchange: exchange{reason: "below its site an operation has the same document", request: "GET /v1/sites/edge/operations/a-2", status: 200, want: two}},
		"ViewOther":     {exchange: exchange{reason: "a site shows only its own operations", request: "GET /v1/sites/edge/operations/a-1", status: 404, want: problem("not-found")}},
		"EventsMissing": {exchange: exchange{reason: "an operation of no kind", request: "GET /v1/operations/a-4/events", status: 404, want: problem("not-found")}},
		"Retry":         {exchange: exchange{reason: "an operation of a site cannot be retried, which is not the same as missing", request: "POST /v1/operations/a-2/retry", status: 422, want: problem("unsupported")}},
		"Undo":          {exchange: exchange{reason: "an operation of a site cannot be undone", request: "POST /v1/operations/a-2/undo", status: 422, want: problem("unsupported")}},
		"UndoMissing":   {exchange: exchange{reason: "an operation of no kind", request: "POST /v1/operations/a-4/undo", status: 404, want: problem("not-found")}},
		"CancelEnded": {
			arrange: func(_ *standIn, s *siteStandIn) {
				s.fail = nf.E(nf.Conflict, "cancel", "operation a-2", errors.New("it has ended"))
			},
			exchange: exchange{reason: "the refusal of one kind is the answer", request: "POST /v1/operations/a-2/cancel", status: 409, want: problem("conflict")},
		},
	}
	s, sites := newStandIn(), newSiteStandIn()
	site := serve(t, s, func(c *native.Config) { c.Sites, c.SiteOperations = sites, sites })
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s.reset()
			sites.reset()
			s.operation.ID, s.more, sites.op.ID = "a-1", []string{"a-3"}, "a-2"
			if tc.arrange != nil {
				tc.arrange(s, sites)
			}
			tc.exchange.run(t, s, site)
		})
	}
}

// TestEventsOfEveryKind reads the stream of a site's operation in both places.
func TestEventsOfEveryKind(t *testing.T) {
	t.Parallel()
	sites := newSiteStandIn()
	sites.op.ID = "a-2"
	sites.ends(nf.Succeeded, nil)
	site := serve(t, newStandIn(), func(c *native.Config) { c.Sites, c.SiteOperations = sites, sites })
	all, below := site.ask(t, "GET /v1/operations/a-2/events", ""), site.ask(t, "GET /v1/sites/edge/operations/a-2/events", "")
	if diff := cmp.Diff(string(below.body), string(all.body)); diff != "" || strings.Count(string(all.body), "event: ") != 3 {
		t.Errorf("the streams differ, or are short (-below its site +among all):\n%s\n%s", diff, all.body)
	}
}

// TestOperationsWithoutSites has a service that builds no sites.
func TestOperationsWithoutSites(t *testing.T) {
	t.Parallel()
	runAll(t, map[string]exchange{
		"List":    {reason: "the other kinds are listed", request: "GET /v1/operations", status: 200, want: `{"operations": ["<<>>"]}`},
		"Subject": {reason: "the kind does not exist", request: "GET /v1/operations?subject=site", status: 400, want: problem("invalid", `"errors": [{"field": "subject", "message": "\"site\" is not one of vnf_instance, vnf_instance/ID"}]`)},
		"Retry":   {reason: "an operation that does not exist", request: "POST /v1/operations/op-2/retry", status: 404, want: problem("not-found")},
	})
}
