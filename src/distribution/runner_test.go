package distribution_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/distribution"
	"github.com/multicloud-k8s/k8splugin/src/kafka"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/sdc"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/sdc"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// shelf stores definitions. Content that begins with "bad" is not a chart.
type shelf struct {
	mu       sync.Mutex
	contents map[string]string
	models   []string
	deleted  []string
	down     int // calls that fail, because the store is unreachable
}

func (s *shelf) PutDefinition(_ context.Context, d distribution.Definition, chart io.Reader) (bool, error) {
	content, err := io.ReadAll(chart)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down > 0 {
		s.down--
		return false, nf.E(nf.Unreachable, "write", "definition", errors.New("the store is down"))
	}
	if strings.HasPrefix(string(content), "bad") {
		return false, nf.E(nf.Invalid, "check", "the chart", nf.Violations{{File: "fw/templates/a.yaml", Line: 7, Message: "function \"x\" not defined"}})
	}
	id := d.Name + "/" + d.Version
	changed := s.contents[id] != string(content)
	s.contents[id] = string(content)
	s.models = append(s.models, d.Model)
	return changed, nil
}

func (s *shelf) MarkDeleted(_ context.Context, service string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deleted = append(s.deleted, service)
	return 1, nil
}

func (s *shelf) content() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.contents["i/c"]
}

// world is a simulator and a runner that follows it.
type world struct {
	*simulator.Simulator

	t     *testing.T
	shelf *shelf
	log   *safeBuffer
}

const password = "s3cret-password"

// safeBuffer is a log that is read while it is written.
type safeBuffer struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.Write(p)
}

func (b *safeBuffer) has(text string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Contains(b.out.String(), text)
}

// startSDC starts a simulator, and returns it with a client that downloads at most limit
// bytes; 0: its default.
func startSDC(t *testing.T, limit int64) (*simulator.Simulator, *sdc.Client) {
	t.Helper()
	s, err := simulator.New(simulator.Config{Users: map[string]string{"multicloud": password}, KafkaUser: "kafka", KafkaPassword: password})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client, err := sdc.NewClient(sdc.Config{
		URL: server.URL, Consumer: "multicloud-k8s", NewID: simulator.NewUUID, Transport: server.Client().Transport, Limit: limit,
		Credentials: func(context.Context) (string, nf.Secret) { return "multicloud", nf.Secret(password) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s, client := startSDC(t, 1<<16)
	w := &world{Simulator: s, t: t, shelf: &shelf{contents: map[string]string{}}, log: &safeBuffer{}}
	const deletions = "SDC-DISTR-DELETE-TOPIC-AUTO"
	joined := make(chan struct{}, 1000)
	runner, err := distribution.New(distribution.Config{
		KV: memory.New(), Catalog: client, Definitions: w.shelf, Consumer: "multicloud-k8s", Component: "multicloud", Deletions: deletions, Pause: time.Millisecond, Logger: slog.New(slog.NewTextHandler(w.log, nil)),
		Observe: func(string) { joined <- struct{}{} },
		Open: func(topics sdc.KafkaTopics) (distribution.Bus, error) {
			return kafka.Open(kafka.Config{
				Brokers: []string{topics.Brokers}, Group: "multicloud", Topics: []string{topics.Notification, deletions},
				Credentials: func(context.Context) (string, nf.Secret, error) { return "kafka", nf.Secret(password), nil },
			})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = runner.Run(ctx) })
	running.Go(func() { _ = w.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	w.join(joined)
	return w
}

// join distributes an empty service until the runner reports it: a new group begins at
// the end of the topic.
func (w *world) join(joined <-chan struct{}) {
	w.t.Helper()
	empty := w.put(simulator.Service{Name: "empty"})
	for {
		if _, err := w.Distribute(w.t.Context(), empty.UUID); err != nil {
			w.t.Fatal(err)
		}
		if delay.For(w.t.Context(), 200*time.Millisecond, joined) {
			return
		}
		if w.t.Context().Err() != nil {
			w.t.Fatal("the runner does not join")
		}
	}
}

func (w *world) put(s simulator.Service) simulator.Service {
	w.t.Helper()
	s, err := w.Put(s)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// distribute returns the statuses of a distribution: "DEPLOY_OK helm_vf.tgz".
func (w *world) distribute(s simulator.Service) (out []string, reasons string) {
	w.t.Helper()
	s = w.put(s)
	id, err := w.Distribute(w.t.Context(), s.UUID)
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := w.Await(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range all {
		name := m.ArtifactURL[strings.LastIndex(m.ArtifactURL, "/")+1:]
		out = append(out, strings.TrimSpace(m.Status+" "+name))
		reasons += m.ErrorReason + "\n"
	}
	if v := w.Violations(); len(v) > 0 {
		w.t.Errorf("violations: %q", v)
	}
	return out, reasons
}

// firewall is a service with a module whose chart has a content.
func firewall(content string) simulator.Service {
	return simulator.Service{UUID: "service-1", Name: "Vfw", Artifacts: []simulator.Artifact{{Name: "service.csar", Type: "TOSCA_CSAR", Content: []byte("x")}}, Resources: []simulator.Resource{{
		Instance: "vf 0", Name: "vf", Artifacts: []simulator.Artifact{
			{Name: "helm_vf.tgz", Type: "HELM", UUID: "chart-1", Content: []byte(content)},
			{Name: "base.env", Type: "HEAT_ENV", Content: []byte("x")},
			{Name: "generated.tgz", Type: "HELM", GeneratedFrom: "unknown", Content: []byte("x")},
		},
		Modules: []simulator.Module{{Name: "Vfw..helm_vf..module-0", InvariantUUID: "i", UUID: "u", CustomizationUUID: "c", Artifacts: []string{"chart-1"}}},
	}}}
}

var notified = []string{"NOT_NOTIFIED service.csar", "NOTIFIED helm_vf.tgz", "NOT_NOTIFIED base.env", "NOT_NOTIFIED generated.tgz", "NOTIFIED vf0_modules.json"}

// TestLife distributes a service, again, with other content, and deletes it.
func TestLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	want := func(reason string, got []string, rest ...string) {
		t.Helper()
		if diff := cmp.Diff(slices.Concat(notified, rest), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
	got, _ := w.distribute(firewall("one"))
	want("a service is distributed", got, "DOWNLOAD_OK vf0_modules.json", "DEPLOY_OK vf0_modules.json", "DOWNLOAD_OK helm_vf.tgz", "DEPLOY_OK helm_vf.tgz", "COMPONENT_DONE_OK")
	got, _ = w.distribute(firewall("one"))
	want("the same content is not deployed again", got, "DOWNLOAD_OK vf0_modules.json", "ALREADY_DEPLOYED vf0_modules.json", "DOWNLOAD_OK helm_vf.tgz", "ALREADY_DEPLOYED helm_vf.tgz", "COMPONENT_DONE_OK")
	got, _ = w.distribute(firewall("two"))
	want("other content is deployed", got, "DOWNLOAD_OK vf0_modules.json", "DEPLOY_OK vf0_modules.json", "DOWNLOAD_OK helm_vf.tgz", "DEPLOY_OK helm_vf.tgz", "COMPONENT_DONE_OK")
	got, reasons := w.distribute(firewall("bad"))
	want("a chart that is wrong is reported", got, "DOWNLOAD_OK vf0_modules.json", "DEPLOY_ERROR vf0_modules.json", "DOWNLOAD_OK helm_vf.tgz", "DEPLOY_ERROR helm_vf.tgz", "COMPONENT_DONE_ERROR")
	if !strings.Contains(reasons, "fw/templates/a.yaml:7") || w.shelf.content() != "two" {
		t.Errorf("the reason is that of the chart's check, and the definition stays: %s", reasons)
	}
	if err := w.Delete(t.Context(), "service-1"); err != nil {
		t.Fatal(err)
	}
	w.distribute(simulator.Service{Name: "later"}) // the other topic may be later
	for tries := 0; len(w.shelf.marked()) == 0 && t.Context().Err() == nil; tries++ {
		delay.For(t.Context(), delay.Doubled(time.Millisecond, time.Second, tries), nil)
	}
	if w.shelf.content() != "two" {
		t.Error("a deletion removes nothing")
	}
}

func (s *shelf) marked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.deleted)
}

// TestHostile distributes services with artifacts that are wrong.
func TestHostile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	always := func(f simulator.Fault) simulator.Fault { f.Times, f.Path = -1, "helm_vf.tgz"; return f }
	done := []string{"DOWNLOAD_OK vf0_modules.json", "DEPLOY_ERROR vf0_modules.json", "DOWNLOAD_ERROR helm_vf.tgz", "COMPONENT_DONE_ERROR"}
	cases := []struct {
		reason string
		fault  simulator.Fault
		edit   func(*simulator.Service)
		want   []string
		text   string
	}{
		{"a damaged artifact is not deployed", always(simulator.Fault{Damage: true}), nil, done, "MD5"},
		{"nor one that SDC does not have", always(simulator.Fault{Status: 404}), nil, done, "404"},
		{"nor one that is too large", always(simulator.Fault{Longer: 1 << 20}), nil, done, "larger than"},
		{"a redirect is not followed", always(simulator.Fault{Redirect: "http://169.254.169.254/x"}), nil, done, "redirects"},
		{"modules without ids are reported", simulator.Fault{}, func(s *simulator.Service) { s.Resources[0].Modules[0].InvariantUUID = "" },
			[]string{"DOWNLOAD_OK vf0_modules.json", "DEPLOY_ERROR vf0_modules.json", "COMPONENT_DONE_ERROR"}, "vfModuleModelInvariantUUID"},
		{"modules that cannot be downloaded are reported", simulator.Fault{Path: "_modules.json", Times: -1, Cut: true}, nil,
			[]string{"DOWNLOAD_ERROR vf0_modules.json", "COMPONENT_DONE_ERROR"}, "closed"},
		{"a module may have no chart", simulator.Fault{}, func(s *simulator.Service) { s.Resources[0].Modules[0].Artifacts = nil },
			[]string{"DOWNLOAD_OK vf0_modules.json", "ALREADY_DEPLOYED vf0_modules.json", "COMPONENT_DONE_OK"}, ""},
		{"other resources have no modules", simulator.Fault{}, func(s *simulator.Service) { s.Resources[0].Type = "PNF" }, []string{"COMPONENT_DONE_OK"}, ""},
		{"a failure that passes is retried", simulator.Fault{Path: "helm_vf.tgz", Cut: true}, nil,
			[]string{"DOWNLOAD_OK vf0_modules.json", "DEPLOY_OK vf0_modules.json", "DOWNLOAD_OK helm_vf.tgz", "DEPLOY_OK helm_vf.tgz", "COMPONENT_DONE_OK"}, ""},
	}
	for _, tc := range cases {
		s := firewall("one")
		if tc.edit != nil {
			tc.edit(&s)
		}
		if tc.fault.Path != "" {
			w.Script(tc.fault)
		}
		got, reasons := w.distribute(s)
		w.Repair()
		if diff := cmp.Diff(slices.Concat(notified, tc.want), got); diff != "" || !strings.Contains(reasons, tc.text) || strings.Contains(reasons, "169.254") {
			t.Errorf("%s: %s (-want +got):\n%s", tc.reason, reasons, diff)
		}
		if w.log.has(password) || w.log.has("169.254") {
			t.Errorf("%s: a password, or another address, is in the log", tc.reason)
		}
		if stored := w.shelf.content(); (stored != "") != slices.Contains(tc.want, "DEPLOY_OK helm_vf.tgz") {
			t.Errorf("%s: stored %q", tc.reason, stored)
		}
	}
}

// TestMalformed ignores messages that are none, and repeats one when the store was down.
func TestMalformed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, message := range []string{"", "{", "[]", `{"distributionID": 1}`, strings.Repeat("x", 1<<10)} {
		if err := w.Notify(t.Context(), []byte(message)); err != nil {
			t.Fatal(err)
		}
	}
	w.shelf.mu.Lock()
	w.shelf.down = 1
	w.shelf.mu.Unlock()
	s := w.put(firewall("one"))
	id, err := w.Distribute(t.Context(), s.UUID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Await(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if w.shelf.content() != "one" {
		t.Error("the notification was not handled again")
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	if _, err := distribution.New(distribution.Config{}); err == nil {
		t.Error("a runner needs its parts")
	}
}
