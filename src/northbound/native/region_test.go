package native_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

var kubeconfig = base64.StdEncoding.EncodeToString([]byte("kind: Config"))

func TestRegions(t *testing.T) {
	t.Parallel()
	const fields = `"cloud_region_id": "east", "cloud_owner": "acme", "type": "kubernetes", "origin": "site", "description": "first", "labels": {"site": "east"}, "default_namespace": "edge",
		"server": "https://10.0.0.1:6443", "kubernetes_version": "v1.37.1", "apis": ["apps/v1", "v1"],
		"probed_at": "2026-11-20T12:00:00Z",
		"created_at": "2026-11-20T12:00:00Z", "updated_at": "2026-11-20T12:00:00Z"`
	const region = `{` + fields + `,
		"state": {"condition": "expiring", "since": "2026-11-20T12:00:00Z", "checked_at": "2026-11-20T12:00:01Z", "breaker": "closed"},
		"credential": {"kind": "client-certificate", "expires_at": "2026-11-20T12:00:59Z"}}`
	away := func(s *standIn) {
		s.state = nf.RegionState{
			Condition: nf.RegionUnreachable, Reason: "tcp", Message: "no route", Since: noon(0), Checked: noon(1),
			Breaker: nf.BreakerOpen, Retry: noon(9), Credential: nf.Credential{Kind: "token"},
		}
	}
	const isAway = `"state": {"condition": "unreachable", "reason": "tcp", "message": "no route", "since": "<<>>", "checked_at": "<<>>", "breaker": "open",
		"retry_at": "2026-11-20T12:00:09Z"}, "credential": {"kind": "token"}`
	const unknown = `"state": {"condition": "unknown", "breaker": "closed"}, "...": ""`
	form := "Content-Type: multipart/form-data; boundary=x"
	create := `{"cloud_region_id": "east", "kubeconfig": "` + kubeconfig + `"}`
	refused := &nf.Error{Kind: nf.Unreachable, Op: "register", Subject: "cloud region east", Reason: "tls", Err: errors.New("the certificate is not valid")}
	used := nf.E(nf.Conflict, "remove", "cloud region east", nf.Violations{{Message: "is used by VNF instance vnf-1"}})
	runAll(t, map[string]exchange{
		"Create": {
			reason: "a region is registered", request: "POST /v1/cloud_regions", header: []string{asJSON}, body: create,
			status: 201, want: region, headers: []string{"Location: /v1/cloud_regions/east", "Content-Type: application/json"},
		},
		"CreateForm": {
			reason: "a form stands for the document", request: "POST /v1/cloud_regions", header: []string{form},
			body:   "--x\nContent-Disposition: form-data; name=\"metadata\"\n\n{\"cloud_region_id\": \"east\"}\n--x\nContent-Disposition: form-data; name=\"kubeconfig\"; filename=\"k\"\n\nkind: Config\n--x--\n",
			status: 201, want: region,
		},
		"CreateFormUnknownPart": {
			reason: "a part is a field, and unknown fields are refused", request: "POST /v1/cloud_regions", header: []string{form},
			body:   "--x\nContent-Disposition: form-data; name=\"colour\"\n\nred\n--x\nContent-Disposition: form-data; name=\"kubeconfig\"\n\nkind: Config\n--x--\n",
			status: 400, want: problem("invalid", `"errors": [{"field": "colour", "message": "is not a known field"}, {"field": "cloud_region_id", "message": "is missing"}]`),
		},
		"CreateFormTwice": {
			reason: "two parts of one name are rejected", request: "POST /v1/cloud_regions", header: []string{form},
			body:   "--x\nContent-Disposition: form-data; name=\"kubeconfig\"\n\na\n--x\nContent-Disposition: form-data; name=\"kubeconfig\"\n\nb\n--x--\n",
			status: 400, want: problem("invalid", `"errors": [{"field": "kubeconfig", "message": "is given twice"}]`),
		},
		"Capabilities": {
			reason: "what a region offers, and what it declares", request: "GET /v1/cloud_regions/east/capabilities?refresh=true",
			arrange: func(s *standIn) {
				s.region.Plugins = map[string]bool{"macvlan": true}
				s.capabilities = nf.RegionCapabilities{
					Read: noon(0), Version: "v1.37.1", Nodes: nf.NodeSummary{Total: 1, Usable: 1},
					Resources: []nf.NodeResource{{Name: "cpu", Nodes: 1, Allocatable: 8000, Free: 1500, Largest: 1500}, {Name: "memory", Nodes: 1, Allocatable: 16 << 30}},
					NodeDevices: []nf.NodeDevices{
						{Node: "a", Resource: "intel.com/vf", Total: 8, Free: 3},
						{Node: "b", Driver: "vf", Total: 3, NUMA: []nf.NUMADevices{{Node: 1, Total: 2}}},
					},
					Missing: []nf.MissingRule{{Group: "storage.k8s.io", Resource: "storageclasses", Verb: "list"}},
				}
			},
			status: 200, asked: true, want: `{"cloud_region_id": "east", "read_at": "2026-11-20T12:00:00Z", "age_seconds": "<<>>", "kubernetes_version": "v1.37.1",
				"groups": [], "networks": [], "cni_plugins": {"macvlan": true}, "nodes": {"total": 1, "usable": 1, "not_ready": 0, "cordoned": 0, "tainted": 0},
				"features": [], "devices": [], "storage_classes": [],
				"node_devices": [{"node": "a", "resource": "intel.com/vf", "total": 8, "free": 3}, {"node": "b", "driver": "vf", "total": 3, "free": 0, "numa": [{"numa_node": 1, "total": 2, "free": 0}]}],
				"resources": [{"name": "cpu", "nodes": 1, "allocatable": "8", "free": "1500m", "largest_free_node": "1500m", "pending": "0"},
					{"name": "memory", "nodes": 1, "allocatable": "16Gi", "free": "0", "largest_free_node": "0", "pending": "0"}],
				"missing": [{"group": "storage.k8s.io", "resource": "storageclasses", "verb": "list",
					"rule": "{apiGroups: [\"storage.k8s.io\"], resources: [\"storageclasses\"], verbs: [\"list\"]}"}]}`,
		},
		"CapabilitiesWithoutPods": {
			reason: "without the pods, nothing is known to be free", request: "GET /v1/cloud_regions/east/capabilities",
			arrange: func(s *standIn) {
				s.capabilities = nf.RegionCapabilities{
					Resources: []nf.NodeResource{{Name: "cpu", Nodes: 1, Allocatable: 8000, Free: 8000, Largest: 8000}},
					Missing:   []nf.MissingRule{{Resource: "pods", Verb: "list"}},
				}
			},
			status: 200, asked: false, want: `{"resources": [{"name": "cpu", "nodes": 1, "allocatable": "8"}], "...": ""}`,
		},
		"CapabilitiesElsewhere": {
			reason: "a region that does not exist offers nothing", request: "GET /v1/cloud_regions/west/capabilities", status: 404, want: problem("not-found"),
		},
		"CreateFormBadLabels": {
			reason: "labels in a form are JSON", request: "POST /v1/cloud_regions", header: []string{form},
			body:   "--x\nContent-Disposition: form-data; name=\"labels\"\n\nsite=east\n--x--\n",
			status: 400, want: problem("invalid", `"errors": [{"field": "labels", "message": "is not a JSON object"}]`),
		},
		"TwiceInMetadata": {
			reason: "a key that is given twice in a part is as wrong as in a body", request: "POST /v1/cloud_regions", header: []string{form},
			body:   "--x\nContent-Disposition: form-data; name=\"metadata\"\n\n{\"cloud_region_id\": \"a\", \"cloud_region_id\": \"b\"}\n--x--\n",
			status: 400, want: problem("invalid", `"errors": [{"field": "cloud_region_id", "message": "is given twice"}]`),
		},
		"TwiceInForm": {
			reason: "so is one that is in two parts", request: "POST /v1/cloud_regions", header: []string{form},
			body:   "--x\nContent-Disposition: form-data; name=\"description\"\n\na\n--x\nContent-Disposition: form-data; name=\"description\"\n\nb\n--x--\n",
			status: 400, want: problem("invalid", `"errors": [{"field": "description", "message": "is given twice"}]`),
		},
		"CreateFormBadMetadata": {
			reason: "metadata is JSON", request: "POST /v1/cloud_regions", header: []string{form},
			body:   "--x\nContent-Disposition: form-data; name=\"metadata\"\n\n[]\n--x--\n",
			status: 400, want: problem("invalid", `"errors": [{"field": "metadata", "message": "is not a JSON object"}]`),
		},
		"CreateFormCutOff": {
			reason: "half a form is the client's fault", request: "POST /v1/cloud_regions", header: []string{form},
			body:   "--x\nContent-Disposition: form-data; name=\"kubeconfig\"\n\nki",
			status: 400, want: problem("invalid"),
		},
		"CreateFormNoBoundary": {
			reason: "a form without a boundary has no parts", request: "POST /v1/cloud_regions", header: []string{"Content-Type: multipart/form-data"}, body: "x",
			status: 400, want: problem("invalid"),
		},
		"CreateBadBase64": {
			reason: "the field is named, the value is not", request: "POST /v1/cloud_regions", header: []string{asJSON},
			body:   `{"cloud_region_id": "east", "kubeconfig": "s3cret!"}`,
			status: 400, want: problem("invalid", `"errors": [{"field": "kubeconfig", "message": "is not base64"}]`),
		},
		"CreateEmpty": {
			reason: "an empty kubeconfig is none", request: "POST /v1/cloud_regions", header: []string{asJSON},
			body:   `{"cloud_region_id": "east", "kubeconfig": ""}`,
			status: 400, want: problem("invalid", `"errors": [{"field": "kubeconfig", "message": "must not be empty"}]`),
		},
		"CreateAccess": {
			reason: "an access says the same without a kubeconfig", request: "POST /v1/cloud_regions", header: []string{asJSON},
			body: `{"cloud_region_id": "east", "type": "kubernetes", "default_namespace": "edge", "access": {"server": "https://10.0.0.1:6443",
				"ca": "-----BEGIN", "tls_server_name": "api", "token": "s3cret"}}`,
			status: 201, want: region,
			asked: nf.Region{
				ID: "east", Type: nf.KubernetesRegion, Origin: nf.OriginAPI, DefaultNamespace: "edge",
				Access: nf.Access{Server: "https://10.0.0.1:6443", ServerName: "api", CA: []byte("-----BEGIN"), Token: nf.Secret("s3cret")},
			},
		},
		"CreateOIDC": {
			reason: "a provider vouches for the service", request: "POST /v1/cloud_regions", header: []string{asJSON},
			body: `{"cloud_region_id": "east", "access": {"server": "https://x", "oidc": {"token_url": "https://y/token", "client_id": "k8s", "client_secret": "s3cret",
				"username": "u", "password": "s3cret", "ca": "-----BEGIN"}}}`,
			status: 201, want: region,
			asked: nf.Region{ID: "east", Origin: nf.OriginAPI, Access: nf.Access{Server: "https://x", OIDC: &nf.OIDC{
				TokenURL: "https://y/token", ClientID: "k8s", ClientSecret: nf.Secret("s3cret"), Username: "u", Password: nf.Secret("s3cret"), CA: []byte("-----BEGIN"),
			}}},
		},
		"CreateServiceAccount": {
			reason: "the service renews the token", request: "POST /v1/cloud_regions", header: []string{asJSON},
			body: `{"cloud_region_id": "east", "access": {"server": "https://x", "token": "s3cret", "service_account": {"namespace": "edge", "name": "vnf.manager",
				"audiences": ["api"], "lifetime_seconds": 7200}}}`,
			status: 201, want: region,
			asked: nf.Region{ID: "east", Origin: nf.OriginAPI, Access: nf.Access{Server: "https://x", Token: nf.Secret("s3cret"), ServiceAccount: &nf.ServiceAccount{
				Namespace: "edge", Name: "vnf.manager", Audiences: []string{"api"}, Lifetime: 7200,
			}}},
		},
		"CreateShortToken": {
			reason: "API servers issue no token that lives for a minute", request: "POST /v1/cloud_regions", header: []string{asJSON},
			body: `{"cloud_region_id": "east", "access": {"server": "https://x", "token": "s3cret", "service_account": {"namespace": "edge", "name": "a",
				"lifetime_seconds": 60}}}`,
			status: 400, want: problem("invalid", `"errors": [{"field": "access.service_account.lifetime_seconds", "message": "must be at least 600"}]`),
		},
		"CreateRotation": {
			reason: "the certificate of a kubeconfig rotates", request: "POST /v1/cloud_regions", header: []string{asJSON},
			body:   `{"cloud_region_id": "east", "kubeconfig": "` + kubeconfig + `", "credentials": {"rotate": "certificate", "lifetime_seconds": 7200}}`,
			status: 201, want: region,
			asked: nf.Region{ID: "east", Origin: nf.OriginAPI, Access: nf.Access{
				Kubeconfig: nf.Secret("kind: Config"), Rotation: &nf.Rotation{Kind: nf.RotateCertificate, Lifetime: 7200},
			}},
		},
		"CreateWrongRotation": {
			reason: "nothing else rotates", request: "POST /v1/cloud_regions", header: []string{asJSON},
			body:   `{"cloud_region_id": "east", "kubeconfig": "` + kubeconfig + `", "credentials": {"rotate": "password"}}`,
			status: 400, want: problem("invalid", `"errors": [{"field": "credentials.rotate", "message": "must be one of token, certificate"}]`),
		},
		"CreateRotationWithoutLogin": {
			reason: "nothing is there to rotate", request: "POST /v1/cloud_regions", header: []string{asJSON},
			body: `{"cloud_region_id": "east", "credentials": {"rotate": "token"}}`, status: 201, want: region,
			asked: nf.Region{ID: "east", Origin: nf.OriginAPI}, // the catalog says that the access is missing
		},
		"PatchRotation": {
			reason: "the present access rotates", request: "PATCH /v1/cloud_regions/east", header: []string{asPatch},
			body:   `{"credentials": {"rotate": "token"}}`,
			status: 200, want: `{"cloud_region_id": "east", "...": ""}`,
			asked: nf.Region{
				ID: "east", Owner: "acme", Type: nf.KubernetesRegion, Origin: nf.OriginSite, Description: "first", Labels: map[string]string{"site": "east"},
				DefaultNamespace: "edge", Access: nf.Access{Kubeconfig: nf.Secret("s3cret"), Rotation: &nf.Rotation{Kind: nf.RotateToken}},
				Probe: nf.Probe{Server: "https://10.0.0.1:6443", Version: "v1.37.1", APIs: []string{"apps/v1", "v1"}, Time: noon(0)}, Created: noon(0), Updated: noon(0),
			},
		},
		"PatchRotationOfAAI": {
			reason: "A&AI would take it back", request: "PATCH /v1/cloud_regions/east", header: []string{asPatch},
			arrange: func(s *standIn) { s.region.AAI = &nf.AAISource{Owner: "k8s"} }, body: `{"credentials": {"rotate": "token"}}`,
			status: 400, want: problem("invalid", `"errors": [{"field": "credentials", "message": "needs access or kubeconfig: the present access is read from A&AI"}]`),
		},
		"PatchRotationOfCluster": {
			reason: "so would Cluster API", request: "PATCH /v1/cloud_regions/east", header: []string{asPatch},
			arrange: func(s *standIn) { s.region.Parent = &nf.Parent{Region: "west"} }, body: `{"credentials": {"rotate": "token"}}`,
			status: 400, want: problem("invalid", `"errors": [{"field": "credentials", "message": "needs access or kubeconfig: the present access is read from the Secret of a Cluster"}]`),
		},
		"CreateTwoAccesses": {
			reason: "which of the two?", request: "POST /v1/cloud_regions", header: []string{asJSON},
			body:   `{"cloud_region_id": "east", "access": {"server": "https://x"}, "kubeconfig": "` + kubeconfig + `"}`,
			status: 400, want: problem("invalid", `"errors": [{"field": "access", "message": "contradicts kubeconfig"}]`),
		},
		"CreateUnknownAccess": {
			reason: "what is misspelt is not left out", request: "POST /v1/cloud_regions", header: []string{asJSON},
			body:   `{"cloud_region_id": "east", "access": {"server": "https://x", "tocken": "s3cret"}}`,
			status: 400, want: problem("invalid", `"errors": [{"field": "access.tocken", "message": "is not a known field"}]`),
		},
		"CreateOrigin": {
			reason: "the service knows the origin itself", request: "POST /v1/cloud_regions", header: []string{asJSON},
			body:   `{"cloud_region_id": "east", "origin": "onap", "kubeconfig": "` + kubeconfig + `"}`,
			status: 400, want: problem("invalid", `"errors": [{"field": "origin", "message": "is not a known field"}]`),
		},
		"PatchAccess": {
			reason: "a new access replaces the old one as a whole", request: "PATCH /v1/cloud_regions/east", header: []string{asPatch},
			body:   `{"access": {"server": "https://x", "username": "u", "password": "s3cret"}, "default_namespace": ""}`,
			status: 200, want: `{"cloud_region_id": "east", "...": ""}`,
			asked: nf.Region{
				ID: "east", Owner: "acme", Type: nf.KubernetesRegion, Origin: nf.OriginSite, Description: "first", Labels: map[string]string{"site": "east"},
				Access: nf.Access{Server: "https://x", Username: "u", Password: nf.Secret("s3cret")},
				Probe:  nf.Probe{Server: "https://10.0.0.1:6443", Version: "v1.37.1", APIs: []string{"apps/v1", "v1"}, Time: noon(0)}, Created: noon(0), Updated: noon(0),
			},
		},
		"CreateUnreachable": {
			reason: "a failed probe says what failed", arrange: failing("Register", refused),
			request: "POST /v1/cloud_regions", header: []string{asJSON}, body: create,
			status: 502, want: problem("unreachable", `"reason": "tls"`),
		},
		"CreateTaken": {
			reason: "an id is given once", arrange: failing("Register", nf.E(nf.Exists, "register", "cloud region east", nil)),
			request: "POST /v1/cloud_regions", header: []string{asJSON}, body: create, status: 409, want: problem("already-exists"),
		},
		"List": {
			reason: "all regions are listed", request: "GET /v1/cloud_regions",
			status: 200, want: `{"cloud_regions": [` + region + `]}`,
		},
		"ListNone": {
			reason: "an empty list is []", request: "GET /v1/cloud_regions?label=site=west", status: 200, want: `{"cloud_regions": []}`,
		},
		"ListPages": {
			reason: "the next page is named twice", arrange: func(s *standIn) { s.more = []string{"north", "south"} },
			request: "GET /v1/cloud_regions?limit=2&label=site%3Deast",
			status:  200, want: `{"cloud_regions": [{"cloud_region_id": "east", "...": ""}, {"cloud_region_id": "north", "...": ""}], "next": "north"}`,
			headers: []string{`Link: </v1/cloud_regions?label=site%3Deast&limit=2&marker=north>; rel="next"`},
		},
		"ListLastPage": {
			reason: "the last page names no next", arrange: func(s *standIn) { s.more = []string{"north", "south"} },
			request: "GET /v1/cloud_regions?limit=2&marker=north",
			status:  200, want: `{"cloud_regions": [{"cloud_region_id": "south", "...": ""}]}`, headers: []string{"Link: "},
		},
		"ListSmallLimit": {
			reason: "a page has an item at least", request: "GET /v1/cloud_regions?limit=0",
			status: 400, want: problem("invalid", `"errors": [{"field": "limit", "message": "must be at least 1"}]`),
		},
		"ListBadLabel": {
			reason: "a filter that is no selector is refused", request: "GET /v1/cloud_regions?label=site&label=site%3D%3D%3Deast",
			status: 400, want: problem("invalid", `"errors": [{"field": "label[1]", "message": "<<>>"}]`),
		},
		"ListFails": {
			reason: "the cause of a defect is not region", arrange: failing("Regions", errDisk), request: "GET /v1/cloud_regions",
			status: 500, want: problem("internal", `"detail": "unexpected error; the service's log contains the cause under the request's id"`),
		},
		"ListByCondition": {
			reason: "only those that are so", arrange: func(s *standIn) { s.more = []string{"north"} }, request: "GET /v1/cloud_regions?condition=expiring",
			status: 200, want: `{"cloud_regions": [` + region + `]}`,
		},
		"ListByOtherCondition": {
			reason: "a region of which nothing is known is unknown", arrange: func(s *standIn) { s.more = []string{"north"} }, request: "GET /v1/cloud_regions?condition=unknown",
			status: 200, want: `{"cloud_regions": [{"cloud_region_id": "north", ` + unknown + `}]}`,
		},
		"ListBadCondition": {
			reason: "a condition is one of four", request: "GET /v1/cloud_regions?condition=good",
			status: 400, want: problem("invalid", `"errors": [{"field": "condition", "message": "must be one of unknown, available, expiring, unreachable"}]`),
		},
		"Get":     {reason: "a region is read", request: "GET /v1/cloud_regions/east", status: 200, want: strings.Replace(region, "{", `{"vnf_instances": ["vnf-1"], `, 1)},
		"GetAway": {reason: "the failure and the time of the next attempt are reported", arrange: away, request: "GET /v1/cloud_regions/east", status: 200, want: `{"vnf_instances": ["vnf-1"], ` + fields + `, ` + isAway + `}`},
		"GetUsed": {
			reason: "of very many instances some are listed", arrange: func(s *standIn) { s.users = 100 }, request: "GET /v1/cloud_regions/east", status: 200,
			want: `{"vnf_instances": ["vnf-1", "vnf-more-000", "..."], "more_vnf_instances": true, "...": ""}`,
		},
		"GetMissing": {reason: "no region, no answer", request: "GET /v1/cloud_regions/west", status: 404, want: problem("not-found")},
		"Patch": {
			reason: "a merge patch changes what it names", request: "PATCH /v1/cloud_regions/east", header: []string{asPatch},
			body:   `{"description": null, "labels": {"site": null, "tier": "gold"}, "kubeconfig": "` + kubeconfig + `"}`,
			status: 200, want: `{"cloud_region_id": "east", "cloud_owner": "acme", "type": "kubernetes", "origin": "site", "labels": {"tier": "gold"}, "default_namespace": "edge", "server": "<<>>",
				"kubernetes_version": "<<>>", "apis": ["..."], "probed_at": "<<>>", "created_at": "<<>>", "updated_at": "<<>>", "state": "<<>>", "credential": "<<>>"}`,
		},
		"Tenants": {
			reason: "what projects may use is part of a region", request: "POST /v1/cloud_regions", header: []string{asJSON},
			body:   `{"cloud_region_id": "east", "kubeconfig": "` + kubeconfig + `", "tenants": {"blue": {"namespaces": ["mon-*"], "cluster_kinds": ["Namespace"], "service_account": "k/blue"}}}`,
			status: 201, want: region,
			asked: nf.Region{ID: "east", Origin: nf.OriginAPI, Access: nf.Access{Kubeconfig: nf.Secret("kind: Config")}, Tenants: map[string]nf.Tenant{
				"blue": {Namespaces: []string{"mon-*"}, ClusterKinds: []string{"Namespace"}, ServiceAccount: "k/blue"},
			}},
		},
		"PatchTenants": {
			reason: "a merge patch grants, changes and takes away by project", request: "PATCH /v1/cloud_regions/east", header: []string{asPatch},
			arrange: func(s *standIn) {
				s.region.Tenants = map[string]nf.Tenant{"blue": {Namespaces: []string{"a"}, ServiceAccount: "k/blue"}, "red": {Namespaces: []string{"b"}}}
			},
			body:   `{"tenants": {"blue": {"namespaces": ["c"]}, "red": null, "*": {"namespaces": ["d"]}}}`,
			status: 200, want: `{"tenants": {"*": {"namespaces": ["d"]}, "blue": {"namespaces": ["c"], "service_account": "k/blue"}}, "...": ""}`,
		},
		"TenantsUnknownField": {
			reason: "a grant that is misspelt is none", request: "PATCH /v1/cloud_regions/east", header: []string{asPatch},
			body: `{"tenants": {"blue": {"namespace": ["c"]}}}`, status: 400, want: problem("invalid", `"errors": [{"field": "tenants.blue.namespace", "message": "is not a known field"}]`),
		},
		"PatchJSON": {
			reason: "plain JSON is taken for a merge patch", request: "PATCH /v1/cloud_regions/east", header: []string{asJSON},
			body: `{"cloud_owner": "other"}`, status: 200, want: `{"cloud_owner": "other", "description": "first", "...": ""}`,
		},
		"PatchParent": {
			reason: "its Cluster is in another region now", request: "PATCH /v1/cloud_regions/east", header: []string{asPatch},
			body: `{"parent": {"cloud_region_id": "west"}}`, status: 200, asked: "reparent east to west",
			want: `{"cloud_region_id": "east", "parent": {"cloud_region_id": "west", "namespace": "clusters", "cluster": "edge", "credentials": "service_account"}, "...": ""}`,
		},
		"PatchParentAndMore": {
			reason: "a parent is changed alone", request: "PATCH /v1/cloud_regions/east", header: []string{asPatch},
			body: `{"parent": {"cloud_region_id": "west"}, "description": "moved"}`, status: 400, want: problem("invalid", `"errors": [{"field": "parent", "message": "is changed alone, and not removed"}]`),
		},
		"PatchParentRefused": {
			reason: "the new parent does not have the Cluster", request: "PATCH /v1/cloud_regions/east", header: []string{asPatch},
			arrange: failing("Reparent", nf.E(nf.Conflict, "update", "cloud region east", nil)), body: `{"parent": {"cloud_region_id": "west"}}`, status: 409, want: problem("conflict"),
		},
		"PatchBadBase64": {
			reason: "the edit refuses too", request: "PATCH /v1/cloud_regions/east", header: []string{asPatch},
			body: `{"kubeconfig": "!"}`, status: 400, want: problem("invalid", `"errors": [{"field": "kubeconfig", "message": "is not base64"}]`),
		},
		"PatchNull": {
			reason: "a region without a kubeconfig is none", request: "PATCH /v1/cloud_regions/east", header: []string{asPatch},
			body: `{"kubeconfig": null}`, status: 400, want: problem("invalid", `"errors": [{"field": "kubeconfig", "message": "must not be null"}]`),
		},
		"PatchMissing": {
			reason: "no region, nothing to change", request: "PATCH /v1/cloud_regions/west", header: []string{asPatch}, body: `{}`,
			status: 404, want: problem("not-found"),
		},
		"Delete":        {reason: "a region is forgotten", request: "DELETE /v1/cloud_regions/east", status: 204},
		"DeleteMissing": {reason: "no region, nothing to forget", request: "DELETE /v1/cloud_regions/west", status: 404, want: problem("not-found")},
		"DeleteUsed": {
			reason: "the instances that use it are named", arrange: failing("RemoveRegion", used), request: "DELETE /v1/cloud_regions/east",
			status: 409, want: problem("conflict", `"errors": [{"message": "is used by VNF instance vnf-1"}]`),
		},
	})
}
