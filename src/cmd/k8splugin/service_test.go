package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	k8splugin "github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/northbound/northboundtest"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// testService is the whole service on its own port, with an in-memory
// store that the test can look into, and the sandbox as region "sandbox".
type testService struct {
	t      *testing.T
	url    string
	client *http.Client // compares every answer with swagger.yaml
	db     *secureStore
	parts  *service
}

func startService(t *testing.T, edit ...func(*Config)) *testService {
	t.Helper()
	s := startBareService(t, edit...)
	s.want(http.StatusCreated, s.do("POST", "/v1/cloud_regions", map[string]any{
		"cloud_region_id": "sandbox", "kubeconfig": base64.StdEncoding.EncodeToString(clustertest.Kubeconfig(t)),
	}))
	return s
}

// startBareService starts a service that knows no region.
func startBareService(t *testing.T, edit ...func(*Config)) *testService {
	t.Helper()
	return startServiceOver(t, nil, edit...)
}

// startServiceOver starts a service whose database has a decorator. It keeps no records
// in memory, so that the decorator sees all reads. Without a decorator, it does.
func startServiceOver(t *testing.T, decorate func(store.KV) store.KV, edit ...func(*Config)) *testService {
	t.Helper()
	// Kubernetes deletes a namespace ever more slowly while definitions come and go.
	cfg := Config{Store: "memory", LogLevel: "info", LogFormat: "text", Workers: 16, OperationTimeout: 15 * time.Minute, SyncWait: 15 * time.Minute, DrainTimeout: 10 * time.Second, MaxPackage: 1 << 20, Retention: time.Hour, ProtectMetrics: true}
	for _, e := range edit {
		e(&cfg)
	}
	obs, err := cfg.observability(t.Context(), process{stderr: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	open := func() (*secureStore, error) { return openSecureStore(t.Context(), cfg, obs, nil) }
	if decorate != nil {
		open = func() (*secureStore, error) { return openOver(t.Context(), cfg, obs.log, decorate) }
	}
	db, err := open()
	if err != nil {
		t.Fatal(err)
	}
	s := &testService{t: t, client: northboundtest.Client(t, k8splugin.Swagger), db: db}
	parts, err := assemble(t.Context(), cfg, db, obs)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.parts = parts
	s.url = "http://" + listener.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- parts.run(ctx, listener, cfg.DrainTimeout) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// untilIndexed waits until lists with filters use the index.
func untilIndexed(t testing.TB, parts *service) {
	t.Helper()
	for tries := 0; ; tries++ {
		waiting := false
		for _, table := range parts.index.Status() {
			waiting = waiting || !table.Filled
		}
		if !waiting {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal("the index is not filled")
		}
		delay.For(t.Context(), delay.Doubled(time.Millisecond, time.Second, tries), nil)
	}
}

// answer is what came back.
type answer struct {
	request string
	status  int
	header  http.Header
	body    []byte
}

func (s *testService) do(method, path string, body any) answer {
	s.t.Helper()
	return s.send(s.t.Context(), method, path, body)
}

// async sends a request that does not wait for its operation.
func (s *testService) async(method, path string, body any) answer {
	s.t.Helper()
	return s.send(s.t.Context(), method, path, body, "Prefer", "respond-async")
}

// send sends one request; a body that is bytes is sent as they are. Headers are
// pairs of name and value.
func (s *testService) send(ctx context.Context, method, path string, body any, headers ...string) answer {
	s.t.Helper()
	content, raw := body.([]byte)
	if !raw && body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			s.t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(content))
	if err != nil {
		s.t.Fatal(err)
	}
	switch {
	case raw:
		req.Header.Set("Content-Type", "application/zip")
	case body != nil && method == http.MethodPatch:
		req.Header.Set("Content-Type", "application/merge-patch+json")
	case body != nil:
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{request: method + " " + path, body: []byte(err.Error())}
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{request: method + " " + path, status: resp.StatusCode, header: resp.Header, body: got}
}

// want fails the test unless the status is the wanted one.
func (s *testService) want(status int, a answer) answer {
	s.t.Helper()
	if a.status != status {
		s.t.Fatalf("%s: status %d, want %d: %s", a.request, a.status, status, a.body)
	}
	return a
}

// field returns a value of the JSON answer by its dotted path.
func (a answer) field(t *testing.T, path string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(a.body, &value); err != nil {
		t.Fatalf("%s: %v in %s", a.request, err, a.body)
	}
	for key := range strings.SplitSeq(path, ".") {
		m, ok := value.(map[string]any)
		if !ok {
			t.Fatalf("%s: no %s in %s", a.request, path, a.body)
		}
		value = m[key]
	}
	return value
}

func (a answer) text(t *testing.T, path string) string {
	t.Helper()
	text, _ := a.field(t, path).(string)
	return text
}

// upload puts a package of files under an id.
func (s *testService) upload(id string, files map[string]string) {
	s.t.Helper()
	s.want(http.StatusCreated, s.do("PUT", "/v1/packages/"+id, archive(files)))
}

func archive(files map[string]string) []byte { return rendertest.Zip(files) }

// operation follows an operation to its end and returns its record.
func (s *testService) operation(id string) answer {
	s.t.Helper()
	s.want(http.StatusOK, s.do("GET", "/v1/operations/"+id+"/events", nil)) // ends with the operation
	return s.want(http.StatusOK, s.do("GET", "/v1/operations/"+id, nil))
}

// records returns what the store holds. The service's own lease, which moves all
// the time, is left out, and so are the audit and the list of work: an operation's entry goes
// just after its end is reported.
func (s *testService) records() map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for e, err := range s.db.kv.List(s.t.Context(), "", "") {
		if err != nil {
			s.t.Fatal(err)
		}
		if !slices.ContainsFunc(append(leases(), "claims/", "audit/"), func(table string) bool { return strings.HasPrefix(e.Key, table) }) {
			out[e.Key] = string(e.Value)
		}
	}
	return out
}

// keys returns the keys of what the store holds, sorted.
func (s *testService) keys() []string { return slices.Sorted(maps.Keys(s.records())) }
