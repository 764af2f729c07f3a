package readiness

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// object returns an object from YAML.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return out
}

// Verdicts, in brief.
const (
	current    = "Current"
	waiting    = "InProgress"
	failed     = "Failed"
	afterPause = "Current after a status"
	afterStill = "Current when still"
)

func brief(v Verdict) string {
	switch v.Wait {
	case NoWait:
	case ForStatus:
		return string(v.Status) + " after a status"
	case ForStillness:
		return string(v.Status) + " when still"
	}
	return string(v.Status)
}

// life is an object of a kind with shipped rules, at four times: it has no status;
// its status is of an older generation; it is ready; it has failed.
type life struct {
	api, kind  string
	spec       string
	categories []string

	fresh string // the verdict without a status; default: InProgress

	ready   string // the status; %d is the generation that its controller has observed
	old     string // the status before the change; default: ready, with an older generation
	oldWant string // default: InProgress

	failed     string // empty: the rule has no failed
	failedWant string // default: Failed
}

const (
	ready      = `{conditions: [{type: Ready, status: "True", observedGeneration: %d}]}`
	observed   = `{observedGeneration: %d, conditions: [{type: Ready, status: "True"}]}`
	available  = `{observedGeneration: %d, conditions: [{type: Available, status: "True"}]}`
	notChecked = current // nothing shows the age of the status
)

func lives() []life {
	out := slices.Concat(virtualMachines(), clusters(), certificates(), monitoring(), networks(), crossplane(), databases())
	for i := range out {
		l := &out[i]
		for value, otherwise := range map[*string]string{&l.fresh: waiting, &l.oldWant: waiting, &l.failedWant: failed, &l.old: strings.ReplaceAll(l.ready, "%d", "1")} {
			if *value == "" {
				*value = otherwise
			}
		}
		l.ready = strings.ReplaceAll(l.ready, "%d", "2")
	}
	return out
}

func virtualMachines() []life {
	return []life{
		{api: "kubevirt.io/v1", kind: "VirtualMachine", spec: "{runStrategy: Always}", ready: "{ready: true, printableStatus: Running}", oldWant: notChecked,
			failed: "{printableStatus: ErrorPvcNotFound}", failedWant: waiting},
		{api: "kubevirt.io/v1", kind: "VirtualMachine", spec: "{running: false}", ready: "{printableStatus: Stopped}", old: "{printableStatus: Stopping}"},
		{api: "kubevirt.io/v1", kind: "VirtualMachine", spec: "{running: true}", ready: "{ready: true, printableStatus: Migrating}", old: "{printableStatus: Stopped}"},
		{api: "kubevirt.io/v1", kind: "VirtualMachine", spec: "{runStrategy: Halted}", ready: "{printableStatus: Stopped}", old: "{ready: true, printableStatus: Running}"},
		{api: "kubevirt.io/v1", kind: "VirtualMachine", spec: "{runStrategy: Manual}", ready: "{printableStatus: Stopped}", old: "{printableStatus: Stopped, stateChangeRequests: [{action: Start}]}"},
		{api: "kubevirt.io/v1", kind: "VirtualMachineInstanceMigration", ready: "{phase: Succeeded}", old: "{phase: Running}", failed: "{phase: Failed, migrationState: {failureReason: no node}}"},
		{api: "kubevirt.io/v1", kind: "VirtualMachineInstance", ready: `{phase: Running, conditions: [{type: Ready, status: "True"}]}`, old: "{phase: Scheduling}", failed: "{phase: Failed}"},
		{api: "kubevirt.io/v1", kind: "VirtualMachineInstanceReplicaSet", spec: "{replicas: 2}", ready: "{replicas: 2, readyReplicas: 2}", old: "{replicas: 1, readyReplicas: 1}",
			failed: `{replicas: 2, readyReplicas: 2, conditions: [{type: ReplicaFailure, status: "True"}]}`, failedWant: waiting},
		{api: "pool.kubevirt.io/v1beta1", kind: "VirtualMachinePool", ready: "{replicas: 1, readyReplicas: 1}", old: "{replicas: 2, readyReplicas: 1}",
			failed: `{conditions: [{type: ReplicaFailure, status: "True"}]}`, failedWant: waiting},
		{api: "kubevirt.io/v1", kind: "KubeVirt", ready: `{observedGeneration: %d, phase: Deployed, conditions: [{type: Available, status: "True"}, {type: Progressing, status: "False"}]}`},
		{api: "cdi.kubevirt.io/v1beta1", kind: "DataVolume", ready: "{phase: Succeeded}", old: "{phase: ImportInProgress}", failed: "{phase: Failed}"},
	}
}

func clusters() []life {
	const rolled = `{observedGeneration: %d, conditions: [{type: Available, status: "True"}], replicas: 1, upToDateReplicas: 1, readyReplicas: 1}`
	return []life{
		{api: "cluster.x-k8s.io/v1beta1", kind: "Cluster", ready: observed},
		{api: "bootstrap.cluster.x-k8s.io/v1beta1", kind: "KubeadmConfig", ready: observed},
		{api: "cluster.x-k8s.io/v1beta2", kind: "Cluster", ready: available},
		{api: "cluster.x-k8s.io/v1beta2", kind: "Machine", ready: available},
		{api: "cluster.x-k8s.io/v1beta2", kind: "MachineDeployment", ready: rolled},
		{api: "controlplane.cluster.x-k8s.io/v1beta2", kind: "KubeadmControlPlane", ready: rolled,
			old: `{observedGeneration: 2, conditions: [{type: Available, status: "True"}], replicas: 1, upToDateReplicas: 0}`},
		{api: "cluster.x-k8s.io/v1beta2", kind: "MachineSet", ready: rolled},
		{api: "cluster.x-k8s.io/v1beta2", kind: "MachinePool", ready: rolled},
		{api: "infrastructure.cluster.x-k8s.io/v1beta2", kind: "DevCluster", ready: "{initialization: {provisioned: true}}", oldWant: notChecked},
		{api: "infrastructure.cluster.x-k8s.io/v1beta1", kind: "OpenStackCluster", ready: "{ready: true}", old: "{ready: false}"},
		{api: "infrastructure.cluster.x-k8s.io/v1beta2", kind: "DevMachineTemplate", fresh: current, ready: "{}", oldWant: notChecked},
		{api: "bootstrap.cluster.x-k8s.io/v1beta2", kind: "KubeadmConfig", ready: "{observedGeneration: %d, initialization: {dataSecretCreated: true}}"},
		{api: "bootstrap.cluster.x-k8s.io/v1beta2", kind: "KubeadmConfigTemplate", fresh: current, ready: "{}", oldWant: notChecked},
		{api: "cluster.x-k8s.io/v1beta2", kind: "ClusterClass", ready: `{observedGeneration: %d, conditions: [{type: VariablesReady, status: "True"}]}`},
		{api: "addons.cluster.x-k8s.io/v1beta2", kind: "ClusterResourceSet", fresh: afterPause, ready: `{observedGeneration: %d, conditions: [{type: ResourcesApplied, status: "True"}]}`},
	}
}

func certificates() []life {
	return []life{
		{api: "cert-manager.io/v1", kind: "Certificate", ready: ready},
		{api: "cert-manager.io/v1", kind: "Issuer", ready: ready},
		{api: "cert-manager.io/v1", kind: "ClusterIssuer", ready: ready},
		{api: "cert-manager.io/v1", kind: "CertificateRequest", ready: ready, old: `{conditions: [{type: Ready, status: "False", reason: Pending}]}`,
			failed: `{conditions: [{type: Ready, status: "False", reason: Failed}]}`},
		{api: "cert-manager.io/v1", kind: "CertificateRequest", ready: ready, oldWant: notChecked, failed: `{conditions: [{type: Denied, status: "True"}]}`},
		{api: "acme.cert-manager.io/v1", kind: "Order", ready: "{state: valid}", old: "{state: pending}", failed: "{state: errored}"},
		{api: "acme.cert-manager.io/v1", kind: "Challenge", ready: "{state: valid}", old: "{state: processing}", failed: "{state: expired}"},
	}
}

func monitoring() []life {
	const running = `{conditions: [{type: Available, status: "True", observedGeneration: %d}, {type: Reconciled, status: "True", observedGeneration: %d}]}`
	const accepted = `{bindings: [{conditions: [{type: Accepted, status: "True"}]}]}`
	const rejected = `{bindings: [{conditions: [{type: Accepted, status: "True"}]}, {conditions: [{type: Accepted, status: "False", message: "no Secret"}]}]}`
	var out []life
	for _, kind := range []string{"Prometheus", "PrometheusAgent", "Alertmanager", "ThanosRuler"} {
		out = append(out, life{api: "monitoring.coreos.com/v1", kind: kind, ready: running})
	}
	for _, kind := range []string{"ServiceMonitor", "PodMonitor", "Probe", "ScrapeConfig", "PrometheusRule"} {
		out = append(out, life{api: "monitoring.coreos.com/v1", kind: kind, fresh: afterPause, ready: accepted, old: "{}", oldWant: notChecked, failed: rejected, failedWant: waiting})
	}
	for _, api := range []string{"networking.istio.io/v1", "security.istio.io/v1", "telemetry.istio.io/v1", "extensions.istio.io/v1alpha1"} {
		out = append(out, life{api: api, kind: "Gateway", fresh: afterPause, ready: "{observedGeneration: %d, validationMessages: [{level: WARNING}]}",
			failed: "{observedGeneration: 2, validationMessages: [{level: ERROR}]}", failedWant: waiting})
	}
	return out
}

func networks() []life {
	const created = `{conditions: [{type: NetworkCreated, status: "True"}, {type: NetworkAllocationSucceeded, status: "True"}]}`
	out := []life{
		{api: "sriovnetwork.openshift.io/v1", kind: "SriovNetworkNodeState", ready: "{syncStatus: Succeeded}", old: "{syncStatus: InProgress}",
			failed: "{syncStatus: Failed, lastSyncError: no such device}", failedWant: waiting},
		{api: "sriovnetwork.openshift.io/v1", kind: "SriovNetworkNodePolicy", fresh: current, ready: "{}", oldWant: notChecked},
		{api: "k8s.cni.cncf.io/v1", kind: "NetworkAttachmentDefinition", fresh: current, ready: "{}", oldWant: notChecked},
		{api: "k8s.ovn.org/v1", kind: "UserDefinedNetwork", ready: created, old: `{conditions: [{type: NetworkCreated, status: "False", message: "a network has this subnet"}]}`},
		{api: "k8s.ovn.org/v1", kind: "ClusterUserDefinedNetwork", ready: created, old: `{conditions: [{type: NetworkCreated, status: "True"}, {type: NetworkAllocationSucceeded, status: "False"}]}`},
		{api: "kubeovn.io/v1", kind: "Subnet", ready: ready, old: `{conditions: [{type: Ready, status: "False"}]}`,
			failed: `{conditions: [{type: Validated, status: "False"}, {type: Ready, status: "True"}]}`, failedWant: waiting},
		{api: "kubeovn.io/v1", kind: "Vpc", ready: "{standby: true}", old: "{standby: false}"},
		{api: "kubeovn.io/v1", kind: "ProviderNetwork", ready: "{ready: true}", old: "{ready: false}"},
		{api: "kubeovn.io/v1", kind: "Vlan", fresh: afterPause, ready: "{conflict: false}", old: "{conflict: true}"},
	}
	for _, kind := range []string{"SriovNetwork", "SriovIBNetwork", "OVSNetwork"} {
		out = append(out, life{api: "sriovnetwork.openshift.io/v1", kind: kind, fresh: afterPause, ready: ready, old: `{conditions: [{type: Ready, status: "False", reason: NamespaceNotFound}]}`,
			failed: `{conditions: [{type: Ready, status: "False", reason: NetworkAttachmentDefinitionInvalid}]}`})
	}
	for _, kind := range []string{"Network", "ProviderNetwork", "NetworkChaining"} {
		out = append(out, life{api: "k8s.plugin.opnfv.org/v1alpha1", kind: kind, ready: "{state: Created}", old: "{}", failed: "{state: CreateInternalError}", failedWant: waiting})
	}
	return out
}

func crossplane() []life {
	const synced = `{conditions: [{type: Ready, status: "True", observedGeneration: %d}, {type: Synced, status: "True", observedGeneration: %d}]}`
	const healthy = `{observedGeneration: %d, conditions: [{type: Installed, status: "True"}, {type: Healthy, status: "True"}]}`
	return []life{
		{api: "s3.aws.example.org/v1", kind: "Bucket", categories: []string{"managed"}, ready: synced},
		{api: "example.org/v1", kind: "Database", categories: []string{"claim"}, ready: synced},
		{api: "example.org/v1", kind: "XDatabase", categories: []string{"composite"}, ready: synced},
		{api: "pkg.crossplane.io/v1", kind: "Provider", ready: healthy},
		{api: "pkg.crossplane.io/v1", kind: "ProviderRevision", ready: `{conditions: [{type: Healthy, status: "True"}]}`, old: "{conditions: []}"},
		{api: "apiextensions.crossplane.io/v1", kind: "CompositeResourceDefinition", ready: `{conditions: [{type: Established, status: "True"}]}`, old: "{}"},
		{api: "apiextensions.crossplane.io/v1", kind: "CompositeResourceDefinition", spec: "{claimNames: {kind: C}}",
			ready: `{conditions: [{type: Established, status: "True"}, {type: Offered, status: "True"}]}`, old: `{conditions: [{type: Established, status: "True"}]}`},
		{api: "ops.crossplane.io/v1alpha1", kind: "Operation", ready: `{conditions: [{type: Succeeded, status: "True"}]}`, old: "{}"},
	}
}

func databases() []life {
	const notReady = `{observedGeneration: 2, conditions: [{type: NotReady, status: "True", reason: InvalidResourceException, message: no pools}]}`
	const healthy = `{phase: Cluster in healthy state, readyInstances: 3, conditions: [{type: Ready, status: "True"}]}`
	out := []life{
		{api: "kafka.strimzi.io/v1", kind: "Kafka", ready: observed, failed: notReady},
		{api: "kafka.strimzi.io/v1beta2", kind: "KafkaTopic", ready: observed, failed: notReady},
		{api: "kafka.strimzi.io/v1", kind: "KafkaConnect", ready: `{conditions: [{type: ReconciliationPaused, status: "True"}]}`,
			old: `{observedGeneration: 2, conditions: [{type: NotReady, status: "True", reason: TimeoutException}]}`, failed: notReady},
		{api: "kafka.strimzi.io/v1", kind: "KafkaNodePool", ready: "{observedGeneration: %d}"},
		{api: "kafka.strimzi.io/v1", kind: "KafkaRebalance", ready: `{observedGeneration: %d, conditions: [{type: ProposalReady, status: "True"}]}`},
		{api: "postgresql.cnpg.io/v1", kind: "Cluster", spec: "{instances: 3}", ready: healthy, old: healthy, oldWant: afterStill, failed: "{phase: Invalid cluster definition}"},
		{api: "mongodbcommunity.mongodb.com/v1", kind: "MongoDBCommunity", spec: "{version: 8.0.1}", ready: "{phase: Running, version: 8.0.1}", old: "{phase: Running, version: 8.0.0}",
			failed: "{phase: Failed}", failedWant: waiting},
		{api: "mongodb.com/v1", kind: "MongoDB", ready: "{observedGeneration: %d, phase: Running}", failed: "{observedGeneration: 2, phase: Unsupported}"},
		{api: "mongodb.com/v1", kind: "MongoDB", ready: "{observedGeneration: %d, phase: Disabled}", failed: "{observedGeneration: 2, phase: Failed}", failedWant: waiting},
		{api: "mongodb.com/v1", kind: "MongoDBOpsManager", ready: "{opsManager: {phase: Running, observedGeneration: %d}, applicationDatabase: {phase: Running}}",
			failed: "{opsManager: {phase: Unsupported, observedGeneration: 2}}"},
		{api: "elasticsearch.k8s.elastic.co/v1", kind: "Elasticsearch", ready: "{observedGeneration: %d, phase: Ready, health: yellow}", failed: "{observedGeneration: 2, phase: Invalid}"},
	}
	for group, kind := range map[string]string{
		"kibana": "Kibana", "apm": "ApmServer", "enterprisesearch": "EnterpriseSearch", "beat": "Beat", "agent": "Agent", "logstash": "Logstash", "maps": "ElasticMapsServer",
	} {
		out = append(out, life{api: group + ".k8s.elastic.co/v1", kind: kind, ready: "{observedGeneration: %d, health: green}"})
	}
	return out
}

// TestShipped has an object of each kind with a shipped rule, at four times.
func TestShipped(t *testing.T) {
	rules := Shipped()
	used := map[int]bool{}      // by line of the rule
	usedFails := map[int]bool{} // likewise
	for _, l := range lives() {
		for _, at := range []struct{ when, status, want string }{
			{"new", "", l.fresh}, {"old", l.old, l.oldWant}, {"ready", l.ready, readyWant(l)}, {"failed", l.failed, l.failedWant},
		} {
			if at.when == "failed" && at.status == "" {
				continue
			}
			text := fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: a, generation: 2}", l.api, l.kind)
			for field, value := range map[string]string{"spec": l.spec, "status": at.status} {
				if value != "" {
					text += ", " + field + ": " + value
				}
			}
			verdict, found := rules.Judge(object(t, text+"}"), l.categories)
			if !found || brief(verdict) != at.want {
				t.Errorf("%s %s, %s: %+v (a rule: %t), want %s", l.api, l.kind, at.when, verdict, found, at.want)
			}
		}
		group, version, _ := strings.Cut(l.api, "/")
		for _, rule := range rules.shipped() {
			if rule.Matches(group, version, l.kind, l.categories) {
				used[rule.Line], usedFails[rule.Line] = true, usedFails[rule.Line] || l.failed != ""
				break
			}
		}
	}
	for _, rule := range rules.shipped() {
		if !used[rule.Line] || rule.Judgment.Failed != "" && !usedFails[rule.Line] {
			t.Errorf("the rule in line %d, for %v of %v, has no object in this test", rule.Line, rule.Kinds, rule.Groups)
		}
	}
}

// readyWant is the verdict on a ready object.
func readyWant(l life) string {
	if l.kind == "MongoDBCommunity" || l.api == "postgresql.cnpg.io/v1" {
		return afterStill
	}
	return current
}

// TestShippedFile has that each shipped rule can be read and compiled.
func TestShippedFile(t *testing.T) {
	rules, wrong := readFile("shipped.yaml", shipped, Shipped().env, true)
	if len(wrong) > 0 || len(rules) < 40 {
		t.Errorf("%d rules, %v", len(rules), wrong)
	}
	for _, rule := range rules {
		if _, err := rule.compiled(); err != nil {
			t.Errorf("line %d: %v", rule.Line, err)
		}
	}
}
