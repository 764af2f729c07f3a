package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/readiness"
)

// installation is one way to install the chart.
type installation struct {
	reason  string
	values  string
	objects []string
	check   func(*testing.T, release, Config)
}

const outside = "replicas: 3\nstore: {kind: mongodb, existingSecret: site-store}\n"

// objects are those of every release, and more.
func objects(more ...string) []string {
	return slices.Sorted(slices.Values(append(more, "ConfigMap/site-k8splugin", "NetworkPolicy/site-k8splugin", "ServiceAccount/site-k8splugin")))
}

func installations() map[string]installation {
	return map[string]installation{
		"Embedded": {
			reason:  "with nothing decided but keys and access, there is one replica with its own store on a volume",
			values:  sound,
			objects: objects("Service/site-k8splugin", "StatefulSet/site-k8splugin"),
			check: func(t *testing.T, r release, cfg Config) {
				w := object[appsv1.StatefulSet](t, r, "StatefulSet/site-k8splugin").Spec
				same(t, "replicas", int32(1), *w.Replicas)
				same(t, "size", "8Gi", w.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String())
				same(t, "claim", corev1.ReadWriteOnce, w.VolumeClaimTemplates[0].Spec.AccessModes[0])
				same(t, "grace", int64(35), *w.Template.Spec.TerminationGracePeriodSeconds)
				same(t, "store and drain time", []any{"etcd", 20 * time.Second}, []any{cfg.Store, cfg.DrainTimeout})
				same(t, "image", "k8splugin:0.1.0", w.Template.Spec.Containers[0].Image)
			},
		},
		"Trial": {
			reason:  "an evaluation needs no Secret and no volume, and the notes warn of the consequences",
			values:  "keys: {generate: true}\naccess: {insecureNoAuth: true, allowedHosts: [a.example, b.example]}\nstore: {persistence: {enabled: false}}\nuser: null\n",
			objects: objects("Service/site-k8splugin", "StatefulSet/site-k8splugin"),
			check: func(t *testing.T, r release, cfg Config) {
				w := object[appsv1.StatefulSet](t, r, "StatefulSet/site-k8splugin").Spec
				same(t, "claims", 0, len(w.VolumeClaimTemplates))
				same(t, "key file", "/var/lib/k8splugin/data.keys", cfg.keyFile())
				same(t, "open", true, cfg.InsecureNoAuth)
				same(t, "user of the platform's choice", nil, w.Template.Spec.SecurityContext.RunAsUser)
				same(t, "allowed-hosts", []string{"a.example", "b.example"}, cfg.hosts())
				for _, part := range []string{"does not authenticate", "without a copy", "all data is lost"} {
					if !strings.Contains(r.notes, part) {
						t.Errorf("the notes do not say %q:\n%s", part, r.notes)
					}
				}
			},
		},
		"Replicas": {
			reason:  "replicas share a store outside, and are kept apart",
			values:  sound + outside + "image: {repository: k8s, digest: \"sha256:" + strings.Repeat("0", 64) + "\"}\n",
			objects: objects("Service/site-k8splugin", "Deployment/site-k8splugin", "PodDisruptionBudget/site-k8splugin"),
			check: func(t *testing.T, r release, _ Config) {
				w := object[appsv1.Deployment](t, r, "Deployment/site-k8splugin").Spec
				same(t, "replicas", int32(3), *w.Replicas)
				same(t, "store", "site-store", w.Template.Spec.Containers[0].Env[0].ValueFrom.SecretKeyRef.Name)
				same(t, "spread", 2, len(w.Template.Spec.TopologySpreadConstraints))
				same(t, "image", "k8s@sha256:"+strings.Repeat("0", 64), w.Template.Spec.Containers[0].Image)
				budget := object[policyv1.PodDisruptionBudget](t, r, "PodDisruptionBudget/site-k8splugin").Spec
				same(t, "unavailable", "1", budget.MaxUnavailable.String())
				same(t, "selectors", w.Selector, budget.Selector)
			},
		},
		"Etcd": {
			reason:  "an etcd cluster may ask for a certificate",
			values:  sound + "store: {kind: etcd, uri: \"etcd://a:2379,b:2379?ca=/etc/k8splugin/store/ca.crt\", tlsSecret: etcd-client}\n",
			objects: objects("Service/site-k8splugin", "Deployment/site-k8splugin", "Secret/site-k8splugin-store"),
			check: func(t *testing.T, r release, _ Config) {
				same(t, "URI", "etcd://a:2379,b:2379?ca=/etc/k8splugin/store/ca.crt", object[corev1.Secret](t, r, "Secret/site-k8splugin-store").StringData["uri"])
				same(t, "store's files", true, mounted(r.pod(t).Spec, "/etc/k8splugin/store"))
			},
		},
		"Secrets": {
			reason:  "what is secret may be in the values, and is in Secrets alone then",
			values:  "keys: {value: KEY}\naccess: {files: {access.yaml: \"users: []\", htpasswd: \"a:b\"}, rateLimit: 2.5}\ntls: {certificate: CERT, privateKey: PRIVATE, clientCA: AUTHORITY}\n",
			objects: objects("Service/site-k8splugin", "StatefulSet/site-k8splugin", "Secret/site-k8splugin-keys", "Secret/site-k8splugin-access", "Secret/site-k8splugin-tls"),
			check: func(t *testing.T, r release, cfg Config) {
				keys := object[corev1.Secret](t, r, "Secret/site-k8splugin-keys")
				same(t, "keys", map[string]string{"keys.json": "KEY"}, keys.StringData)
				same(t, "policy", "keep", keys.Annotations["helm.sh/resource-policy"])
				same(t, "TLS", map[string]string{"tls.crt": "CERT", "tls.key": "PRIVATE", "ca.crt": "AUTHORITY"}, object[corev1.Secret](t, r, "Secret/site-k8splugin-tls").StringData)
				same(t, "access", map[string]string{"access.yaml": "users: []", "htpasswd": "a:b"}, object[corev1.Secret](t, r, "Secret/site-k8splugin-access").StringData)
				same(t, "authorities", "/etc/k8splugin/tls/ca.crt", cfg.TLSClientCA)
				same(t, "rate", 2.5, cfg.RateLimit)
				all, err := json.Marshal([]any{r.objects["ConfigMap/site-k8splugin"], r.objects["StatefulSet/site-k8splugin"], r.notes})
				if err != nil || strings.Contains(string(all), "PRIVATE") || strings.Contains(string(all), "KEY\"") {
					t.Errorf("a secret is where others read it (%v): %s", err, all)
				}
			},
		},
		"TLS and monitoring": {
			reason: "Prometheus and the kubelet speak TLS when the service does",
			values: "keys: {existingSecret: k}\naccess: {existingSecret: a}\ntls: {existingSecret: site-tls, clientCAKey: ca.crt}\nmonitoring: {serviceMonitor: {enabled: true, labels: {release: p}, tlsConfig: {serverName: x}, authorization: {credentials: {name: scrape, key: token}}}, prometheusRule: {enabled: true, runbookURL: 'https://wiki.example.com/k8splugin?a=$1'}}\n",
			objects: objects("Service/site-k8splugin", "StatefulSet/site-k8splugin",
				"ServiceMonitor/site-k8splugin", "PrometheusRule/site-k8splugin"),
			check: checkMonitoring,
		},
		"Istio": {
			reason:  "a pod without a sidecar gets a token for istiod, the roots of the mesh, and a way to istiod",
			values:  sound + "istio: {enabled: true, cluster: c1, peers: [\"spiffe://cluster.local/ns/onap/\", \"spiffe://cluster.local/ns/x/sa/y\"]}\nnetworkPolicy: {egress: [{to: []}]}\n",
			objects: objects("Service/site-k8splugin", "StatefulSet/site-k8splugin"),
			check:   checkIstio,
		},
		"ONAP": {
			reason: "in the place of ONAP's plugin, the service has its name, its port, its place on the bus and its broker",
			values: "keys: {existingSecret: site-keys}\naccess: {insecureNoAuth: true}\n" + outside +
				"allowedCallbacks: [nfvo]\nonap: {enabled: true, msb: true, errors: strict, allowedCallbacks: [so-cnf-adapter, 10.0.0.0/8]}\nservice: {type: NodePort, nodePort: 30498}\n" +
				"extraContainers: [{name: broker, image: broker}]\nextraVolumes: [{name: artifacts, emptyDir: {}}]\n",
			objects: objects("Service/multicloud-k8s", "Deployment/site-k8splugin", "PodDisruptionBudget/site-k8splugin"),
			check:   checkONAP,
		},
		"Readiness rules": {
			reason:  "the file of rules is beside that of the settings, which names it",
			values:  sound + "readinessRules:\n- {group: example.com, kind: Widget, current: \"object.status.up\"}\n",
			objects: objects("Service/site-k8splugin", "StatefulSet/site-k8splugin"),
			check: func(t *testing.T, r release, cfg Config) {
				same(t, "file", "/etc/k8splugin/config/readiness.yaml", cfg.ReadinessRules)
				_, err := readiness.New("readiness.yaml", []byte(object[corev1.ConfigMap](t, r, "ConfigMap/site-k8splugin").Data["readiness.yaml"]))
				same(t, "rules", error(nil), err)
			},
		},
		"Names of digits": {
			reason: "a name of digits is a name, and no number",
			values: "keys: {existingSecret: \"1\"}\naccess: {existingSecret: \"2\"}\ntls: {existingSecret: \"3\"}\nstore: {persistence: {storageClass: \"4\"}}\npriorityClassName: \"5\"\n" +
				"serviceAccount: {create: false, name: \"6\"}\nimage: {tag: \"7\"}\nnameOverride: \"8\"\nfullnameOverride: site-k8splugin\n",
			objects: []string{"ConfigMap/site-k8splugin", "NetworkPolicy/site-k8splugin", "Service/site-k8splugin", "StatefulSet/site-k8splugin"},
		},
		"Everything else": {
			reason: "what sites change is taken over",
			values: sound + "allowedCallbacks: [nfvo, 10.0.0.0/8]\nuser: 1000660000\naudit: {file: true, volume: {persistentVolumeClaim: {claimName: audit}}}\nsettings: {log-level: debug, max-package-bytes: 134217728, otlp-insecure: true}\n" +
				"drainSeconds: 60\npreStopSeconds: 0\nextraArgs: [\"--workers=64\"]\nextraEnv: [{name: K8SPLUGIN_LEASE_DURATION, value: 20s}]\npodLabels: {team: nfv}\npodAnnotations: {a: b}\n" +
				"extraVolumeMounts: [{name: more, mountPath: /more}]\nextraVolumes: [{name: more, emptyDir: {}}]\nnodeSelector: {disk: fast}\ntolerations: [{operator: Exists}]\n" +
				"affinity: {nodeAffinity: {}}\npriorityClassName: high\nimage: {tag: v2, pullSecrets: [{name: pull}]}\nnetworkPolicy: {egress: [{}]}\nservice: {type: LoadBalancer, annotations: {c: d}}\n" +
				"extraObjects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: more, namespace: nfv}}, \"{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ .Release.Name }}-text, namespace: nfv}}\"]\n",
			objects: objects("Service/site-k8splugin", "StatefulSet/site-k8splugin", "ConfigMap/more", "ConfigMap/site-text"),
			check:   checkEverythingElse,
		},
	}
}

func checkIstio(t *testing.T, r release, cfg Config) {
	same(t, "settings", istioConfig{
		CA: "istiod.istio-system.svc:15012", TokenFile: "/var/run/secrets/tokens/istio-token", RootFile: "/var/run/secrets/istio/root-cert.pem",
		Cluster: "c1", Peers: "spiffe://cluster.local/ns/onap/,spiffe://cluster.local/ns/x/sa/y",
	}, cfg.Istio)
	pod := r.pod(t).Spec
	for _, file := range []string{cfg.Istio.TokenFile, cfg.Istio.RootFile} {
		same(t, file, true, mounted(pod, filepath.Dir(file)))
	}
	for _, v := range pod.Volumes {
		switch v.Name {
		case "istio-token":
			token := v.Projected.Sources[0].ServiceAccountToken
			same(t, "token", []any{"istio-ca", int64(43200), "istio-token"}, []any{token.Audience, *token.ExpirationSeconds, token.Path})
		case "istio-root":
			same(t, "roots", "istio-ca-root-cert", v.ConfigMap.Name)
		}
	}
	same(t, "scheme", corev1.URISchemeHTTPS, pod.Containers[0].ReadinessProbe.HTTPGet.Scheme)
	same(t, "port", "https", object[corev1.Service](t, r, "Service/site-k8splugin").Spec.Ports[0].Name)
	egress := object[networkingv1.NetworkPolicy](t, r, "NetworkPolicy/site-k8splugin").Spec.Egress
	same(t, "rules", 2, len(egress))
	same(t, "istiod", []any{"istio-system", "istiod", 15012}, []any{egress[1].To[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"], egress[1].To[0].PodSelector.MatchLabels["app"], egress[1].Ports[0].Port.IntValue()})
}

func checkMonitoring(t *testing.T, r release, cfg Config) {
	same(t, "certificate", []string{"/etc/k8splugin/tls/tls.crt", "/etc/k8splugin/tls/tls.key", "/etc/k8splugin/tls/ca.crt"}, []string{cfg.TLSCert, cfg.TLSKey, cfg.TLSClientCA})
	same(t, "closed metrics", true, cfg.ProtectMetrics)
	same(t, "port", "https", object[corev1.Service](t, r, "Service/site-k8splugin").Spec.Ports[0].Name)
	c := r.pod(t).Spec.Containers[0]
	for _, p := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		same(t, "scheme", corev1.URISchemeHTTPS, p.HTTPGet.Scheme)
	}
	monitor := (*object[map[string]any](t, r, "ServiceMonitor/site-k8splugin"))["spec"].(map[string]any)
	same[any](t, "endpoint", []any{map[string]any{
		"targetPort": "api", "path": "/metrics", "scheme": "https", "interval": "30s", "scrapeTimeout": "10s", "tlsConfig": map[string]any{"serverName": "x"},
		"authorization": map[string]any{"credentials": map[string]any{"name": "scrape", "key": "token"}},
	}}, monitor["endpoints"])
	content, err := os.ReadFile(deployments + "/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const own = "https://wiki.example.com/k8splugin?a=$1" // in a regular expression, $1 has a meaning
	content = bytes.ReplaceAll(content, []byte("https://github.com/multicloud-k8s/k8splugin/blob/main/docs/observability.md#"), []byte(own+"#"))
	var want map[string]any
	if err := yaml.Unmarshal(content, &want); err != nil {
		t.Fatal(err)
	}
	same[any](t, "rules", want, (*object[map[string]any](t, r, "PrometheusRule/site-k8splugin"))["spec"])
}

func checkONAP(t *testing.T, r release, cfg Config) {
	s := object[corev1.Service](t, r, "Service/multicloud-k8s")
	same(t, "ports", []corev1.ServicePort{{Name: "http", Port: 9015, NodePort: 30498, TargetPort: s.Spec.Ports[0].TargetPort}}, s.Spec.Ports)
	var bus []map[string]any
	if err := json.Unmarshal([]byte(s.Annotations["msb.onap.org/service-info"]), &bus); err != nil {
		t.Fatal(err)
	}
	same(t, "bus", []map[string]any{{
		"serviceName": "multicloud-k8s", "version": "v1", "url": "/", "protocol": "REST", "port": "9015", "enable_ssl": false, "visualRange": "1",
	}}, bus)
	same(t, "broker", "broker", r.pod(t).Spec.Containers[1].Name)
	same(t, "errors and callbacks", []string{"strict", "nfvo,so-cnf-adapter,10.0.0.0/8"}, []string{cfg.ONAPErrors, cfg.CallbackAllow})
}

func checkEverythingElse(t *testing.T, r release, cfg Config) {
	pod := r.pod(t)
	same(t, "user", []int64{1000660000, 1000660000}, []int64{*pod.Spec.SecurityContext.RunAsUser, *pod.Spec.SecurityContext.FSGroup})
	same(t, "settings", []any{"debug", int64(134217728), true, 64, 20 * time.Second, time.Minute, "/var/log/k8splugin/$(POD_NAME).log"},
		[]any{cfg.LogLevel, cfg.MaxPackage, cfg.OTLPInsecure, cfg.Workers, cfg.Lease, cfg.DrainTimeout, cfg.AuditFile})
	same(t, "callbacks", "nfvo,10.0.0.0/8", cfg.CallbackAllow)
	same(t, "grace", int64(70), *pod.Spec.TerminationGracePeriodSeconds)
	same(t, "lifecycle", nil, pod.Spec.Containers[0].Lifecycle)
	same(t, "labels", "nfv", pod.Labels["team"])
	same(t, "annotations", "b", pod.Annotations["a"])
	same(t, "more", true, mounted(pod.Spec, "/more"))
	same(t, "audit", "audit", pod.Spec.Volumes[slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "audit" })].PersistentVolumeClaim.ClaimName)
	same(t, "image", "k8splugin:v2", pod.Spec.Containers[0].Image)
	same(t, "policy", []networkingv1.PolicyType{"Ingress", "Egress"}, object[networkingv1.NetworkPolicy](t, r, "NetworkPolicy/site-k8splugin").Spec.PolicyTypes)
	same(t, "notes", true, strings.Contains(r.notes, "add an ipBlock"))
}

// same compares a fact of a release.
func same[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestChartRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, values, want string
	}{
		"Nothing":         {"the encryption keys have no default", "", "keys: the store needs encryption keys"},
		"No access":       {"requests without credentials are allowed only if that is set explicitly", "keys: {existingSecret: k}\n", "access.insecureNoAuth: true"},
		"All at once":     {"all errors are reported at once", "replicas: 2\n", "replicas: the embedded store supports one"},
		"Replicas":        {"the embedded store belongs to one process", sound + "replicas: 2\n", "replicas: the embedded store supports one"},
		"No URI":          {"an external store has a URI", sound + "store: {kind: etcd}\n", "the URI of etcd is missing"},
		"Other URI":       {"the URI must match the kind of store", sound + "store: {kind: etcd, uri: \"mongodb://x\"}\n", "store.uri: not a URI of etcd"},
		"Two URIs":        {"one of two would be ignored", sound + "store: {kind: etcd, uri: \"etcd://x\", existingSecret: s}\n", "are both set"},
		"URI embedded":    {"an embedded store would not use it", sound + "store: {uri: \"etcd://x\"}\n", "the embedded store takes no URI"},
		"Two keys":        {"one of two would be ignored", "keys: {existingSecret: k, value: x}\naccess: {existingSecret: a}\n", "exactly one of"},
		"Keys of each":    {"replicas with different keys cannot read each other's records", "keys: {generate: true}\naccess: {existingSecret: a}\n" + outside, "need the same keys"},
		"Both accesses":   {"rules without an effect are an error", "keys: {existingSecret: k}\naccess: {existingSecret: a, insecureNoAuth: true}\n", "access rules are set too"},
		"No access.yaml":  {"the service reads access.yaml", "keys: {existingSecret: k}\naccess: {files: {rules.yaml: x}}\n", "access.yaml is missing"},
		"Closed metrics":  {"Prometheus could not read the metrics", "keys: {existingSecret: k}\naccess: {existingSecret: a}\nmonitoring: {serviceMonitor: {enabled: true}}\n", "access.protectMetrics"},
		"Half a pair":     {"a certificate is useless without its key", sound + "tls: {certificate: x}\n", "tls.certificate and tls.privateKey must be set together"},
		"Clients alone":   {"client certificates require TLS", sound + "tls: {clientCAKey: ca.crt}\n", "requires tls.existingSecret"},
		"No peers":        {"an empty list would be an error of the service", sound + "istio: {enabled: true}\n", "istio.peers: requires at least one"},
		"Node port":       {"it would be ignored", sound + "service: {nodePort: 30498}\n", "service.nodePort"},
		"Setting decided": {"two values of a setting would contradict each other", sound + "settings: {listen: \":1\"}\n", "settings.listen"},

		"Misspelt":       {"an unknown name is an error", sound + "replica: 2\n", "additional properties 'replica' not allowed"},
		"Misspelt below": {"unknown names are rejected in objects too", sound + "store: {url: x}\n", "additional properties 'url' not allowed"},
		"Store":          {"an unknown kind of store is rejected", sound + "store: {kind: postgres}\n", "at '/store/kind'"},
		"No replica":     {"there is at least one", sound + "replicas: 0\n", "at '/replicas'"},
		"Text":           {"a number is not a string", sound + "replicas: \"3\"\n", "at '/replicas'"},
		"Errors":         {"an unknown style is rejected", sound + "onap: {errors: modern}\n", "at '/onap/errors'"},
		"Digest":         {"a short digest is rejected", sound + "image: {digest: \"sha256:12\"}\n", "at '/image/digest'"},
		"Root":           {"the service does not run as root", sound + "user: 0\n", "at '/user'"},
		"Label":          {"labels are strings", sound + "podLabels: {a: 1}\n", "at '/podLabels/a'"},
		"Callback list":  {"a comma would split the item", sound + "allowedCallbacks: [\"a,b\"]\n", "at '/allowedCallbacks/0'"},
		"Callbacks ONAP": {"a comma would split the item", sound + "onap: {allowedCallbacks: [\"a,b\"]}\n", "at '/onap/allowedCallbacks/0'"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := renderChart(t, tc.values)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// TestSettingsOfTheChart compares the settings that the chart sets itself with
// the settings of the service.
func TestSettingsOfTheChart(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(chartFolder + "/templates/_settings.tpl")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(content), "{{- define \"k8splugin.decided\" -}}\n")
	decided, _, ok := strings.Cut(rest, "\n{{- end -}}")
	if !ok {
		t.Fatal("the template k8splugin.decided is not there")
	}
	flags := serveFlags(t)
	for name := range strings.FieldsSeq(decided) {
		if flags.Lookup(name) == nil {
			t.Errorf("the chart decides about --%s, which does not exist", name)
		}
	}
}

// TestDocumentedValues renders the chart with the values that the guides show.
func TestDocumentedValues(t *testing.T) {
	t.Parallel()
	for guide, want := range map[string]int{"onap.md": 2, "guides/deploy.md": 3} {
		content, err := os.ReadFile("../../../docs/" + guide)
		if err != nil {
			t.Fatal(err)
		}
		blocks := strings.Split(string(content), "```yaml\n# values.yaml\n")[1:]
		if len(blocks) != want {
			t.Errorf("%s shows values %d times, want %d", guide, len(blocks), want)
		}
		for _, block := range blocks {
			values, _, _ := strings.Cut(block, "```")
			r, err := renderChart(t, values)
			if err != nil {
				t.Errorf("%s: %v in\n%s", guide, err, values)
				continue
			}
			r.config(t)
		}
	}
}

// TestValuesAreWhole compares values.yaml, which explains the values, with
// values.schema.json, which says what there is.
func TestValuesAreWhole(t *testing.T) {
	t.Parallel()
	var values map[string]any
	var schema property
	for name, into := range map[string]any{"values.yaml": &values, "values.schema.json": &schema} {
		content, err := os.ReadFile(chartFolder + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(content, into); err != nil {
			t.Fatal(err)
		}
	}
	delete(schema.Properties, "global") // Helm's own
	for _, finding := range schema.unlike("", values) {
		t.Error(finding)
	}
}

// property is a value as the schema has it.
type property struct {
	Properties           map[string]property
	AdditionalProperties any
}

// unlike says what is in the schema and not in the values, and where the schema
// would let a misspelt name pass.
func (p property) unlike(path string, values map[string]any) []string {
	if len(p.Properties) == 0 {
		return nil
	}
	var findings []string
	if p.AdditionalProperties != false {
		findings = append(findings, "any name may stand below "+path)
	}
	for name, below := range p.Properties {
		value, ok := values[name]
		if !ok {
			findings = append(findings, path+"/"+name+" is not in values.yaml")
		}
		nested, _ := value.(map[string]any)
		findings = append(findings, below.unlike(path+"/"+name, nested)...)
	}
	return findings
}
