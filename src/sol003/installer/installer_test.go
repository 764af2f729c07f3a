package installer_test

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/sol003/installer"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
)

// world has one package, and records the requests for sites.
type world struct {
	site     *nf.Site // nil: there is none
	requests []any
	op       nf.Operation
	users    []nf.Subject
}

func (w *world) Create(_ context.Context, req nf.SiteRequest) (nf.Operation, error) {
	w.requests = append(w.requests, req)
	return w.op, req.Validate()
}

func (w *world) Change(_ context.Context, _ string, req nf.SiteChangeRequest) (nf.Operation, error) {
	w.requests = append(w.requests, req)
	return w.op, nil
}

func (w *world) Remove(_ context.Context, _ string, req nf.SiteRemoveRequest) (nf.Operation, error) {
	w.requests = append(w.requests, req)
	return w.op, nil
}

func (w *world) Site(_ context.Context, id string) (nf.Site, error) {
	if w.site == nil {
		return nf.Site{}, nf.E(nf.NotFound, "get", "site "+id, nil)
	}
	return *w.site, nil
}

func (w *world) Operation(context.Context, string, string) (nf.Operation, error) { return w.op, nil }

func (w *world) Cancel(context.Context, string, string) (nf.Operation, error) { return w.op, nil }

func (w *world) Stop(context.Context, string, string) (nf.Operation, error) { return w.op, nil }

func (w *world) Follow(context.Context, string, string, int) iter.Seq2[nf.OperationUpdate, error] {
	return func(yield func(nf.OperationUpdate, error) bool) {
		running, ended := w.op, w.op
		running.State, ended.State = nf.Running, nf.Succeeded
		_ = yield(nf.OperationUpdate{Operation: &running}, nil) && yield(nf.OperationUpdate{}, nil) && yield(nf.OperationUpdate{Operation: &ended}, nil)
	}
}

func (*world) Topology(context.Context, string) (tosca.Topology, error) {
	return tosca.Topology{Flavors: map[string]tosca.Flavor{
		"simple": {Scripts: map[string]tosca.Script{"instantiate_end": {File: "Scripts/install.sh"}, "terminate_end": {File: "Scripts/remove.sh"}}},
		"bare":   {},
	}}, nil
}

func (*world) File(_ context.Context, _, name string) ([]byte, error) {
	if !strings.HasPrefix(name, "Scripts/") {
		return nil, nf.E(nf.NotFound, "read", name, nil)
	}
	return []byte("content of " + name), nil
}

func (w *world) holders(context.Context, nf.Holding) iter.Seq2[nf.Subject, error] {
	return func(yield func(nf.Subject, error) bool) {
		for _, user := range w.users {
			if !yield(user, nil) {
				return
			}
		}
	}
}

func (w *world) installer(t testing.TB) *installer.Installer {
	t.Helper()
	i, err := installer.New(installer.Config{Sites: w, Operations: w, Packages: w, Users: w.holders})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// request is an instantiation with the parameter, which is JSON.
func request(t testing.TB, flavor, parameter string) nf.InstantiateRequest {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(parameter), &value); err != nil {
		t.Fatal(err)
	}
	return nf.InstantiateRequest{
		ID: "vnf-1", Project: "blue", Options: nf.Options{Key: nf.RequestKey{Client: "sol003", Key: "attempt-1"}, Trace: "00-trace"},
		Spec: nf.Spec{Package: "cluster", Inputs: nf.Inputs{Parameters: map[string]any{"flavour_id": flavor, nf.ClusterHostsParameter: value}}},
	}
}

const hostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBase64Base64Base64Base64Base64Base64Base6"

const full = `{
	"vim_name": "edge", "timeout": 1800, "script_options": ["--cni", "https://example.org/cni.yaml"],
	"master_node": {"username": "ops", "password": "p1", "pod_cidr": "10.244.0.0/16", "cluster_cidr": "10.96.0.0/16", "aspect_id": "master",
		"hosts": [{"address": "10.0.0.11", "host_key": "` + hostKey + `"}, {"name": "m2", "address": "10.0.0.12", "port": 2222, "host_key": "` + hostKey + `", "username": "root", "private_key": "KEY", "passphrase": "p2"}]},
	"worker_node": {"username": "work", "password": "p3", "hosts": [{"address": "10.0.0.21", "host_key": "` + hostKey + `"}]},
	"proxy": {"http_proxy": "http://proxy:3128", "no_proxy": "localhost", "k8s_node_cidr": "10.0.0.0/24"}
}`

// TestInstantiate translates the parameters of Tacker to a site.
func TestInstantiate(t *testing.T) {
	t.Parallel()
	w := &world{}
	i, req := w.installer(t), request(t, "simple", full)
	region, cloud, err := i.Check(t.Context(), req)
	if err != nil || region != "edge" || cloud != "" || len(w.requests) != 0 {
		t.Fatalf("the check returns %s and %q, makes %d requests: %v", region, cloud, len(w.requests), err)
	}
	if _, err := i.Instantiate(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	want := nf.SiteRequest{
		Site: nf.Site{
			ID: "vnf-1", Region: "edge", Project: "blue", Driver: nf.SiteByScript, EveryHost: true,
			Hosts: []nf.SiteHost{
				{Name: "master1", Address: "10.0.0.11", Port: 22, User: "ops", Key: hostKey, Role: nf.ControlPlane},
				{Name: "m2", Address: "10.0.0.12", Port: 2222, User: "root", Key: hostKey, Role: nf.ControlPlane},
				{Name: "worker1", Address: "10.0.0.21", Port: 22, User: "work", Key: hostKey, Role: nf.Worker},
			},
			Parameters: map[string]any{"pod_cidr": "10.244.0.0/16", "cluster_cidr": "10.96.0.0/16"},
			Proxy:      nf.SiteProxy{HTTP: "http://proxy:3128", None: "localhost,10.0.0.0/24"},
		},
		Secrets: nf.SiteSecrets{
			Script: nf.Secret("content of Scripts/install.sh"), RemoveScript: nf.Secret("content of Scripts/remove.sh"), Options: []string{"--cni", "https://example.org/cni.yaml"},
			Hosts: map[string]nf.HostCredential{
				"master1": {Password: nf.Secret("p1"), PrivateKey: nf.Secret(""), Passphrase: nf.Secret("")},
				"m2":      {PrivateKey: nf.Secret("KEY"), Passphrase: nf.Secret("p2"), Password: nf.Secret("")},
				"worker1": {Password: nf.Secret("p3"), PrivateKey: nf.Secret(""), Passphrase: nf.Secret("")},
			},
		},
		Timeout: 30 * time.Minute, Key: nf.RequestKey{Client: "sol003", Key: "attempt-1"}, Trace: "00-trace",
	}
	if diff := cmp.Diff(want, w.requests[0]); diff != "" {
		t.Errorf("the site (-want +got):\n%s", diff)
	}
}

const onMachines = `{"vim_name": "edge", "trust_on_first_use": true, "machines": {"cloud_region_id": "cloud", "image": "debian", "flavor": "medium", "networks": ["management"], "workers": 2},
	"master_node": {"username": "debian", "private_key": "KEY"}, "worker_node": {"password": "p1"}}`

// TestMachines has the site create its hosts in an OpenStack cloud.
func TestMachines(t *testing.T) {
	t.Parallel()
	w := &world{}
	i, req := w.installer(t), request(t, "simple", onMachines)
	if region, cloud, err := i.Check(t.Context(), req); err != nil || region != "edge" || cloud != "cloud" {
		t.Fatalf("the check returns %s and %s: %v", region, cloud, err)
	}
	if _, err := i.Instantiate(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	got := w.requests[0].(nf.SiteRequest)
	if diff := cmp.Diff(&nf.Machines{Cloud: "cloud", Image: "debian", Flavor: "medium", Networks: []string{"management"}}, got.Site.Machines); diff != "" {
		t.Errorf("the machines (-want +got):\n%s", diff)
	}
	logins := map[string]string{}
	for _, h := range got.Site.Hosts {
		c := got.Secrets.Hosts[h.Name]
		logins[h.Name] = h.User + " " + string(h.Role) + " " + string(c.PrivateKey) + string(c.Password)
	}
	if diff := cmp.Diff(map[string]string{"master1": "debian control_plane KEY", "worker1": "debian worker p1", "worker2": "debian worker p1"}, logins); diff != "" {
		t.Errorf("the hosts (-want +got):\n%s", diff)
	}
}

// TestWrongParameters: each error names the parameter, and shows no credential.
func TestWrongParameters(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, flavor, parameter, want string }{
		"NoObject":   {"it is an object", "simple", `"s3cret"`, "must be an object"},
		"Type":       {"a value has its type", "simple", `{"master_node": {"password": ["s3cret"]}}`, "master_node.password"},
		"NoHosts":    {"hosts of connection points are not looked up", "simple", `{"master_node": {"ssh_cp_name": "masterNode_CP1", "password": "s3cret"}}`, "master_node.hosts: are missing"},
		"NoLogin":    {"a host accepts a login", "simple", `{"master_node": {"hosts": [{"address": "10.0.0.1", "username": "u"}]}}`, "master_node.hosts[0]: needs a password"},
		"NoKey":      {"a host is known by its key", "simple", `{"master_node": {"hosts": [{"address": "10.0.0.1", "username": "u", "password": "s3cret"}]}}`, "host_key: is missing"},
		"Address":    {"a host has an address", "simple", `{"trust_on_first_use": true, "master_node": {"hosts": [{"address": "-oProxyCommand=x", "username": "u", "password": "s3cret"}]}}`, "neither an IP address nor a name"},
		"Region":     {"the VIM's name is the id of its region", "simple", `{"vim_name": "my vim", "master_node": {"hosts": [{}]}}`, "vim_name"},
		"NoScript":   {"a script makes the cluster", "bare", `{"trust_on_first_use": true, "master_node": {"hosts": [{"address": "10.0.0.1", "username": "u", "password": "s3cret"}]}}`, "script_path: is missing"},
		"OtherFile":  {"it is in the package", "bare", `{"script_path": "/etc/passwd", "master_node": {"hosts": [{"address": "10.0.0.1", "username": "u", "password": "s3cret"}]}}`, `"/etc/passwd" is not in the VNF package`},
		"Both":       {"machines become the hosts", "simple", `{"machines": {}, "master_node": {"hosts": [{"address": "10.0.0.1"}]}}`, "machines: contradicts"},
		"NoImage":    {"a machine has an image", "simple", `{"machines": {"cloud_region_id": "cloud", "flavor": "m", "networks": ["n"]}, "master_node": {"username": "u", "password": "s3cret"}}`, "machines.image"},
		"NoMachine":  {"a machine has a login", "simple", `{"machines": {"cloud_region_id": "cloud", "image": "i", "flavor": "m", "networks": ["n"]}, "master_node": {"username": "u"}}`, "master_node: needs a password"},
		"RemoveFile": {"so is the one that removes it", "simple", `{"remove_script_path": "none.sh", "master_node": {"hosts": [{"address": "10.0.0.1", "username": "u", "password": "s3cret"}]}}`, "remove_script_path"},
	}
	for name, tc := range cases {
		_, _, err := (&world{}).installer(t).Check(t.Context(), request(t, tc.flavor, tc.parameter))
		if nf.KindOf(err) != nf.Invalid || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %s: %v", name, tc.reason, err)
		}
	}
}

// TestOperations: occurrences other than instantiations change the site, or remove it.
func TestOperations(t *testing.T) {
	t.Parallel()
	opts := nf.Options{Key: nf.RequestKey{Client: "sol003", Key: "attempt-2"}}
	w := &world{
		site:  &nf.Site{ID: "vnf-1", Region: "edge", Registered: true, Last: "op-1", Hosts: []nf.SiteHost{{Name: "master1", Role: nf.ControlPlane}, {Name: "worker1", Role: nf.Worker}}},
		op:    nf.Operation{ID: "op-1", Verb: nf.SiteBuild, Subject: nf.Subject{Kind: nf.SiteSubject, ID: "vnf-1"}, Request: nf.RequestKey{Client: "sol003\x00site vnf-1", Key: "attempt-1"}},
		users: []nf.Subject{{Kind: nf.InstanceSubject, ID: "vnf-2"}, {Kind: "network", ID: "oam"}},
	}
	i, ctx := w.installer(t), t.Context()
	again, removal := nf.SiteChangeRequest{Key: opts.Key}, nf.SiteRemoveRequest{Key: opts.Key}
	cascading := removal
	cascading.Instances = []string{"vnf-2"}
	for name, tc := range map[string]struct {
		call func() (nf.Operation, error)
		want any
	}{
		"Heal":      {func() (nf.Operation, error) { return i.Act(ctx, "vnf-1", nf.ActRequest{Verb: nf.Heal, Options: opts}) }, again},
		"Rollback":  {func() (nf.Operation, error) { return i.Rollback(ctx, "vnf-1", nf.RollbackRequest{Options: opts}) }, again},
		"Retry":     {func() (nf.Operation, error) { return i.Retry(ctx, "op-1", opts) }, again},
		"Undo":      {func() (nf.Operation, error) { return i.Undo(ctx, "op-1", opts) }, removal},
		"Terminate": {func() (nf.Operation, error) { return i.Terminate(ctx, "vnf-1", nf.TerminateRequest{Options: opts}) }, removal},
		"Cascade": {func() (nf.Operation, error) {
			return i.Terminate(ctx, "vnf-1", nf.TerminateRequest{Cascade: true, Options: opts})
		}, cascading},
	} {
		w.requests = nil
		if _, err := tc.call(); err != nil || cmp.Diff([]any{tc.want}, w.requests) != "" {
			t.Errorf("%s makes %+v: %v", name, w.requests, err)
		}
	}
	w.op.Verb, w.op.Site.Instances, w.requests = nf.SiteRemove, []string{"vnf-2"}, nil
	if _, err := i.Retry(ctx, "op-1", opts); err != nil || cmp.Diff([]any{cascading}, w.requests) != "" {
		t.Errorf("the retry of a removal makes %+v: %v", w.requests, err)
	}
	for _, verb := range []nf.Verb{nf.Scale, nf.Upgrade} {
		_, err := i.Act(ctx, "vnf-1", nf.ActRequest{Verb: verb})
		if _, upgrade := i.Upgrade(ctx, "vnf-1", nf.UpgradeRequest{}); nf.KindOf(err) != nf.Unsupported || nf.KindOf(upgrade) != nf.Unsupported {
			t.Errorf("%s: %v, %v", verb, err, upgrade)
		}
	}
	op, err := i.Operation(ctx, "op-1")
	if err != nil || !op.Request.Same(nf.RequestKey{Client: "sol003", Key: "attempt-1"}) {
		t.Errorf("the operation has the key %+v: %v", op.Request, err)
	}
	if op, err := i.Wait(ctx, "op-1"); err != nil || op.State != nf.Succeeded {
		t.Errorf("the operation ends %s: %v", op.State, err)
	}
	in, err := i.Instance(ctx, "vnf-1")
	if err != nil || in.LastOperation != "op-1" || in.Region != "edge" {
		t.Errorf("the instance is %+v: %v", in, err)
	}
	pods, err := i.Pods(ctx, "vnf-1")
	if err != nil || len(pods) != 2 || pods[0].Workload.Name != "masterNode" || pods[1].Name != "worker1" || pods[1].Workload.Name != "workerNode" {
		t.Errorf("the components are %+v: %v", pods, err)
	}
	w.site = nil
	if _, err := i.Instance(ctx, "vnf-1"); nf.KindOf(err) != nf.NotFound {
		t.Errorf("without a site there is no instance: %v", err)
	}
}

// FuzzParameters: a parameter is refused, or describes a site that is valid.
func FuzzParameters(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte(onMachines))
	f.Add([]byte(`{"master_node": {"hosts": [{"address": "::1", "port": -1}]}, "worker_node": 1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			return
		}
		w := &world{}
		i, req := w.installer(t), request(t, "simple", string(text))
		region, _, err := i.Check(t.Context(), req)
		if err != nil {
			if kind := nf.KindOf(err); kind != nf.Invalid {
				t.Errorf("%s: %v", text, err)
			}
			return
		}
		if _, err := i.Instantiate(t.Context(), req); err != nil || region == "" {
			t.Errorf("%s passes the check, and is refused: %v", text, err)
		}
	})
}
