package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	releasecommon "helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
)

// helmVariable names a helm program that makes the releases of the tests:
//
//	go build -modfile=tools/helm/go.mod -o bin/helm helm.sh/helm/v4/cmd/helm
//
// Without one the test does what that does: it is not linked, for it would bring
// more modules than all the rest.
const helmVariable = "K8SPLUGIN_TEST_HELM"

// releases makes releases in a namespace of the sandbox.
type releases struct {
	t      *testing.T
	ns     string
	client dynamic.Interface
}

func newReleases(t *testing.T) *releases {
	t.Helper()
	cfg, err := clientcmd.RESTConfigFromKubeConfig(clustertest.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	h := &releases{t: t, ns: clustertest.Namespace(t)}
	if h.client, err = dynamic.NewForConfig(cfg); err != nil {
		t.Fatal(err)
	}
	h.create("", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": h.ns}})
	return h
}

// api returns the objects of a kind in the namespace.
func (h *releases) api(kind string) dynamic.ResourceInterface {
	h.t.Helper()
	r, ok := map[string]schema.GroupVersionResource{
		"Namespace": {Version: "v1", Resource: "namespaces"}, "Pod": {Version: "v1", Resource: "pods"}, "Service": {Version: "v1", Resource: "services"},
		"ConfigMap": {Version: "v1", Resource: "configmaps"}, "Secret": {Version: "v1", Resource: "secrets"},
		"Deployment": {Group: "apps", Version: "v1", Resource: "deployments"}, "Job": {Group: "batch", Version: "v1", Resource: "jobs"},
	}[kind]
	if !ok {
		h.t.Fatalf("nobody knows %s", kind)
	}
	if kind == "Namespace" {
		return h.client.Resource(r)
	}
	return h.client.Resource(r).Namespace(h.ns)
}

func (h *releases) create(manager string, object map[string]any) {
	h.t.Helper()
	o := &unstructured.Unstructured{Object: object}
	if _, err := h.api(o.GetKind()).Create(h.t.Context(), o, metav1.CreateOptions{FieldManager: manager}); err != nil {
		h.t.Fatal(err)
	}
}

// get returns an object, which must be there.
func (h *releases) get(kind, name string) *unstructured.Unstructured {
	h.t.Helper()
	o, err := h.api(kind).Get(h.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	return o
}

// install installs a chart's release, by server-side apply or as Helm 3 did.
func (h *releases) install(name string, files map[string]string, values string, serverSide bool) {
	h.t.Helper()
	dir := h.t.TempDir()
	for file, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			h.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			h.t.Fatal(err)
		}
	}
	if program := os.Getenv(helmVariable); program != "" {
		h.run(program, dir, "install", name, filepath.Join(dir, "page"), "--values", "-", fmt.Sprintf("--server-side=%v", serverSide), values)
		return
	}
	chart, err := loader.Load(filepath.Join(dir, "page"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.keep(h.apply(h.release(name, chart, values), serverSide), releasecommon.StatusDeployed)
}

// run runs helm; the last argument is its standard input.
func (h *releases) run(program, dir string, args ...string) {
	h.t.Helper()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, clustertest.Kubeconfig(h.t), 0o600); err != nil {
		h.t.Fatal(err)
	}
	last := len(args) - 1
	cmd := exec.CommandContext(h.t.Context(), program, append([]string{"--kubeconfig", kubeconfig, "--namespace", h.ns}, args[:last]...)...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+dir, "HELM_CONFIG_HOME="+dir, "HELM_DATA_HOME="+dir)
	cmd.Stdin = strings.NewReader(args[last])
	if out, err := cmd.CombinedOutput(); err != nil {
		h.t.Fatalf("helm %s: %v\n%s", strings.Join(args[:last], " "), err, out)
	}
}

// release returns what Helm makes of a chart and values.
func (h *releases) release(name string, chart *chartv2.Chart, values string) *releasev1.Release {
	h.t.Helper()
	given, err := common.ReadValues([]byte(values))
	if err != nil {
		h.t.Fatal(err)
	}
	options := common.ReleaseOptions{Name: name, Namespace: h.ns, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, given, options, common.DefaultCapabilities)
	if err != nil {
		h.t.Fatal(err)
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		h.t.Fatal(err)
	}
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		h.t.Fatal(err)
	}
	r := &releasev1.Release{Name: name, Namespace: h.ns, Version: 1, Chart: chart, Config: given, Hooks: hooks}
	for _, m := range manifests {
		r.Manifest += fmt.Sprintf("---\n# Source: %s\n%s\n", m.Name, m.Content)
	}
	return r
}

// apply makes the objects of a release, with Helm's marks on all but hooks.
func (h *releases) apply(r *releasev1.Release, serverSide bool) *releasev1.Release {
	h.t.Helper()
	r.ApplyMethod = string(releasev1.ApplyMethodClientSideApply)
	if serverSide {
		r.ApplyMethod = string(releasev1.ApplyMethodServerSideApply)
	}
	var texts []string
	for _, hook := range r.Hooks {
		if slices.Contains(hook.Events, releasev1.HookPostInstall) {
			texts = append(texts, hook.Manifest)
		}
	}
	hooks := len(texts)
	for i, text := range append(texts, strings.Split(r.Manifest, "---\n")[1:]...) {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			h.t.Fatal(err)
		}
		o.SetNamespace(h.ns)
		if i >= hooks {
			o.SetLabels(added(o.GetLabels(), "app.kubernetes.io/managed-by", "Helm"))
			o.SetAnnotations(added(added(o.GetAnnotations(), "meta.helm.sh/release-name", r.Name), "meta.helm.sh/release-namespace", r.Namespace))
		}
		if !serverSide {
			h.create("helm", o.Object)
			continue
		}
		if _, err := h.api(o.GetKind()).Apply(h.t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "helm"}); err != nil {
			h.t.Fatal(err)
		}
	}
	return r
}

func added(to map[string]string, key, value string) map[string]string {
	if to == nil {
		to = map[string]string{}
	}
	to[key] = value
	return to
}

func recordName(release string, revision int) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", release, revision)
}

// keep writes the record of a release as Helm does.
func (h *releases) keep(r *releasev1.Release, status releasecommon.Status) {
	h.t.Helper()
	r.Info = &releasev1.Info{FirstDeployed: time.Now(), LastDeployed: time.Now(), Status: status}
	text, err := json.Marshal(r)
	if err != nil {
		h.t.Fatal(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(text); err != nil {
		h.t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		h.t.Fatal(err)
	}
	inner := base64.StdEncoding.EncodeToString(packed.Bytes())
	h.create("helm", map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
		"metadata": map[string]any{"name": recordName(r.Name, r.Version), "labels": map[string]any{
			"name": r.Name, "owner": "helm", "status": string(status), "version": fmt.Sprint(r.Version), "createdAt": fmt.Sprint(time.Now().Unix()),
		}},
		"data": map[string]any{"release": base64.StdEncoding.EncodeToString([]byte(inner))},
	})
}

// upgrading leaves a release as Helm does that was stopped in an upgrade.
func (h *releases) upgrading(name string) {
	h.t.Helper()
	data, _, _ := unstructured.NestedString(h.get("Secret", recordName(name, 1)).Object, "data", "release")
	var r releasev1.Release
	if err := json.Unmarshal(unpacked(h.t, data), &r); err != nil {
		h.t.Fatal(err)
	}
	r.Version = 2
	h.keep(&r, releasecommon.StatusPendingUpgrade)
}

// unpacked returns the JSON of a record.
func unpacked(t *testing.T, data string) []byte {
	t.Helper()
	outer, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := base64.StdEncoding.DecodeString(string(outer))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(inner))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := out.ReadFrom(z); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// pods returns the uids of a Deployment's pods, once all of them are there.
func (h *releases) pods(name string) map[types.UID]bool {
	h.t.Helper()
	w, err := h.api("Deployment").Watch(h.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		h.t.Fatal(err)
	}
	defer w.Stop()
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for up := false; !up; {
		select {
		case e := <-w.ResultChan():
			o, _ := e.Object.(*unstructured.Unstructured)
			wanted, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
			ready, _, _ := unstructured.NestedInt64(o.Object, "status", "readyReplicas")
			up = wanted == ready
		case <-late.C:
			h.t.Fatalf("the pods of %s do not come", name)
		}
	}
	list, err := h.api("Pod").List(h.t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		h.t.Fatal(err)
	}
	uids := map[types.UID]bool{}
	for _, pod := range list.Items {
		uids[pod.GetUID()] = true
	}
	return uids
}
