package schema

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
)

// deployment is a Deployment with more in its spec and in its container.
func deployment(spec, container string) string {
	return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {` + spec +
		` selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {volumes: [{name: v, emptyDir: {}}], containers: [{name: c` + container + `}]}}}}`
}

func pod(spec string) string {
	return `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {` + spec + `}}`
}

// TestNative compares the checks of Kubernetes' own kinds with a real API
// server: what is refused here is refused there, and what is fine is fine.
func TestNative(t *testing.T) {
	s := newServer(t)
	region := NewCache(Config{}).Region(s)
	const c0 = "spec.template.spec.containers[0]"
	cases := map[string]struct {
		reason string
		object string
		want   []string
	}{
		"fine":             {"nothing is wrong", deployment("", ", image: i"), nil},
		"unknown field":    {"the likely field is named", deployment("", ", image: i, imagePullPolcy: x"), []string{c0 + `.imagePullPolcy: unknown field "imagePullPolcy" (did you mean "imagePullPolicy"?)`}},
		"misspelled":       {"what is missing then is said, too", deployment("", ", imagee: i"), []string{c0 + `.image: is required`, c0 + `.imagee: unknown field "imagee" (did you mean "image"?)`}},
		"case":             {"names differ by case", deployment("Replicas: 2,", ", image: i"), []string{`spec.Replicas: unknown field "Replicas" (did you mean "replicas"?)`}},
		"far off":          {"no field is like it", deployment("zzzzzzzz: 2,", ", image: i"), []string{`spec.zzzzzzzz: unknown field "zzzzzzzz"`}},
		"root":             {"a field beside spec", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, dataa: {}}`, []string{`dataa: unknown field "dataa" (did you mean "data"?)`}},
		"string":           {"the value is quoted", deployment(`replicas: "two",`, ", image: i"), []string{`spec.replicas: must be an integer, got string "two"`}},
		"number":           {"labels are strings", deployment("", ", image: 5"), []string{c0 + ".image: must be a string, got 5"}},
		"boolean":          {"YAML's true", deployment("", ", image: i, stdin: \"yes\""), []string{c0 + `.stdin: must be true or false, got string "yes"`}},
		"list":             {"one item is no list", deployment("", ", image: i, args: -v"), []string{c0 + `.args: must be a list, got string "-v"`}},
		"object":           {"a list is no object", deployment("strategy: [],", ", image: i"), []string{"spec.strategy: must be an object, got a list"}},
		"fraction":         {"half a pod", deployment("replicas: 1.5,", ", image: i"), []string{"spec.replicas: must be an integer, got 1.5"}},
		"whole fraction":   {"1.0 arrives as 1", deployment("replicas: 1.0,", ", image: i"), nil},
		"null":             {"null is absent", deployment("replicas: null, paused: null,", ", image: i, env: null, args: [null]"), nil},
		"empty enum":       {"empty is absent", deployment("", `, image: i, imagePullPolicy: ""`), nil},
		"negative":         {"counts begin at 0", deployment("replicas: -1,", ", image: i"), []string{"spec.replicas: must be at least 0, got -1"}},
		"overflow":         {"the server keeps the low half", deployment("replicas: 3000000000,", ", image: i"), []string{"spec.replicas: must be at most 2147483647, got 3000000000"}},
		"overflow to fine": {"the low half is 2, which the server accepts", deployment("replicas: 4294967298,", ", image: i"), nil},
		"enum":             {"what is allowed is said", deployment("", ", image: i, imagePullPolicy: never"), []string{c0 + `.imagePullPolicy: must be one of Always, IfNotPresent, Never, got "never"`}},
		"quantity":         {"quantities have a form", deployment("", ", image: i, resources: {limits: {cpu: 1cpu}}"), []string{c0 + `.resources.limits[cpu]: must be a quantity such as 500m, 2 or 1Gi, got "1cpu"`}},
		"quantities":       {"numbers are quantities, too", deployment("", ", image: i, resources: {limits: {cpu: 1, memory: 1e9, example.com/x: 2}}"), nil},
		"negative quantity": {"less than nothing", deployment("", ", image: i, resources: {limits: {cpu: -1}}"), []string{
			c0 + `.resources.limits[cpu]: must be at least 0, got -1`,
		}},
		"request": {"a request above its limit", deployment("", ", image: i, resources: {limits: {cpu: 1}, requests: {cpu: 1500m}}"), []string{
			c0 + `.resources.requests[cpu]: must be at most the limit 1, got "1500m"`,
		}},
		"port":           {"ports end at 65535", deployment("", ", image: i, ports: [{containerPort: 70000}]"), []string{c0 + ".ports[0].containerPort: must be at most 65535, got 70000"}},
		"no port":        {"a port without a number", deployment("", ", image: i, ports: [{name: http}]"), []string{c0 + ".ports[0].containerPort: is required"}},
		"port name":      {"names of ports are short", deployment("", ", image: i, ports: [{name: this-is-much-too-long, containerPort: 1}]"), []string{c0 + `.ports[0].name: ` + portName + `, got "this-is-much-too-long"`}},
		"same port":      {"the protocol's default counts", deployment("", ", image: i, ports: [{containerPort: 80}, {containerPort: 80, protocol: TCP}]"), []string{c0 + `.ports[1]: has the same containerPort 80 and protocol "TCP" as item 0`}},
		"same port name": {"names of ports are unique", deployment("", ", image: i, ports: [{name: a, containerPort: 80}, {name: a, containerPort: 81}]"), []string{c0 + `.ports[1].name: is the name of another port, got "a"`}},
		"same variable":  {"variables are unique", deployment("", ", image: i, env: [{name: A}, {name: A}]"), []string{c0 + `.env[1]: has the same name "A" as item 0`}},
		"null item":      {"an item needs its key", deployment("", ", image: i, env: [null]"), []string{c0 + ".env[0]: must be an object, got null"}},
		"mount":          {"the volume is not there", deployment("", ", image: i, volumeMounts: [{name: v, mountPath: /a}, {name: w, mountPath: /b}]"), []string{c0 + `.volumeMounts[1].name: must be the name of a volume, got "w"`}},
		"probe port": {"names of ports in probes", deployment("", ", image: i, livenessProbe: {httpGet: {port: 70000}}, readinessProbe: {tcpSocket: {port: Bad_1}}"), []string{
			c0 + ".livenessProbe.httpGet.port: must be between 1 and 65535, got 70000",
			c0 + ".readinessProbe.tcpSocket.port: " + portName + `, got "Bad_1"`,
		}},
		"container names": {"also across the two lists", pod("containers: [{name: a, image: i}], initContainers: [{name: a, image: i}, {name: B_c, image: i}]"), []string{
			`spec.initContainers[0].name: is the name of another container, got "a"`, `spec.initContainers[1].name: ` + dnsLabel + `, got "B_c"`,
		}},
		"no containers": {"a pod without containers", pod("containers: []"), []string{"spec.containers: is required"}},
		"no spec":       {"a workload without a spec", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}`, []string{"spec: is required"}},
		"selector": {"the selector selects other pods", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: c}}, spec: {containers: [{name: a, image: i}]}}}}`, []string{
			"spec.template.metadata.labels: must match the selector a=b",
		}},
		"empty selector": {"the selector selects nothing", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a}, spec: {selector: {}, template: {metadata: {labels: {a: c}}, spec: {containers: [{name: a, image: i}]}}}}`, []string{
			"spec.selector: must select something: it is empty",
		}},
		"operator": {"no such operator", `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a}, spec: {selector: {matchExpressions: [{key: a, operator: Is}]}, template: {metadata: {labels: {a: c}}, spec: {containers: [{name: a, image: i}]}}}}`, []string{
			`spec.selector: is not a label selector: "Is" is not a valid label selector operator`,
		}},
		"restart": {"a workload's pods restart", `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Never, containers: [{name: a, image: i}]}}}}`, []string{
			`spec.template.spec.restartPolicy: must be Always, got "Never"`,
		}},
		"job":         {"a job's pods end", `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {spec: {containers: [{name: a, image: i}]}}}}`, []string{"spec.template.spec.restartPolicy: must be OnFailure or Never in a Job: the default is Always"}},
		"own labels":  {"nothing is made of the name", `{apiVersion: batch/v1, kind: Job, metadata: {name: ` + strings.Repeat("a", 64) + `}, spec: {manualSelector: true, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Never, containers: [{name: a, image: i}]}}}}`, nil},
		"claims":      {"mounts of a StatefulSet's claims", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {volumeClaimTemplates: [{metadata: {name: d}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}], selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: i, volumeMounts: [{name: d, mountPath: /d}]}]}}}}`, nil},
		"service":     {"several ports have names", `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: Loadbalancer, ports: [{port: 1}, {port: 2, name: B}]}}`, []string{"spec.ports[0].name: is required: the service has several ports", `spec.ports[1].name: ` + dnsLabel + `, got "B"`, `spec.type: must be one of ClusterIP, ExternalName, LoadBalancer, NodePort, got "Loadbalancer"`}},
		"key":         {"keys are names of files", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a/b: x, c: z}, binaryData: {c: AA==}}`, []string{`binaryData[c]: is a key of data, too`, `data[a/b]: must have a key of letters, digits, "-", "_" and ".", of at most 253 characters`}},
		"number data": {"data are strings", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {port: 80, tls: true}}`, []string{"data[port]: must be a string, got 80", "data[tls]: must be a string, got true"}},
		"secret": {"nothing of a secret is quoted", `{apiVersion: v1, kind: Secret, metadata: {name: a, labels: {x: hush hush}}, data: {a: hush!, b: 5}, stringData: {c: true}, type: 7, hush: 1}`, []string{
			"data[a]: must be base64", "data[b]: must be a string, got a number", `hush: unknown field "hush"`,
			"metadata.labels[x]: " + labelValue, "stringData[c]: must be a string, got true or false", "type: must be a string, got a number",
		}},
		"status":   {"status is read and dropped", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, status: {replicas: -5, conditions: [{type: X, status: "?"}]}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: i}]}}}}`, nil},
		"statuss":  {"but its types must be right", `{apiVersion: v1, kind: Namespace, metadata: {name: a}, status: {phase: 5, phas: x}}`, []string{`status.phas: unknown field "phas" (did you mean "phase"?)`, "status.phase: must be a string, got 5"}},
		"time":     {"times have a form", `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: a}, spec: {renewTime: today}}`, []string{`spec.renewTime: must be a date and time such as 2006-01-02T15:04:05Z, got "today"`}},
		"not made": {"fields that an API server fills", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, creationTimestamp: null, generation: 1}}`, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := clustertest.Documents(t, tc.object)[0]
			result := s.check(region, u)
			if len(result.Unchecked) > 0 {
				t.Errorf("%s: %v was not checked", tc.reason, result.Unchecked)
			}
			if diff := cmp.Diff(append([]string{}, tc.want...), lines(result.Violations)); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
			if err := s.dryRun(u); (err != nil) != (len(tc.want) > 0) {
				t.Errorf("%s: the API server says %v", tc.reason, err)
			}
		})
	}
}

// TestOldServer has the documents of an API server that checks less.
func TestOldServer(t *testing.T) {
	s := newServer(t)
	text, err := s.get(t.Context(), "/openapi/v3/apis/apps/v1")
	if err != nil {
		t.Fatal(err)
	}
	info := regexp.MustCompile(`("info":\{[^}]*"version":)"[^"]*"`)
	cases := map[string]struct {
		reason  string
		version string
		want    []string
	}{
		"new": {"it checks the pods of a StatefulSet", "v1.35.0", []string{
			"metadata.name: " + dnsLabel + `, got "a.b"`,
			"spec.template.spec.containers: is required",
			`spec.template.spec.restartPolice: unknown field "restartPolice" (did you mean "restartPolicy"?)`,
			"spec.volumeClaimTemplates[0].spec.accessModes: is required",
		}},
		"old": {"it checks their types only", "v1.34.7", []string{
			`spec.template.spec.restartPolice: unknown field "restartPolice" (did you mean "restartPolicy"?)`,
		}},
		"unknown": {"it may be old", "main", []string{
			`spec.template.spec.restartPolice: unknown field "restartPolice" (did you mean "restartPolicy"?)`,
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := &liar{
				index:     `{"paths": {"apis/apps/v1": {"serverRelativeURL": "/openapi/v3/apis/apps/v1"}}}`,
				documents: map[string]string{"/openapi/v3/apis/apps/v1": info.ReplaceAllString(string(text), `${1}"`+tc.version+`"`)},
			}
			u := clustertest.Documents(t, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a.b}, spec: {selector: {matchLabels: {a: b}},
				volumeClaimTemplates: [{metadata: {name: c}, spec: {}}], template: {metadata: {labels: {a: b}}, spec: {restartPolice: Always, containers: []}}}}`)[0]
			result, err := NewCache(Config{}).Region(l).Check(t.Context(), []Object{{Unstructured: u, Resource: "statefulsets"}})
			if err != nil || len(result.Unchecked) > 0 {
				t.Fatal(result.Unchecked, err)
			}
			if diff := cmp.Diff(tc.want, lines(result.Violations)); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNatives compares every entry of natives with a real API server: one object
// that it accepts has the field, and with a wrong value there it is refused.
func TestNatives(t *testing.T) {
	s := newServer(t)
	region := NewCache(Config{}).Region(s)
	proved := map[string]bool{}
	for _, u := range natural(t) {
		e, _, err := (&check{region: region}).documentOf(t.Context(), u.GroupVersionKind().GroupVersion())
		if err != nil {
			t.Fatal(err)
		}
		k, _, err := region.cache.kind(t.Context(), e, u.GroupVersionKind())
		if err != nil {
			t.Fatal(err)
		}
		names := map[*node]string{}
		for name, n := range e.document.types {
			names[n] = strings.TrimPrefix(name, "io.k8s.")
		}
		entries(k.root, u.Object, nil, names, func(entry string, path []any, wrong any) {
			if proved[entry] {
				return
			}
			changed := u.DeepCopy()
			alter(changed.Object, path, func(any, any) any { return wrong })
			if ours := s.check(region, changed).Violations; len(ours) > 0 && s.dryRun(changed) != nil {
				proved[entry] = true
			}
		})
	}
	for component, checks := range natives {
		for _, name := range checks.required {
			if entry := component + "." + name + " required"; !proved[entry] {
				t.Errorf("%s: no object shows that the API server holds to it", entry)
			}
		}
		for _, name := range checks.enums {
			if entry := component + "." + name + " enum"; !proved[entry] {
				t.Errorf("%s: no object shows that the API server holds to it", entry)
			}
		}
		for name := range checks.bounds {
			if entry := component + "." + name + " bounds"; !proved[entry] {
				t.Errorf("%s: no object shows that the API server holds to it", entry)
			}
		}
	}
}

// entries visits all places of an object that an entry of natives is about, with
// a wrong value for each.
func entries(n *node, v any, path []any, names map[*node]string, visit func(entry string, path []any, wrong any)) {
	at := func(step any) []any { return append(append([]any{}, path...), step) }
	switch v := v.(type) {
	case map[string]any:
		component := names[n]
		checks := natives[component]
		for _, name := range checks.required {
			if _, ok := v[name]; ok {
				visit(component+"."+name+" required", at(name), removed{})
			}
		}
		for _, name := range checks.enums {
			if list, ok := v[name].([]any); ok && len(list) > 0 {
				visit(component+"."+name+" enum", append(at(name), 0), "Bogus")
			} else if ok := v[name] != nil; ok {
				visit(component+"."+name+" enum", at(name), "Bogus")
			}
		}
		for name, b := range checks.bounds {
			if v[name] != nil {
				visit(component+"."+name+" bounds", at(name), int64(b.min)-1)
			}
		}
		for name := range v {
			if f := n.child(name); f != nil {
				entries(f, v[name], at(name), names, visit)
			}
		}
	case []any:
		for i := range v {
			if n.item != nil {
				entries(n.item, v[i], at(i), names, visit)
			}
		}
	}
}
