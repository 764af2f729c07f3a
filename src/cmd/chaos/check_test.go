package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sound returns a world in which all is as it must be: c0001 was created and
// upgraded, c0002 failed and was undone, c0003 was terminated.
func sound() snapshot {
	first := content{Package: "full", Generation: 1, Replicas: 1, Image: goodImage}
	second := content{Package: "lean", Generation: 2, Replicas: 2, Image: goodImage}
	w := snapshot{
		prefix: "chaos-x",
		requests: []request{
			{Key: "k1", Workload: "c0001", Verb: create, End: succeeds, Asked: first, Operation: "op1", Instance: "i1"},
			{Key: "k2", Workload: "c0001", Verb: upgrade, End: succeeds, Asked: second, Operation: "op2", Instance: "i1", Also: []string{"op2"}},
			{Key: "k3", Workload: "c0002", Verb: create, End: fails, Asked: first, Operation: "op3", Instance: "i2"},
			{Key: "k4", Workload: "c0003", Verb: create, End: succeeds, Asked: first, Operation: "op4", Instance: "i3"},
			{Key: "k5", Workload: "c0003", Verb: terminate, End: succeeds, Operation: "op5", Instance: "i3"},
			{Key: "k6", Workload: "c0003", Verb: rollback, End: succeeds, Status: 404},
		},
		operations: []operation{
			{ID: "op1", Instance: "i1", Verb: "instantiate", State: "succeeded", Revision: 1, OnFailure: "undo"},
			{ID: "op2", Instance: "i1", Verb: "upgrade", State: "succeeded", Revision: 2, OnFailure: "undo"},
			{ID: "op3", Instance: "i2", Verb: "instantiate", State: "failed", Revision: 1, OnFailure: "undo",
				Failure: &failure{Kind: "failed", Step: "wait", Message: "no image"}},
			{ID: "op4", Instance: "i3", Verb: "instantiate", State: "succeeded", Revision: 1, OnFailure: "undo"},
			{ID: "op5", Instance: "i3", Verb: "terminate", State: "succeeded", OnFailure: "keep"},
		},
		instances: []instance{{
			summary:    summary{ID: "i1", Region: "east", Namespace: "chaos-x-c0001", Package: "lean", Name: "c0001", State: "ready", Revision: 2, Operation: "op2"},
			Parameters: map[string]any{"generation": 2.0, "replicas": 2.0, "image": goodImage},
		}},
		revisions:  map[string][]revision{"i1": {{Number: 1}, {Number: 2, InForce: true}}},
		namespaces: []string{"chaos-x-c0001"},
		views:      []string{"same", "same", "same"},
	}
	w.have("ConfigMap", "c0001-settings", "Deployment", "c0001-app", "Service", "c0001-app")
	w.objects[0].Data = map[string]string{"generation": "2", "replicas": "2", "package": "lean"}
	w.objects[1].Spec.Replicas = 2
	w.objects[1].Spec.Template.Spec.Containers = append(w.objects[1].Spec.Template.Spec.Containers, struct {
		Image string `json:"image"`
	}{goodImage})
	return w
}

// have adds objects of the first instance, to the cluster and to its inventory.
func (w *snapshot) have(kindsAndNames ...string) {
	for pair := range slices.Chunk(kindsAndNames, 2) {
		w.objects = append(w.objects, live("i1", "chaos-x-c0001", pair[0], pair[1]))
		in := &w.instances[0]
		in.Objects = append(in.Objects, struct {
			Kind      string `json:"kind"`
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
			Status    string `json:"status"`
		}{pair[0], "chaos-x-c0001", pair[1], "Current"})
	}
}

// link attaches the first instance to a network with users.
func (w *snapshot) link(users ...string) {
	n := shared{Name: "chaos-x-0", Region: "east", State: "active"}
	for _, id := range users {
		n.Users = append(n.Users, struct {
			Kind string `json:"kind"`
			ID   string `json:"id"`
		}{"vnf_instance", id})
	}
	w.networks, w.links = []shared{n}, []string{n.Name}
	w.instances[0].Networks = append(w.instances[0].Networks, struct {
		Network string `json:"network"`
	}{n.Name})
	w.objects[1].Spec.Template.Metadata.Annotations = map[string]string{"k8s.v1.cni.cncf.io/networks": `[{"name":"chaos-x-0"}]`}
}

// store has the first instance use a volume with users.
func (w *snapshot) store(users ...string) {
	v := shared{Name: "chaos-x-c0001", Region: "east", State: "active"}
	for _, id := range users {
		v.Users = append(v.Users, struct {
			Kind string `json:"kind"`
			ID   string `json:"id"`
		}{"", id})
	}
	w.volumes, w.disks, w.created = []shared{v}, []string{diskOf(v.Name)}, map[string]bool{v.id(): false}
	w.instances[0].Volumes = append(w.instances[0].Volumes, struct {
		Volume string `json:"volume"`
		Claim  string `json:"claim"`
	}{v.Name, "c0001-data"})
	w.have("PersistentVolumeClaim", "c0001-data")
}

// become has the first instance create a cluster that becomes a region.
func (w *snapshot) become(region string) {
	w.instances[0].Clusters = append(w.instances[0].Clusters, struct {
		Region string `json:"cloud_region_id"`
	}{region})
}

// list lets A&AI have all objects and networks.
func (w *snapshot) list() {
	for _, o := range w.objects {
		w.listed = append(w.listed, listed{Kind: o.Kind, Namespace: o.Metadata.Namespace, Name: o.Metadata.Name, Labels: []string{"a=b", ownerLabel + "=" + o.owner()}})
	}
	for _, n := range w.networks {
		w.listedNetworks = append(w.listedNetworks, n.id())
	}
}

func live(owner, namespace, kind, name string) object {
	o := object{Kind: kind}
	o.Metadata.Namespace, o.Metadata.Name, o.Metadata.Labels = namespace, name, map[string]string{ownerLabel: owner}
	return o
}

func TestCheck(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		spoil  func(w *snapshot)
		want   string // in a finding; empty: there is none
	}{
		"Sound": {"nothing is found where nothing is wrong", func(*snapshot) {}, ""},
		"Remnant": {"what is left of a request that was never accepted is nobody's operation", func(w *snapshot) {
			w.operations = append(w.operations, operation{ID: "op9", Instance: "i9", Verb: "instantiate", State: "failed",
				Failure: &failure{Kind: "internal", Reason: "not-accepted", Step: "begin", Message: "it was never accepted"}})
		}, ""},
		"Twice": {"a repetition is the same operation", func(w *snapshot) { w.requests[1].Also = []string{"op7"} }, "once: request k2"},
		"Shared": {"two requests have two operations", func(w *snapshot) { w.requests[1].Operation = "op1" },
			"once: requests k1 and k2 were answered with the same operation"},
		"SameInstance": {"two creates have two instances", func(w *snapshot) { w.requests[2].Instance = "i1" }, "once: requests k1 and k3 created the same instance"},
		"Unasked": {"nobody makes operations up", func(w *snapshot) {
			w.operations = append(w.operations, operation{ID: "op9", Instance: "i9", Verb: "terminate", State: "succeeded"})
		}, "once: operation op9"},
		"Forgotten": {"what was accepted is not forgotten", func(w *snapshot) { w.operations = w.operations[:4] }, "word: operation op5 of request k5 was accepted and no longer exists"},
		"Disowned": {"what was accepted is not disowned", func(w *snapshot) {
			w.operations[2].Failure.Reason = "not-accepted"
		}, "word: operation op3 of request k3 was accepted, and then"},
		"Stuck":  {"every operation ends", func(w *snapshot) { w.operations[1].State = "running" }, "stuck: operation op2"},
		"Claims": {"the list of work is empty in the end", func(w *snapshot) { w.claims = []string{"claims/op2"} }, "stuck: the list of work still has claims/op2"},
		"Silent": {"a failure says in which step", func(w *snapshot) { w.operations[2].Failure.Step = "" }, "record: operation op3"},
		"Defect": {"a defect is no reason to fail", func(w *snapshot) { w.operations[2].Failure.Kind = "internal" }, "record: operation op3 is failed by a defect"},
		"Cheerful": {"what succeeded has no failure", func(w *snapshot) {
			w.operations[1].Failure = &failure{Kind: "failed", Step: "wait", Message: "m"}
		}, "record: operation op2 succeeded and has a failure"},
		"Locked": {"no instance stays locked", func(w *snapshot) { w.instances[0].Running = "op2" }, "stuck: instance i1 is locked"},
		"Orphan": {"every object has an instance", func(w *snapshot) {
			w.objects = append(w.objects, live("i3", "chaos-x-c0003", "Secret", "c0003-secret"))
		}, "orphan: Secret chaos-x-c0003/c0003-secret"},
		"OrphanPod": {"what controllers make goes with its instance, too", func(w *snapshot) {
			pod := live("i3", "chaos-x-c0003", "Pod", "c0003-app-1")
			pod.Metadata.Owners = make([]struct{}, 1)
			w.objects = append(w.objects, pod)
		}, "orphan: Pod"},
		"Unknown": {"every object is in its instance's inventory", func(w *snapshot) {
			w.objects = append(w.objects, live("i1", "chaos-x-c0001", "Secret", "c0001-secret"))
		}, "orphan: Secret chaos-x-c0001/c0001-secret belongs to instance i1, and is not in its inventory"},
		"Unpruned": {"an upgrade prunes", func(w *snapshot) { w.have("Secret", "c0001-secret") }, `word: instance i1 must have the objects`},
		"Missing":  {"what a ready instance has is there", func(w *snapshot) { w.objects = w.objects[:2] }, "and the cluster has"},
		"Stray":    {"objects stay in their namespace", func(w *snapshot) { w.objects[0].Metadata.Namespace = "chaos-x-c0003" }, "orphan: ConfigMap"},
		"Stale":    {"the cluster has the last change", func(w *snapshot) { w.objects[0].Data["generation"] = "1" }, `generation is "1", want "2"`},
		"Scaled":   {"a Deployment is as asked", func(w *snapshot) { w.objects[1].Spec.Replicas = 1 }, "it has 1 replicas"},
		"Record": {"the record has the last change", func(w *snapshot) { w.instances[0].Parameters["generation"] = 1.0 },
			"word: instance i1 was asked to be"},
		"Reverted": {"a change that succeeded is in force", func(w *snapshot) { w.instances[0].Revision = 1 }, "word: instance i1 must be ready at revision 2"},
		"Revenant": {"what was undone is gone", func(w *snapshot) {
			w.instances = append(w.instances, instance{summary: summary{ID: "i2", Name: "c0002", Namespace: "chaos-x-c0002", State: "failed"}})
		}, "word: instance i2 must be gone"},
		"Vanished": {"what is ready is there", func(w *snapshot) { w.instances = nil }, "word: instance i1 must be ready, and is there: false"},
		"Lucky": {"what cannot work does not succeed", func(w *snapshot) { w.operations[2].State, w.operations[2].Failure = "succeeded", nil },
			"word: operation op3 (create of i2"},
		"Unlucky": {"what can work succeeds", func(w *snapshot) {
			w.operations[1].State, w.operations[1].Failure = "failed", &failure{Kind: "timeout", Step: "wait", Message: "m"}
		}, "word: operation op2 (upgrade of i1"},
		"Uncancelled": {"a cancelled operation does not succeed", func(w *snapshot) { w.requests[1].Cancelled = true }, "word: operation op2"},
		"Namespace":   {"a namespace goes with its last instance", func(w *snapshot) { w.namespaces = append(w.namespaces, "chaos-x-c0003") }, "orphan: namespace chaos-x-c0003"},
		"Crowded": {"who did not ask for company has none", func(w *snapshot) {
			w.instances = append(w.instances, instance{summary: summary{ID: "i4", Name: "c0004", Namespace: "chaos-x-c0001", State: "ready"}})
		}, "once: namespace chaos-x-c0001 has the instances"},
		"Namesake": {"a name is one instance's", func(w *snapshot) {
			w.instances = append(w.instances, instance{summary: summary{ID: "i4", Name: "c0001", Namespace: "chaos-x-shared-east", State: "ready"}})
		}, "have the same name c0001"},
		"Linked":      {"a network has the instances that are attached as users", func(w *snapshot) { w.link("i1") }, ""},
		"Disused":     {"a network goes with its last user", func(w *snapshot) { w.link(); w.instances[0].Networks = nil }, "orphan: network east.chaos-x-0 is left"},
		"Uncounted":   {"every attached instance is a user", func(w *snapshot) { w.link("i1"); w.networks[0].Users[0].ID = "i3" }, "word: network east.chaos-x-0 has the users [i3]"},
		"Unlinked":    {"a network that an instance is attached to exists", func(w *snapshot) { w.link("i1"); w.networks, w.links = nil, nil }, "network east.chaos-x-0 does not exist, and must have the users [i1]"},
		"Linkless":    {"a network has its object", func(w *snapshot) { w.link("i1"); w.links = nil }, "word: network east.chaos-x-0 has no object"},
		"OrphanLink":  {"an object of a network has a network", func(w *snapshot) { w.links = []string{"chaos-x-1"} }, "orphan: the object chaos-x-1 is left"},
		"LinkFailed":  {"no network stays failed", func(w *snapshot) { w.link("i1"); w.networks[0].State = "failed" }, "stuck: network east.chaos-x-0 is failed"},
		"Detached":    {"the pods are attached", func(w *snapshot) { w.link("i1"); w.objects[1].Spec.Template.Metadata.Annotations = nil }, "it is not attached to chaos-x-0"},
		"Stored":      {"a volume has its instance and the client as users", func(w *snapshot) { w.store(holder, "i1") }, ""},
		"VolumeLost":  {"a volume that is not released exists", func(w *snapshot) { w.store(holder, "i1"); w.volumes, w.disks = nil, nil }, "word: volume east.chaos-x-c0001 does not exist"},
		"VolumeFreed": {"an instance holds its volume", func(w *snapshot) { w.store(holder) }, "word: volume east.chaos-x-c0001 has the users [chaos], and must have [chaos i1]"},
		"VolumeLeft": {"a released volume without an instance has no user", func(w *snapshot) {
			w.store(holder)
			w.instances[0].Volumes = nil
			w.created["east.chaos-x-c0001"] = true
		}, "word: volume east.chaos-x-c0001 has the users [chaos], and must have []"},
		"DiskLost":   {"a volume has its object", func(w *snapshot) { w.store(holder, "i1"); w.disks = nil }, "word: volume east.chaos-x-c0001 has no object"},
		"DiskLeft":   {"an object of a volume has a volume", func(w *snapshot) { w.disks = []string{"k8splugin-chaos-x-c0001"} }, "orphan: the object k8splugin-chaos-x-c0001 is left"},
		"Claimed":    {"an instance has a claim for its volume", func(w *snapshot) { w.store(holder, "i1"); w.objects = w.objects[:3] }, "word: instance i1 must have the objects"},
		"Region":     {"the cluster of an instance is a region", func(w *snapshot) { w.become("chaos-x-c0001"); w.regions = []region{{"chaos-x-c0001", "cluster"}} }, ""},
		"RegionLost": {"the cluster of a ready instance is always one", func(w *snapshot) { w.become("chaos-x-c0001") }, "word: the cluster of instance i1 is no region chaos-x-c0001"},
		"RegionLeft": {"a region goes with the instance of its cluster", func(w *snapshot) { w.regions = []region{{"chaos-x-c0002", "cluster"}} }, "orphan: region chaos-x-c0002 is left"},
		"VolumeMade": {"the operations of volumes are not those of instances", func(w *snapshot) {
			w.operations = append(w.operations, operation{ID: "op8", Volume: "east.chaos-x-c0001", Verb: "create", State: "succeeded"})
		}, ""},
		"LinkMade": {"instances begin the operations of networks", func(w *snapshot) {
			w.operations = append(w.operations, operation{ID: "op8", Network: "east.chaos-x-0", Verb: "create", State: "succeeded"})
		}, ""},
		"Views": {"all servers tell the same", func(w *snapshot) { w.views[2] = "some" }, "views: server 3"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sound()
			tc.spoil(&w)
			w.list()
			var found []string
			for _, f := range w.check() {
				found = append(found, f.String())
			}
			text := strings.Join(found, "\n")
			if tc.want == "" && text != "" || !strings.Contains(text, tc.want) {
				t.Errorf("%s: found %q, want %q", tc.reason, found, tc.want)
			}
		})
	}
}

// TestStory follows an instance through changes that failed and were undone.
func TestStory(t *testing.T) {
	t.Parallel()
	ask := func(n int) content { return content{Package: "lean", Generation: n, Replicas: n, Image: goodImage} }
	why := &failure{Kind: "failed", Step: "wait", Message: "m"}
	up := operationRecord{operation{ID: "1", Verb: "instantiate", State: "succeeded", Revision: 1}, request{Verb: create, End: succeeds, Asked: ask(1)}}
	more := operationRecord{operation{ID: "2", Verb: "upgrade", State: "succeeded", Revision: 2}, request{Verb: upgrade, End: succeeds, Asked: ask(2)}}
	cases := map[string]struct {
		reason     string
		operations []operationRecord
		want       outcome
	}{
		"Undone": {"an undone change leaves what was", []operationRecord{up, more,
			{operation{ID: "3", Verb: "upgrade", State: "failed", Revision: 3, OnFailure: "undo", Failure: why}, request{Verb: upgrade, End: fails, Asked: ask(3)}}},
			outcome{ready, 2, map[int]content{1: ask(1), 2: ask(2)}, nil}},
		"Kept": {"a kept one leaves the instance failed, and the revision in force", []operationRecord{up,
			{operation{ID: "2", Verb: "upgrade", State: "cancelled", Revision: 2, OnFailure: "keep", Failure: why}, request{Verb: upgrade, End: drags, Cancelled: true}}},
			outcome{broken, 1, map[int]content{1: ask(1)}, nil}},
		"Back": {"a rollback has what the old revision had", []operationRecord{up, more,
			{operation{ID: "3", Verb: "rollback", State: "succeeded", Revision: 3}, request{Verb: rollback, End: succeeds}}},
			outcome{ready, 3, map[int]content{1: ask(1), 2: ask(2), 3: ask(1)}, nil}},
		"Scaled": {"a number that was set stays while the package has the same", []operationRecord{up,
			{operation{ID: "2", Verb: "scale", State: "succeeded"}, request{Verb: scale, End: succeeds, Asked: content{Replicas: 4}}},
			{operation{ID: "3", Verb: "upgrade", State: "succeeded", Revision: 2}, request{Verb: upgrade, End: succeeds, Asked: ask(1)}}},
			outcome{ready, 2, map[int]content{1: ask(1), 2: ask(1)}, &scaling{replicas: 4, planned: 1}}},
		"Rescaled": {"another number of the package takes precedence", []operationRecord{up,
			{operation{ID: "2", Verb: "scale", State: "succeeded"}, request{Verb: scale, End: succeeds, Asked: content{Replicas: 4}}}, more},
			outcome{ready, 2, map[int]content{1: ask(1), 2: ask(2)}, nil}},
		"ScaledBack": {"a rollback keeps a number that was set", []operationRecord{up, more,
			{operation{ID: "3", Verb: "scale", State: "succeeded"}, request{Verb: scale, End: succeeds, Asked: content{Replicas: 4}}},
			{operation{ID: "4", Verb: "rollback", State: "succeeded", Revision: 3}, request{Verb: rollback, End: succeeds}}},
			outcome{ready, 3, map[int]content{1: ask(1), 2: ask(2), 3: ask(1)}, &scaling{replicas: 4, planned: 1}}},
		"Gone": {"a new instance that is undone is gone", []operationRecord{
			{operation{ID: "1", Verb: "instantiate", State: "failed", OnFailure: "undo", Failure: why}, request{Verb: create, End: fails}}},
			outcome{gone, 0, map[int]content{}, nil}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := &checker{snapshot: snapshot{revisions: map[string][]revision{"i": {{Number: 3, Restores: 1}}}}, byID: map[string]instance{"i": {}}}
			got := outcome{condition: gone, contents: map[int]content{}}
			for _, c := range tc.operations {
				q.expected(c)
				got = q.next("i", got, c)
			}
			if got.condition != tc.want.condition || got.inForce != tc.want.inForce || !equalContents(got.contents, tc.want.contents) || !cmp.Equal(got.scaled, tc.want.scaled, cmp.AllowUnexported(scaling{})) || len(q.findings) > 0 {
				t.Errorf("%s: got %+v and %v, want %+v", tc.reason, got, q.findings, tc.want)
			}
		})
	}
}

func equalContents(a, b map[int]content) bool {
	if len(a) != len(b) {
		return false
	}
	for n, c := range a {
		if b[n] != c {
			return false
		}
	}
	return true
}

// TestInventory compares A&AI with the cluster.
func TestInventory(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		spoil  func(w *snapshot)
		want   string
	}{
		"Equal":    {"A&AI has what the cluster has", func(*snapshot) {}, ""},
		"Lacks":    {"every object of an instance is in A&AI", func(w *snapshot) { w.listed = w.listed[1:] }, "inventory: A&AI does not have ConfigMap chaos-x-c0001/c0001-settings of instance i1"},
		"Left":     {"A&AI has nothing else", func(w *snapshot) { w.objects = w.objects[1:] }, "inventory: A&AI has ConfigMap chaos-x-c0001/c0001-settings of instance i1, and the cluster does not"},
		"Stranger": {"an object of another instance is another one", func(w *snapshot) { w.listed[0].Labels = nil }, "inventory: A&AI has ConfigMap"},
		"Network":  {"networks are there, too", func(w *snapshot) { w.listedNetworks = nil }, "inventory: A&AI has the networks [], and there are [east.chaos-x-0]"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sound()
			w.link("i1")
			w.list()
			tc.spoil(&w)
			q := &checker{snapshot: w}
			q.inventoryIsEqual()
			var found []string
			for _, f := range q.findings {
				found = append(found, f.String())
			}
			if text := strings.Join(found, "\n"); tc.want == "" && text != "" || !strings.Contains(text, tc.want) {
				t.Errorf("%s: found %q, want %q", tc.reason, found, tc.want)
			}
		})
	}
}
