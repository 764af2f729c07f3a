package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartlint "helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	kubeyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const (
	deployments = "../../../deployments"
	chartFolder = deployments + "/helm/k8splugin"
)

// sound are values that decide what has no default, and nothing else.
const sound = "keys: {existingSecret: site-keys}\naccess: {existingSecret: site-access}\n"

// release is what the chart makes of values.
type release struct {
	objects map[string]any // by kind and name; typed, where the type is Kubernetes' own
	notes   string
}

// renderChart renders the chart as `helm install` does, without a cluster.
func renderChart(t *testing.T, values string) (release, error) {
	t.Helper()
	chart, err := loader.Load(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	given, err := common.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	options := common.ReleaseOptions{Name: "site", Namespace: "nfv", Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, given, options, common.DefaultCapabilities)
	if err != nil {
		return release{}, err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return release{}, err
	}
	out := release{objects: map[string]any{}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, "NOTES.txt") {
			out.notes = files[name]
			continue
		}
		if err := out.add(files[name]); err != nil {
			t.Fatalf("%s: %v in\n%s", name, err, files[name])
		}
	}
	return out, nil
}

// add reads the documents of a file. A field that a kind does not have is an
// error: the API server would drop it silently.
func (r release) add(file string) error {
	documents := kubeyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(file)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var any struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
		}
		if err := yaml.Unmarshal(document, &any); err != nil {
			return err
		}
		if any.Kind == "" && len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		key := any.Kind + "/" + any.Metadata.Name
		if _, twice := r.objects[key]; twice || any.Metadata.Namespace != "nfv" {
			return fmt.Errorf("%s occurs twice, or not in the release's namespace", key)
		}
		object := typed(any.Kind)
		if err := yaml.UnmarshalStrict(document, object); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		r.objects[key] = object
	}
}

func typed(kind string) any {
	switch kind {
	case "Deployment":
		return &appsv1.Deployment{}
	case "StatefulSet":
		return &appsv1.StatefulSet{}
	case "Service":
		return &corev1.Service{}
	case "ServiceAccount":
		return &corev1.ServiceAccount{}
	case "ConfigMap":
		return &corev1.ConfigMap{}
	case "Secret":
		return &corev1.Secret{}
	case "NetworkPolicy":
		return &networkingv1.NetworkPolicy{}
	case "PodDisruptionBudget":
		return &policyv1.PodDisruptionBudget{}
	default:
		return &map[string]any{}
	}
}

// pod returns the template of the service's pods.
func (r release) pod(t *testing.T) corev1.PodTemplateSpec {
	t.Helper()
	for _, o := range r.objects {
		switch w := o.(type) {
		case *appsv1.Deployment:
			return w.Spec.Template
		case *appsv1.StatefulSet:
			return w.Spec.Template
		}
	}
	t.Fatal("there is no workload")
	return corev1.PodTemplateSpec{}
}

// object returns an object of the release.
func object[T any](t *testing.T, r release, key string) *T {
	t.Helper()
	o, ok := r.objects[key].(*T)
	if !ok {
		t.Fatalf("there is no %s in %v", key, slices.Sorted(maps.Keys(r.objects)))
	}
	return o
}

// config returns the configuration that the service reads in its pod, from the
// flags, the environment and the file that the pod gives it.
func (r release) config(t *testing.T) Config {
	t.Helper()
	container := r.pod(t).Spec.Containers[0]
	settings := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(settings, []byte(object[corev1.ConfigMap](t, r, "ConfigMap/site-k8splugin").Data["config.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	args := slices.Clone(container.Args)
	if args[0] != "serve" || args[1] != "--config" || args[2] != "/etc/k8splugin/config/config.yaml" {
		t.Fatalf("the service is started with %q", args)
	}
	args[2] = settings
	cfg, err := loadConfig(serveFlags(t, args[1:]...), func(name string) string {
		for _, e := range container.Env {
			if e.Name == name && e.ValueFrom != nil {
				return map[string]string{"K8SPLUGIN_STORE": "mongodb://from-the-secret"}[name]
			} else if e.Name == name {
				return e.Value
			}
		}
		return ""
	})
	if err != nil {
		t.Errorf("the service would not start: %v", err)
	}
	return cfg
}

// serveFlags are the flags of `k8splugin serve`.
func serveFlags(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	cmd := serveCommand(testProcess(io.Discard, io.Discard))
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return cmd.Flags()
}

func TestChartIsSound(t *testing.T) {
	t.Parallel()
	values, err := common.ReadValues([]byte(sound))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range chartlint.RunAll(chartFolder, values, "nfv").Messages {
		if m.Severity > support.InfoSev {
			t.Error(m)
		}
	}
	rules, err := os.ReadFile(deployments + "/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	copied, err := os.ReadFile(chartFolder + "/files/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(rules), string(copied)); diff != "" {
		t.Errorf("the chart's alerts are not those of deployments/prometheus/alerts.yaml: copy the file (-want +got):\n%s", diff)
	}
}

// TestChartInstalls renders the chart for one site after the other. Whatever the
// values, the service must start with what its pod gives it, every file in its
// settings must be mounted, and the pod must be one that a namespace of
// the level "restricted" lets in.
func TestChartInstalls(t *testing.T) {
	t.Parallel()
	for name, tc := range installations() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := renderChart(t, tc.values)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.objects, slices.Sorted(maps.Keys(r.objects))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			cfg, pod := r.config(t), r.pod(t)
			for _, finding := range unrestricted(pod.Spec) {
				t.Errorf("%s: %s", tc.reason, finding)
			}
			for _, file := range []string{cfg.KeyFile, cfg.AccessFile, cfg.TLSCert, cfg.TLSKey, cfg.TLSClientCA, cfg.AuditFile} {
				if file != "" && !mounted(pod.Spec, filepath.Dir(file)) {
					t.Errorf("%s: nothing is mounted where %s is", tc.reason, file)
				}
			}
			if cfg.Store == "etcd" && !mounted(pod.Spec, filepath.Dir(cfg.Data)) {
				t.Errorf("%s: nothing is mounted where %s is", tc.reason, cfg.Data)
			}
			if tc.check != nil {
				tc.check(t, r, cfg)
			}
		})
	}
}

// mounted reports whether a volume that the pod has is mounted at a folder.
func mounted(pod corev1.PodSpec, folder string) bool {
	claims := []string{"data"} // of the StatefulSet
	for _, m := range pod.Containers[0].VolumeMounts {
		if m.MountPath == folder {
			return slices.Contains(claims, m.Name) || slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		}
	}
	return false
}

// unrestricted says what keeps a pod out of a namespace of the level
// "restricted", and what else the service can do without.
func unrestricted(pod corev1.PodSpec) []string {
	var findings []string
	must := func(ok bool, what string) {
		if !ok {
			findings = append(findings, what)
		}
	}
	yes := func(b *bool) bool { return b != nil && *b }
	no := func(b *bool) bool { return b != nil && !*b }
	must(pod.SecurityContext != nil && yes(pod.SecurityContext.RunAsNonRoot), "the pod may run as root")
	must(pod.SecurityContext.SeccompProfile != nil && pod.SecurityContext.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault, "the pod has no seccomp profile")
	must(no(pod.AutomountServiceAccountToken), "the pod is given a token")
	must(no(pod.EnableServiceLinks), "Services can look like settings")
	must(!pod.HostNetwork && !pod.HostPID && !pod.HostIPC, "the pod shares something with its node")
	for _, v := range pod.Volumes {
		must(v.HostPath == nil, "a volume is of the node")
		must(v.Secret == nil || v.Secret.DefaultMode != nil && *v.Secret.DefaultMode == 0o440, "the Secret of volume "+v.Name+" can be read by others, so the service would refuse it")
	}
	c := pod.Containers[0]
	must(c.SecurityContext != nil, "the container has no security context")
	if s := c.SecurityContext; s != nil {
		must(no(s.AllowPrivilegeEscalation), "the container may get more privileges")
		must(yes(s.ReadOnlyRootFilesystem), "the container may write to its image")
		must(yes(s.RunAsNonRoot), "the container may run as root")
		must(s.Capabilities != nil && slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) && len(s.Capabilities.Add) == 0, "the container has capabilities")
	}
	must(c.Resources.Requests.Memory().Sign() > 0 && c.Resources.Limits.Memory().Sign() > 0, "the container has no memory request or limit")
	must(c.StartupProbe != nil && c.LivenessProbe != nil && c.LivenessProbe.HTTPGet.Path == "/healthz", "nobody asks whether the process serves")
	must(c.ReadinessProbe != nil && c.ReadinessProbe.HTTPGet.Path == "/readyz", "nobody asks whether the replica is ready")
	return findings
}

func TestUnrestrictedFinds(t *testing.T) {
	t.Parallel()
	r, err := renderChart(t, sound)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		spoil  func(*corev1.PodSpec)
	}{
		"Root":         {"a pod that may run as root is not restricted", func(p *corev1.PodSpec) { p.SecurityContext.RunAsNonRoot = nil }},
		"Capabilities": {"capabilities are not restricted", func(p *corev1.PodSpec) { p.Containers[0].SecurityContext.Capabilities = nil }},
		"Writing":      {"the image is not to be written to", func(p *corev1.PodSpec) { p.Containers[0].SecurityContext.ReadOnlyRootFilesystem = nil }},
		"Token":        {"the service needs no token", func(p *corev1.PodSpec) { p.AutomountServiceAccountToken = nil }},
		"Modes":        {"keys that others can read are refused by the service", func(p *corev1.PodSpec) { p.Volumes[1].Secret.DefaultMode = nil }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template := r.pod(t)
			pod := template.Spec.DeepCopy()
			if found := unrestricted(*pod); len(found) > 0 {
				t.Fatalf("the chart's own pod: %q", found)
			}
			tc.spoil(pod)
			if found := unrestricted(*pod); len(found) != 1 {
				t.Errorf("%s: found %q", tc.reason, found)
			}
		})
	}
}
