package cli

import "strings"

// The recorded answers. They are the examples of swagger.yaml.
const (
	regionJSON = `{"cloud_region_id":"east","cloud_owner":"acme","type":"kubernetes","origin":"api","description":"The machine room in the east","labels":{"site":"east"},` +
		`"server":"https://10.0.0.1:6443","kubernetes_version":"v1.37.1","apis":["apps/v1","batch/v1","v1"],"probed_at":"2026-11-20T09:00:00Z",` +
		`"vnf_instances":["k3x9vq2m"],"state":{"condition":"available","since":"2026-11-20T09:00:00Z","checked_at":"2026-11-20T09:10:00Z","breaker":"closed"},` +
		`"credential":{"kind":"client-certificate","expires_at":"2027-11-20T09:00:00Z"},"created_at":"2026-11-20T09:00:00Z","updated_at":"2026-11-20T09:00:00Z"}`
	capabilitiesJSON = `{"cloud_region_id":"east","read_at":"2026-11-20T09:10:00Z","age_seconds":12,"kubernetes_version":"v1.37.1",` +
		`"groups":[{"group":"apps","versions":["v1"],"kinds":["DaemonSet","Deployment"]},{"group":"kubevirt.io","software":"KubeVirt","versions":["v1"],"kinds":["VirtualMachine"]}],` +
		`"networks":[{"name":"multus","group":"k8s.cni.cncf.io","version":"v1"}],"cni_plugins":{"macvlan":true,"dhcp":false},` +
		`"nodes":{"total":3,"usable":2,"not_ready":0,"cordoned":1,"tainted":0,"architectures":{"amd64":3},"operating_systems":{"linux":3},"kernels":{"6.1":2,"6.6":1}},` +
		`"features":[{"name":"cpu-cpuid.AVX512F","value":"true","nodes":2}],` +
		`"resources":[{"name":"cpu","nodes":2,"allocatable":"64","free":"58500m","largest_free_node":"30","pending":"0"},` +
		`{"name":"intel.com/sriov","nodes":2,"allocatable":"16","free":"10","largest_free_node":"6","pending":"2"}],` +
		`"devices":[{"driver":"gpu.example.com","total":4,"free":1}],` +
		`"node_devices":[{"node":"worker-1","resource":"intel.com/sriov","total":8,"free":6},` +
		`{"node":"worker-2","driver":"gpu.example.com","total":4,"free":1,"numa":[{"numa_node":0,"total":2,"free":1},{"numa_node":1,"total":2,"free":0}]},{"node":"worker-3","driver":"nic.example.com","total":2,"numa":[{"numa_node":0,"total":2}]}],` +
		`"storage_classes":[{"name":"fast","provisioner":"csi.example.com","default":true,"expansion":true,"binding_mode":"WaitForFirstConsumer","reclaim_policy":"Delete"}],` +
		`"missing":[{"group":"resource.k8s.io","resource":"resourceslices","verb":"list","rule":"{apiGroups: [\"resource.k8s.io\"], resources: [\"resourceslices\"], verbs: [\"list\"]}"}]}`
	grantedJSON = `{"cloud_region_id":"east","cloud_owner":"acme","type":"kubernetes","origin":"api","tenants":{"*":{"namespaces":["shared"]},` +
		`"blue":{"namespaces":["kube-system","logs"],"cluster_kinds":["StorageClass.storage.k8s.io"],"service_account":"tenants/blue"}},` +
		`"server":"https://10.0.0.1:6443","kubernetes_version":"v1.37.1","created_at":"2026-11-20T09:00:00Z","updated_at":"2026-11-20T09:00:00Z"}`
	packageJSON = `{"csar_id":"firewall","project":"default","state":"onboarded","enabled":true,"name":"firewall","version":"1.4","description":"A small firewall","kind":"manifest",` +
		`"digest":"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","size":1482,"media_type":"application/zip",` +
		`"files":["deployment.yaml","metadata.yaml","service.yaml"],"variables":[{"name":"replicas","type":"integer","default":1,"required":false,"sensitive":false},` +
		`{"name":"password","type":"string","required":true,"sensitive":true,"description":"Of the management port"}],"warnings":["notes.txt is named by nothing"],` +
		`"vnf_instances":["k3x9vq2m"],"created_at":"2026-11-20T09:01:00Z","updated_at":"2026-11-20T09:01:00Z"}`
	instanceStart = `{"vnf_id":"k3x9vq2m","cloud_region_id":"east","namespace":"edge","project":"default","vnf_components":{"deployment":["firewall"],"service":["firewall"]},` +
		`"csar_id":"firewall","vnf_instance_name":"fw-1","vnf_instance_description":"The firewall of the edge","parameters":{"replicas":2,"password":"********"},` +
		`"labels":{"tenant":"blue"},"revision":1,"operation_id":"0192f3a5c7d1-a7c1","links":{"self":"/v1/vnf_instances/k3x9vq2m"},` +
		`"created_at":"2026-11-20T09:02:00Z","updated_at":"2026-11-20T09:02:04Z",`
	instanceJSON = instanceStart + `"state":"ready","healthy":true,"health":"healthy","objects":[` +
		`{"api_version":"apps/v1","kind":"Deployment","namespace":"edge","name":"firewall","status":"Current","message":"Deployment is available. Replicas: 2"},` +
		`{"api_version":"v1","kind":"Service","namespace":"edge","name":"firewall","status":"Current","message":"Service is ready"}]}`
	placedJSON = instanceStart + `"state":"ready","healthy":true,"health":"healthy","oof_parameters":[{"site":"a","compute_profiles":[{"workload":"web","profile":"large"}]}],"compute_profiles":[` +
		`{"workload":"Deployment/web","name":"large","profile":{"requests":{"cpu":"2"}}},{"workload":"StatefulSet/db","profile":{"devices":{"nvidia.com/gpu":1}}}]}`
	driftedJSON = instanceStart + `"state":"ready","healthy":true,"health":"healthy","drift":{"mode":"warn"},"drift_state":"drifted","drift_since":"2026-01-02T03:04:05Z","objects":[` +
		`{"api_version":"apps/v1","kind":"Deployment","namespace":"edge","name":"firewall","status":"Current","drift":{"fields":[` +
		`{"path":"spec.replicas","applied":2,"found":4,"manager":"kubectl","subresource":"scale","changed_at":"2026-01-02T03:04:05Z"},` +
		`{"path":"spec.template.spec.containers[name=fw].env[name=A]","applied":{"name":"A","value":"a very long value that no table shows as a whole"}},` +
		`{"path":"metadata.labels.tier","taken":true,"manager":"kubectl-edit","changed_at":"2026-01-02T03:04:05Z"}]}},` +
		`{"api_version":"v1","kind":"Service","namespace":"edge","name":"db","status":"Current","drift":{"message":"it belongs to VNF instance other"}},` +
		`{"api_version":"v1","kind":"Service","namespace":"edge","name":"firewall","status":"NotFound","drift":{"missing":true}}]}`
	brokenJSON = instanceStart + `"state":"failed","message":"a pod cannot start","healthy":false,"health":"unhealthy","health_message":"Deployment edge/firewall has failed","objects":[` +
		`{"api_version":"v1","kind":"ConfigMap","namespace":"edge","name":"settings","status":"Current"},` +
		`{"api_version":"apps/v1","kind":"Deployment","namespace":"edge","name":"db","status":"InProgress","message":"0 of 1 replicas are ready"},` +
		`{"api_version":"apps/v1","kind":"Deployment","namespace":"edge","name":"firewall","status":"Failed","message":"cannot pull the image\u001b[2J"},` +
		`{"api_version":"v1","kind":"Service","namespace":"edge","name":"firewall","status":"NotFound"},` +
		`{"api_version":"v1","kind":"Service","namespace":"edge","name":"db","status":"Unknown","message":"the region cannot be reached"}]}`
	acceptedJSON = instanceStart + `"state":"instantiating","running_operation_id":"0192f3a5c7d1-a7c1","warnings":["variable $x stays as it is"]}`
	previewJSON  = `{"changes":[{"api_version":"apps/v1","kind":"Deployment","namespace":"edge","name":"firewall","action":"configured",` +
		`"fields":[{"path":"spec.replicas","old":1,"new":3},{"path":"metadata.labels.tier","new":"gold"},{"path":"spec.paused","old":true},{"path":"data.masked","old":"********","new":"********"},` +
		`{"path":"spec.template.spec.containers[0].args","old":["a","b"],"new":["a","c"]}]},` +
		`{"api_version":"v1","kind":"ConfigMap","namespace":"edge","name":"settings","action":"configured","fields":[{"path":"data.rules",` +
		`"old":"one\ntwo\nthree\nfour\nfive\nsix\nseven\n","new":"one\ntwo\nthree\nfour\nFIVE\nsix\nseven\n"}]},` +
		`{"api_version":"v1","kind":"Service","namespace":"edge","name":"extra","action":"created"},` +
		`{"api_version":"v1","kind":"Service","namespace":"edge","name":"firewall","action":"unchanged"},` +
		`{"api_version":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","name":"old","action":"deleted"}],"warnings":["variable $x stays as it is"]}`
	adoptedJSON = `{"changes":[{"api_version":"v1","kind":"ConfigMap","namespace":"edge","name":"settings","action":"adopted","message":"was left in place by VNF instance k3x9vq2m"},` +
		`{"api_version":"v1","kind":"Service","namespace":"edge","name":"firewall","action":"created"}],"warnings":[]}`
	opStart = `{"operation_id":"0192f3a5c7d1-a7c1","subject":{"kind":"vnf_instance","id":"k3x9vq2m"},"vnf_id":"k3x9vq2m","cloud_region_id":"east","namespace":"edge","project":"default","verb":"instantiate",` +
		`"revision":1,"on_failure":"undo","accepted_at":"2026-11-20T09:02:00Z","deadline":"2026-11-20T09:17:00Z",`
	stepsStart = `"started_at":"2026-11-20T09:02:00Z","steps":[{"name":"namespace","started_at":"2026-11-20T09:02:00Z","finished_at":"2026-11-20T09:02:00Z"}`
	op1        = opStart + `"state":"queued","steps":[]}`
	op2        = opStart + `"state":"running",` + stepsStart + `,{"name":"apply deployment","started_at":"2026-11-20T09:02:01Z","objects":2}]}`
	op3        = opStart + `"state":"running","applied_at":"2026-11-20T09:02:02Z",` + stepsStart + `,{"name":"apply deployment","started_at":"2026-11-20T09:02:01Z",` +
		`"objects":2,"current":1,"message":"Deployment edge/firewall: 0 of 2 replicas are ready"}]}`
	stepsEnd    = stepsStart + `,{"name":"apply deployment","started_at":"2026-11-20T09:02:01Z","finished_at":"2026-11-20T09:02:04Z","objects":2,"current":2}]`
	opSucceeded = opStart + `"state":"succeeded","applied_at":"2026-11-20T09:02:02Z","finished_at":"2026-11-20T09:02:04Z","warnings":["variable $x stays as it is"],` + stepsEnd +
		`,"changes":[{"api_version":"apps/v1","kind":"Deployment","namespace":"edge","name":"firewall","action":"created"},` +
		`{"api_version":"v1","kind":"Service","namespace":"edge","name":"firewall","action":"created"}]}`
	opFailed = opStart + `"state":"failed","finished_at":"2026-11-20T09:02:04Z",` + stepsStart +
		`,{"name":"apply deployment","started_at":"2026-11-20T09:02:01Z","finished_at":"2026-11-20T09:02:04Z","objects":2,"current":2,"failed":true,"in_failure":true,` +
		`"message":"it took too long: web.yaml:1: Deployment edge/firewall: is not ready"}],"failure":{"kind":"timeout","step":"apply deployment","message":"it took too long: web.yaml:1: Deployment edge/firewall: is not ready",` +
		`"errors":[{"object":{"api_version":"apps/v1","kind":"Deployment","namespace":"edge","name":"firewall"},"field":"Deployment edge/firewall",` +
		`"file":"web.yaml","line":1,"message":"is not ready"}]}}`

	revisionsJSON = `{"revisions":[{"number":1,"active":false,"state":"superseded","csar_id":"firewall","package_digest":"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",` +
		`"parameters":{"replicas":1,"password":"********"},"labels":{"tenant":"blue"},"operation_id":"op-1","created_at":"2026-11-20T09:02:00Z"},` +
		`{"number":2,"active":true,"state":"active","restored_revision":1,"csar_id":"firewall","package_digest":"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",` +
		`"vnf_instance_description":"For the holidays","operation_id":"op-2","created_at":"2026-11-20T09:20:00Z"}]}`
	notesJSON = `{"number":1,"active":true,"state":"active","csar_id":"firewall","package_digest":"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",` +
		`"notes":"Log in:\n  kubectl exec fw\u001b[2J","operation_id":"op-1","created_at":"2026-11-20T09:02:00Z"}`
	noNotesJSON = `{"number":2,"active":true,"state":"active","csar_id":"firewall","package_digest":"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",` +
		`"operation_id":"op-2","created_at":"2026-11-20T09:20:00Z"}`
	opWaiting = opStart + `"state":"running","undoing":true,"retry_of":"op-0","on_unreachable":"wait","attempts":2,"undo_deadline":"2026-11-20T09:17:00Z",` +
		`"waiting":{"since":"2026-11-20T09:02:10Z","reason":"tcp","message":"cloud region east is unreachable (tcp: connection refused)","next_attempt_at":"2026-11-20T09:30:15Z"},` + stepsStart + `]}`
	expiringJSON = `{"cloud_region_id":"east","cloud_owner":"acme","type":"kubernetes","origin":"api","server":"https://10.0.0.1:6443","kubernetes_version":"v1.37.1","apis":["v1"],"vnf_instances":[],` +
		`"state":{"condition":"expiring","since":"2026-11-20T09:00:00Z","checked_at":"2026-11-20T09:29:00Z","breaker":"closed"},` +
		`"credential":{"kind":"client-certificate","expires_at":"2026-11-30T09:30:00Z"},"created_at":"2026-11-20T09:00:00Z","updated_at":"2026-11-20T09:00:00Z"}`
	unrenewedJSON = `{"cloud_region_id":"east","cloud_owner":"acme","type":"kubernetes","origin":"api","server":"https://10.0.0.1:6443","kubernetes_version":"v1.37.1","apis":["v1"],"vnf_instances":[],` +
		`"state":{"condition":"expiring","message":"its service account's token expires on 2026-11-20T10:00:00Z and cannot be renewed: the region has no service account edge/k8splugin",` +
		`"since":"2026-11-20T09:20:00Z","checked_at":"2026-11-20T09:29:00Z","breaker":"closed"},` +
		`"credential":{"kind":"service-account","expires_at":"2026-11-20T10:00:00Z","rotates":true,"renewal_failing_since":"2026-11-20T09:20:00Z"},"created_at":"2026-11-20T09:00:00Z","updated_at":"2026-11-20T09:00:00Z"}`
	rotatingJSON = `{"cloud_region_id":"east","cloud_owner":"acme","type":"kubernetes","origin":"api","server":"https://10.0.0.1:6443","kubernetes_version":"v1.37.1","apis":["v1"],"vnf_instances":[],` +
		`"state":{"condition":"available","since":"2026-11-20T09:00:00Z","checked_at":"2026-11-20T09:29:00Z","breaker":"closed"},` +
		`"credential":{"kind":"client-certificate","expires_at":"2026-11-20T20:00:00Z","rotates":true},"created_at":"2026-11-20T09:00:00Z","updated_at":"2026-11-20T09:00:00Z"}`
	unapprovedJSON = `{"cloud_region_id":"east","cloud_owner":"acme","type":"kubernetes","origin":"api","server":"https://10.0.0.1:6443","kubernetes_version":"v1.37.1","apis":["v1"],"vnf_instances":[],` +
		`"state":{"condition":"expiring","message":"its client certificate expires on 2026-11-20T20:00:00Z and cannot be renewed: CertificateSigningRequest k8splugin-a2 waits for approval (kubectl certificate approve k8splugin-a2)",` +
		`"since":"2026-11-20T09:20:00Z","checked_at":"2026-11-20T09:29:00Z","breaker":"closed"},` +
		`"credential":{"kind":"client-certificate","expires_at":"2026-11-20T20:00:00Z","rotates":true,"certificate_request":"k8splugin-a2","renewal_failing_since":"2026-11-20T09:20:00Z"},` +
		`"created_at":"2026-11-20T09:00:00Z","updated_at":"2026-11-20T09:00:00Z"}`
	awayJSON = `{"cloud_region_id":"east","cloud_owner":"acme","type":"kubernetes","origin":"api","server":"https://10.0.0.1:6443","kubernetes_version":"v1.37.1","apis":["v1"],"vnf_instances":[],` +
		`"state":{"condition":"unreachable","reason":"tcp","message":"it cannot be connected to: no route to host","since":"2026-11-20T09:10:00Z","checked_at":"2026-11-20T09:29:00Z",` +
		`"breaker":"open","retry_at":"2026-11-20T09:30:20Z"},` +
		`"credential":{"kind":"token","expires_at":"2026-11-20T08:30:00Z"},"created_at":"2026-11-20T09:00:00Z","updated_at":"2026-11-20T09:00:00Z"}`
	auditJSON = `{"entries":[{"id":"a1","phase":"outcome","time":"2026-11-20T09:02:01Z","request_id":"Q1","identity_kind":"user","identity":"ann","remote_address":"10.0.0.9",` +
		`"method":"POST","route":"/v1/vnf_instances","permission":"instance:instantiate","project":"blue","region":"east","subjects":["k3x9vq2m"],"status":202,` +
		`"outcome":"accepted","operation_id":"0192f3a5c7d1-a7c1"},` +
		`{"id":"a1","phase":"intent","time":"2026-11-20T09:02:00Z","request_id":"Q1","identity_kind":"user","identity":"ann","method":"POST","route":"/v1/vnf_instances"},` +
		`{"id":"a0","phase":"refusal","time":"2026-11-20T09:00:00Z","identity_kind":"anonymous","method":"GET","route":"/v1/keys","status":401,"outcome":"unauthenticated","suppressed":4}],"next":"2026-11-20T09/00:00.0-a0-refusal"}`
	keysJSON = `{"primary":"k2","records":{"k1":3,"k2":1204}}`
	braked   = `{"title":"Conflict","status":409,"detail":"cannot rollback VNF instance k3x9vq2m: PersistentVolumeClaim edge/data: would be deleted, and what it holds cannot be made again",` +
		`"kind":"conflict","reason":"confirmation-required","confirm":"sha256:6b86b2","errors":[{"field":"PersistentVolumeClaim edge/data","message":"would be deleted, and what it holds cannot be made again"}]}`

	rollbackIt = "POST /v1/vnf_instances/k3x9vq2m/rollback"
	scaleIt    = "POST /v1/vnf_instances/k3x9vq2m/scale"
	healIt     = "POST /v1/vnf_instances/k3x9vq2m/heal"
	startIt    = "POST /v1/vnf_instances/k3x9vq2m/start"
	stopIt     = "POST /v1/vnf_instances/k3x9vq2m/stop"
	migrateIt  = "POST /v1/vnf_instances/k3x9vq2m/migrate"
	restartIt  = "POST /v1/vnf_instances/k3x9vq2m/restart"
	eventsOf   = "GET /v1/operations/0192f3a5c7d1-a7c1/events"
	getIt      = "GET /v1/vnf_instances/k3x9vq2m"
	patchIt    = "PATCH /v1/vnf_instances/k3x9vq2m"
	deleteIt   = "DELETE /v1/vnf_instances/k3x9vq2m"
	create     = "POST /v1/vnf_instances"
	operation1 = "/v1/operations/0192f3a5c7d1-a7c1"
)

// asksBack is the answer to a change that must be confirmed, and then it is accepted.
func asksBack() reply {
	a, yes := problemReply(409, braked), accepted()
	a.then = &yes
	return a
}

// accepted is the answer to a change with Prefer: respond-async.
func accepted() reply { return reply{status: 202, location: operation1, body: acceptedJSON} }

// withPods adds pods to an instance: one of the Deployment firewall that is ready and has
// two interfaces, and one that waits.
func withPods(instance string) string {
	const workload = `"workload":{"api_version":"apps/v1","kind":"Deployment","namespace":"edge","name":"firewall"}`
	return strings.TrimSuffix(instance, "}") + `,"pods":[
		{"api_version":"v1","kind":"Pod","namespace":"edge","name":"firewall-1","status":"Current","node":"n1",` + workload + `,"interfaces":[
			{"name":"eth0","network":"cbr0","ips":["10.244.0.5"]},{"name":"net1","network":"oam","ips":["10.1.0.9"],"mac":"02:00:00:00:00:09"}]},
		{"api_version":"v1","kind":"Pod","namespace":"edge","name":"firewall-2","status":"InProgress","message":"Pending: container firewall is waiting: ImagePullBackOff",` + workload + `}]}`
}
