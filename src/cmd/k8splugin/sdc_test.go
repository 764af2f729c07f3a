package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/peer"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/sdc"
)

const sdcPassword, sdcKafkaPassword = "sdc-s3cret", "kafka-s3cret"

// designer is a simulated SDC, and a client of the service that uses it.
type designer struct {
	caller
	*simulator.Simulator

	parts *service // set when the service runs
}

// newDesigner starts SDC and a service.
func newDesigner(t *testing.T, mode string, edits ...func(*sdcSettings)) *designer {
	t.Helper()
	d := &designer{}
	var err error
	d.Simulator, err = simulator.New(simulator.Config{
		Users: map[string]string{"multicloud": sdcPassword}, KafkaUser: "multicloud-k8s-ku", KafkaPassword: sdcKafkaPassword, Deployed: d.deployed,
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(d.Simulator)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = d.Run(ctx) })
	t.Cleanup(func() { // after the service has ended
		stop()
		running.Wait()
		server.Close()
		d.Close()
	})
	dir := t.TempDir()
	write := func(name, content string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	settings := sdcSettings{
		URL: server.URL, Mode: mode, Consumer: "multicloud-k8s", Group: "multicloud", Environment: "auto", Poll: time.Hour,
		Files: peer.Files{User: write("user", "multicloud\n"), Password: write("password", sdcPassword+"\n")},
		Kafka: kafkaSettings{Security: "SASL_PLAINTEXT", JAASFile: write("jaas",
			`org.apache.kafka.common.security.scram.ScramLoginModule required username="multicloud-k8s-ku" password="`+sdcKafkaPassword+`";`)},
	}
	for _, edit := range edits {
		edit(&settings)
	}
	s := startBareService(t, func(c *Config) { c.SDC = settings })
	d.caller, d.parts = caller{testService: s, ns: clustertest.Namespace(t)}, s.parts
	return d
}

// deployed returns an error unless there is a definition.
func (d *designer) deployed(ctx context.Context, _ string) error {
	all, err := d.parts.bundles.Definitions(ctx, "")
	if err == nil && len(all) == 0 {
		err = errors.New("there is no definition")
	}
	return err
}

// join distributes an empty service until the service reports it, because a new group
// begins at the end of the topic.
func (d *designer) join() {
	d.t.Helper()
	empty, err := d.Put(simulator.Service{Name: "empty"})
	for tries := 0; err == nil; tries++ {
		var id string
		if id, err = d.Distribute(d.t.Context(), empty.UUID); err != nil {
			break
		}
		limited, cancel := context.WithTimeout(d.t.Context(), delay.Doubled(200*time.Millisecond, 5*time.Second, tries))
		_, late := d.Await(limited, id)
		cancel()
		if late == nil {
			return
		}
		err = d.t.Context().Err()
	}
	d.t.Fatal(err)
}

// distribute distributes a chart as the only VF module of a service, and returns the last
// status and the reasons of errors.
func (d *designer) distribute(name string, chart []byte) (last, reasons string) {
	d.t.Helper()
	s, err := d.Put(designed(name, chart))
	if err != nil {
		d.t.Fatal(err)
	}
	id, err := d.Distribute(d.t.Context(), s.UUID)
	if err != nil {
		d.t.Fatal(err)
	}
	all, err := d.Await(d.t.Context(), id)
	if err != nil || len(all) == 0 {
		d.t.Fatalf("%d statuses, %v", len(all), err)
	}
	if v := d.Violations(); len(v) > 0 {
		d.t.Errorf("violations: %q", v)
	}
	for _, m := range all {
		reasons += m.ErrorReason + "\n"
	}
	return all[len(all)-1].Status, reasons
}

func designed(name string, chart []byte) simulator.Service {
	return simulator.Service{UUID: name + "-service", Name: name, Resources: []simulator.Resource{{
		Instance: "vf 0", Name: "vf", Artifacts: []simulator.Artifact{{Name: "helm_vf.tgz", Type: "HELM", UUID: name + "-chart", Content: chart}},
		Modules: []simulator.Module{{Name: "Vf.." + name + "..module-0", InvariantUUID: name + "-invariant", UUID: name + "-model", CustomizationUUID: name + "-customization", Artifacts: []string{name + "-chart"}}},
	}}}
}

// designedChart is a chart with a ConfigMap of its release, which has a text.
func designedChart(text string) []byte {
	return rendertest.TarGz(map[string]string{
		"fw/Chart.yaml":        "apiVersion: v2\nname: fw\nversion: 1.0.0\n",
		"fw/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\ndata: {text: " + text + "}\n",
	})
}

// instantiate creates an instance of a distributed definition in the client's namespace.
func (d *designer) instantiate(name, release string) {
	d.t.Helper()
	d.ask("an instance", http.StatusCreated, "POST /v1/instance", map[string]any{
		"rb-name": name + "-invariant", "rb-version": name + "-customization", "profile-name": "vfw", "release-name": release, "cloud-region": "sandbox-sdc",
	})
}

func (d *designer) profile(name string) {
	d.t.Helper()
	at := "/v1/rb/definition/" + name + "-invariant/" + name + "-customization/profile"
	d.ask("a profile", http.StatusCreated, "POST "+at, map[string]any{
		"rb-name": name + "-invariant", "rb-version": name + "-customization", "profile-name": "vfw", "namespace": d.ns,
	})
	d.ask("its overlay", http.StatusOK, "POST "+at+"/vfw/content", rendertest.TarGz(map[string]string{"manifest.yaml": "version: v1\ntype: {values: values.yaml}\n", "values.yaml": "{}\n"}))
}

// TestSDCDistribution follows a service from its distribution to its instances, and
// through another distribution to its deletion.
func TestSDCDistribution(t *testing.T) {
	t.Parallel()
	d := newDesigner(t, sdcDistribution)
	d.register("sandbox-sdc")
	d.join()
	if last, reasons := d.distribute("vfw", designedChart("one")); last != "COMPONENT_DONE_OK" {
		t.Fatalf("%s: %s", last, reasons)
	}
	const at = "/v1/rb/definition/vfw-invariant/vfw-customization"
	made := d.ask("the module is a definition", http.StatusOK, "GET "+at, nil)
	d.has("with the labels of ONAP's broker", made, "labels", any(map[string]any{"vf_module_model_uuid": "vfw-model", "vf_module_model_name": "Vf..vfw..module-0"}))
	d.profile("vfw")
	d.instantiate("vfw", "first")
	text := func(release string) string {
		return value(t, d.there("the instance runs", "v1", "ConfigMap", release), "data", "text")
	}
	if got := text("first"); got != "one" {
		t.Errorf("the chart is that of SDC: %q", got)
	}
	if last, reasons := d.distribute("vfw", designedChart("two")); last != "COMPONENT_DONE_OK" {
		t.Fatalf("%s: %s", last, reasons)
	}
	d.instantiate("vfw", "second")
	got := []string{text("first"), text("second")}
	if diff := cmp.Diff([]string{"one", "two"}, got); diff != "" {
		t.Errorf("new instances have the new content, and others keep theirs (-want +got):\n%s", diff)
	}
	if err := d.Delete(t.Context(), "vfw-service"); err != nil {
		t.Fatal(err)
	}
	for tries := 0; ; tries++ {
		def, err := d.parts.bundles.Definition(t.Context(), "vfw-invariant", "vfw-customization")
		if err != nil || t.Context().Err() != nil {
			t.Fatalf("a deletion only marks the definition: %v", err)
		}
		if !def.Origin.Deleted.IsZero() {
			break
		}
		delay.For(t.Context(), delay.Doubled(time.Millisecond, time.Second, tries), nil)
	}
	for _, a := range d.list("the instances", d.ask("the instances", http.StatusOK, "GET /v1/instance", nil)) {
		id, _ := a["id"].(string)
		d.ask("an instance is removed", http.StatusAccepted, "DELETE /v1/instance/"+id, nil)
	}
}

// TestSDCOnDemand creates a profile of a definition that only SDC has.
func TestSDCOnDemand(t *testing.T) {
	t.Parallel()
	d := newDesigner(t, sdcOnDemand)
	d.register("sandbox-sdc")
	for _, name := range []string{"nat", "vfw"} {
		if _, err := d.Put(designed(name, designedChart(name))); err != nil {
			t.Fatal(err)
		}
	}
	d.profile("vfw")
	d.instantiate("vfw", "first")
	if got := value(t, d.there("the instance runs", "v1", "ConfigMap", "first"), "data", "text"); got != "vfw" {
		t.Errorf("the chart is that of SDC: %q", got)
	}
	all, err := d.parts.bundles.Definitions(t.Context(), "")
	if err != nil || len(all) != 1 {
		t.Errorf("only the definition that was named is stored: %d, %v", len(all), err)
	}
	d.fails("SDC does not have it either", "GET /v1/rb/definition/other/1")
	if a := d.do("POST", "/v1/rb/definition/other-invariant/other-customization/profile", map[string]any{
		"rb-name": "other-invariant", "rb-version": "other-customization", "profile-name": "p",
	}); a.status < 400 {
		t.Errorf("SDC does not have it either: %d", a.status)
	}
}

// TestSDCHostile distributes charts that are wrong or hostile. Nothing is stored.
func TestSDCHostile(t *testing.T) {
	t.Parallel()
	d := newDesigner(t, sdcDistribution)
	d.join()
	broken := func(more ...string) []byte {
		files := map[string]string{"fw/Chart.yaml": "apiVersion: v2\nname: fw\nversion: 1.0.0\n"}
		for i := 0; i+1 < len(more); i += 2 {
			files[more[i]] = more[i+1]
		}
		return rendertest.TarGz(files)
	}
	faulty := func(f simulator.Fault) *simulator.Fault { f.Path, f.Times = "helm_vf.tgz", -1; return &f }
	cases := map[string]struct {
		reason string
		chart  []byte
		fault  *simulator.Fault
		text   string
	}{
		"checksum":  {"the checksum differs", broken(), faulty(simulator.Fault{Damage: true}), "MD5"},
		"climbing":  {"the archive leaves its folder", broken("../../etc/passwd", "x"), nil, "parent"},
		"redirect":  {"the artifact is elsewhere", broken(), faulty(simulator.Fault{Redirect: "http://169.254.169.254/latest"}), "redirects"},
		"long":      {"the artifact is too large", broken(), faulty(simulator.Fault{Longer: 64 << 20}), "larger than"},
		"gone":      {"SDC does not have the artifact", broken(), faulty(simulator.Fault{Status: 404}), "404"},
		"template":  {"a template cannot be parsed", broken("fw/templates/a.yaml", "a: {{ nothing }}\n"), nil, "templates/a.yaml"},
		"no chart":  {"the archive has no chart", rendertest.TarGz(map[string]string{"a/b": "c"}), nil, "Chart.yaml"},
		"no gzip":   {"the artifact is no archive", []byte("<html>"), nil, "gzip"},
		"truncated": {"the archive is cut", broken()[:40], nil, "archive"},
	}
	stored := func() string {
		keys := slices.DeleteFunc(d.testService.keys(), func(key string) bool { return strings.HasPrefix(key, "sdc/") })
		return strings.Join(keys, "\n")
	}
	before := stored()
	for name, tc := range cases {
		if tc.fault != nil {
			d.Script(*tc.fault)
		}
		last, reasons := d.distribute(strings.ReplaceAll(name, " ", "-"), tc.chart)
		d.Repair()
		if last != "COMPONENT_DONE_ERROR" || !strings.Contains(reasons, tc.text) {
			t.Errorf("%s: %s: %s", tc.reason, last, reasons)
		}
		for _, secret := range []string{sdcPassword, sdcKafkaPassword, "169.254"} {
			if strings.Contains(reasons, secret) {
				t.Errorf("%s: %s is in %s", tc.reason, secret, reasons)
			}
		}
	}
	if diff := cmp.Diff(before, stored()); diff != "" {
		t.Errorf("nothing is stored (-want +got):\n%s", diff)
	}
}

// TestSDCSettings rejects settings that cannot be used.
func TestSDCSettings(t *testing.T) {
	t.Parallel()
	right := sdcSettings{URL: "http://sdc-be:8080", Mode: sdcDistribution, Consumer: "c", Group: "g", Environment: "AUTO", Poll: time.Hour,
		Kafka: kafkaSettings{Security: "SASL_PLAINTEXT", JAASFile: "f"}}
	cases := map[string]struct {
		reason string
		edit   func(*sdcSettings)
		wrong  string // setting; empty: none
	}{
		"right":        {"all is given", func(*sdcSettings) {}, ""},
		"off":          {"nothing is needed", func(s *sdcSettings) { *s = sdcSettings{Mode: sdcOff} }, ""},
		"on demand":    {"Kafka is not needed", func(s *sdcSettings) { s.Mode, s.Kafka = sdcOnDemand, kafkaSettings{} }, ""},
		"no mode":      {"a mode is a word", func(s *sdcSettings) { s.Mode = "on" }, "sdc-mode"},
		"no URL":       {"SDC has a URL", func(s *sdcSettings) { s.URL = "" }, "sdc-url"},
		"password":     {"a URL has no password", func(s *sdcSettings) { s.URL = "http://u:s3cret@sdc" }, "sdc-url"},
		"consumer":     {"a consumer has a name", func(s *sdcSettings) { s.Consumer = "a b" }, "sdc-consumer"},
		"group":        {"a group has a name", func(s *sdcSettings) { s.Group = "" }, "sdc-group, sdc-environment"},
		"brokers":      {"a broker has a port", func(s *sdcSettings) { s.Kafka.Brokers = "kafka" }, "kafka-brokers"},
		"security":     {"a security is a word", func(s *sdcSettings) { s.Kafka.Security = "TLS" }, "kafka-security"},
		"no password":  {"a login has a password", func(s *sdcSettings) { s.Kafka.JAASFile = "" }, "kafka-jaas-file, kafka-user-file, kafka-password-file"},
		"two forms":    {"a login is given once", func(s *sdcSettings) { s.Kafka.UserFile = "u" }, "kafka-jaas-file, kafka-user-file, kafka-password-file"},
		"two files":    {"a login may be two files", func(s *sdcSettings) { s.Kafka.JAASFile, s.Kafka.UserFile, s.Kafka.PasswordFile = "", "u", "p" }, ""},
		"without SASL": {"then there is no login", func(s *sdcSettings) { s.Kafka.JAASFile, s.Kafka.Security = "", "PLAINTEXT" }, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, got := right, ""
			tc.edit(&s)
			s.validate(func(name, _ string, args ...any) {
				if got = name; slices.ContainsFunc(args, func(a any) bool { return strings.Contains(a.(string), "s3cret") }) {
					t.Errorf("%s: a password is shown", tc.reason)
				}
			})
			if got != tc.wrong {
				t.Errorf("%s: %q is wrong, want %q", tc.reason, got, tc.wrong)
			}
		})
	}
}
