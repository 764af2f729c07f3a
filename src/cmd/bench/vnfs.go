package main

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/cmd/sandbox/bare"
)

// tackerRequests are the requests of OpenStack Tacker's driver for as many objects, as
// they were counted with its own code: a GET before each POST, and GETs of all that is
// not ready, every ten seconds.
var tackerRequests = map[int]int{1: 4, 20: 56, 200: 551}

// vnfs measures occurrences of SOL003: the requests to the region, and the time from when
// all Deployments are ready until the occurrence is COMPLETED.
func (b *bench) vnfs(ctx context.Context, kubeconfig, out string, rounds int) error {
	counted, stop, err := b.counted(ctx, kubeconfig)
	defer stop()
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, vnfsPreamble, time.Now().Format(time.DateOnly), b.version, machine(), rounds)
	for _, size := range []int{1, 20, 200} {
		r, err := b.measureVNF(ctx, counted, size, rounds)
		if err != nil {
			return fmt.Errorf("cannot measure %d objects: %w", size, err)
		}
		tacker := tackerRequests[size]
		fmt.Fprintf(&text, "| %d | %d | %d | %.2f | %s | %s |\n", size, r.requests, tacker, float64(r.requests)/float64(tacker), ms(r.took.median(wholeWay)), ms(r.took.median(lagWay)))
	}
	fmt.Print(text.String())
	return writeReport(out, text.String())
}

// The times of the scenario vnfs.
const (
	wholeWay = "from the request until COMPLETED is seen"
	lagWay   = "from ready until COMPLETED is seen"
)

// vnfResult is the result for one size.
type vnfResult struct {
	took     result
	requests int // most of a round
}

// measureVNF instantiates and terminates one VNF per round, and one before the first.
func (b *bench) measureVNF(ctx context.Context, counted *counter, size, rounds int) (vnfResult, error) {
	r := vnfResult{took: result{size: size, times: map[string][]time.Duration{}}}
	vnfd, err := b.service.onboard(ctx, size)
	if err != nil {
		return r, err
	}
	for round := range rounds + 1 {
		before := counted.requests.Load()
		whole, lag, err := b.oneVNF(ctx, counted.server.URL, vnfd, deploymentsOf(size), func() {
			if round > 0 {
				r.requests = max(r.requests, int(counted.requests.Load()-before))
			}
		})
		if err = errors.Join(err, b.api.clear(ctx)); err != nil {
			return r, err
		}
		if round > 0 { // the first one reads the schemas of the region
			r.took.times[wholeWay], r.took.times[lagWay] = append(r.took.times[wholeWay], whole), append(r.took.times[lagWay], lag)
		}
		fmt.Printf("%d objects: round %d of %d\n", size, round, rounds)
	}
	return r, nil
}

// oneVNF instantiates a VNF in the region of a server, calls done, and terminates and deletes the VNF.
func (b *bench) oneVNF(ctx context.Context, server, vnfd string, deployments int, done func()) (whole, lag time.Duration, err error) {
	const root = "/vnflcm/v2/vnf_instances"
	var vnf struct {
		ID string `json:"id"`
	}
	if err := b.service.lcm(ctx, http.MethodPost, root, map[string]any{"vnfdId": vnfd}, &vnf); err != nil {
		return 0, 0, err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	ready := make(chan time.Time, 1)
	failed := make(chan error, 1)
	go func() {
		at, err := b.api.deploymentsReady(watching, deployments)
		ready <- at
		failed <- err
	}()
	began := time.Now()
	if err := b.service.lcm(ctx, http.MethodPost, root+"/"+vnf.ID+"/instantiate", map[string]any{
		"flavourId": "simple", "additionalParams": map[string]any{"namespace": namespace},
		"vimConnectionInfo": map[string]any{"vim1": map[string]any{"vimType": "ETSINFV.KUBERNETES.V_1", "interfaceInfo": map[string]string{"endpoint": server}}},
	}, nil); err != nil {
		return 0, 0, err
	}
	if err := b.service.completed(ctx, vnf.ID); err != nil {
		return 0, 0, err
	}
	ended := time.Now()
	done()
	at, err := <-ready, <-failed
	if err != nil {
		return 0, 0, err
	}
	if err := b.service.lcm(ctx, http.MethodPost, root+"/"+vnf.ID+"/terminate", map[string]any{"terminationType": "FORCEFUL"}, nil); err != nil {
		return 0, 0, err
	}
	if err := b.service.completed(ctx, vnf.ID); err != nil {
		return 0, 0, err
	}
	return ended.Sub(began), max(0, ended.Sub(at)), b.service.lcm(ctx, http.MethodDelete, root+"/"+vnf.ID, nil, nil)
}

// lcm sends a request of SOL003.
func (s *service) lcm(ctx context.Context, method, path string, body, answer any) error {
	var document []byte
	if body != nil {
		var err error
		if document, err = json.Marshal(body); err != nil {
			return err
		}
	}
	return s.send(ctx, method, path, content{mediaType: "application/json", bytes: document, version: "2.0.0"}, answer)
}

// completed waits until the last occurrence of a VNF has ended.
func (s *service) completed(ctx context.Context, vnf string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		var all []struct {
			State string          `json:"operationState"`
			Error json.RawMessage `json:"error"`
		}
		if err := s.lcm(ctx, http.MethodGet, "/vnflcm/v2/vnf_lcm_op_occs?all_fields&filter="+url.QueryEscape("(eq,vnfInstanceId,"+vnf+");(neq,operationState,COMPLETED)"), nil, &all); err != nil {
			return err
		}
		switch {
		case len(all) == 0:
			return nil
		case all[0].State != "STARTING" && all[0].State != "PROCESSING":
			return fmt.Errorf("cannot wait for VNF %s: its occurrence is %s: %s", vnf, all[0].State, all[0].Error)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// deploymentsReady returns the time when a watch says that so many Deployments have all
// replicas ready.
func (a *apiServer) deploymentsReady(ctx context.Context, wanted int) (time.Time, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+"/apis/apps/v1/namespaces/"+namespace+"/deployments?watch=true", nil)
	if err != nil {
		return time.Time{}, err
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return time.Time{}, err
	}
	defer resp.Body.Close()
	ready := map[string]bool{}
	for d := json.NewDecoder(resp.Body); ; {
		var event struct {
			Object struct {
				Metadata struct {
					UID string `json:"uid"`
				} `json:"metadata"`
				Status struct {
					Available int `json:"availableReplicas"`
				} `json:"status"`
			} `json:"object"`
		}
		if err := d.Decode(&event); err != nil {
			return time.Time{}, fmt.Errorf("cannot watch Deployments: %w", err)
		}
		if event.Object.Status.Available > 0 {
			ready[event.Object.Metadata.UID] = true
		}
		if len(ready) == wanted {
			return time.Now(), nil
		}
	}
}

// deploymentsOf returns how many of the objects are Deployments: a quarter, and as many
// are Services.
func deploymentsOf(size int) int { return max(1, size/4) }

// onboard creates a VNF package with so many objects, and returns its vnfdId.
func (s *service) onboard(ctx context.Context, size int) (vnfd string, err error) {
	archive, vnfd, err := csarOf(size)
	if err != nil {
		return "", err
	}
	var made struct {
		ID string `json:"id"`
	}
	if err := s.post(ctx, "/vnfpkgm/v1/vnf_packages", map[string]any{}, &made); err != nil {
		return "", err
	}
	return vnfd, s.send(ctx, http.MethodPut, "/vnfpkgm/v1/vnf_packages/"+made.ID+"/package_content", content{mediaType: "application/zip", bytes: archive}, nil)
}

// csarOf returns a CSAR whose manifest has ConfigMaps, Deployments and Services in the
// proportion 2:1:1.
func csarOf(size int) (archive []byte, vnfd string, err error) {
	vnfd = fmt.Sprintf("b1bb0ce7-ebca-4fa7-95ed-%012d", size)
	var manifest bytes.Buffer
	deployments := deploymentsOf(size)
	for i := range size {
		kind := 0 // of newObject: a ConfigMap
		if i < deployments {
			kind = 9
		} else if i < 2*deployments {
			kind = 6
		}
		document, err := json.Marshal(newObject(10*i + kind).body)
		if err != nil {
			return nil, "", err
		}
		manifest.WriteString("---\n")
		manifest.Write(document)
		manifest.WriteByte('\n')
	}
	const file = "Files/kubernetes/all.yaml"
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, text := range map[string]string{
		file: manifest.String(), "Definitions/top.yaml": fmt.Sprintf(vnfdText, vnfd),
		"TOSCA-Metadata/TOSCA.meta": fmt.Sprintf(metaText, file, sha256.Sum256(manifest.Bytes())),
	} {
		if err := add(w, name, []byte(text)); err != nil {
			return nil, "", err
		}
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	return out.Bytes(), vnfd, nil
}

const metaText = `TOSCA-Meta-File-Version: 1.0
Created-by: bench
CSAR-Version: 1.1
Entry-Definitions: Definitions/top.yaml

Name: %s
Content-Type: application/yaml
Algorithm: SHA-256
Hash: %x
`

const vnfdText = `tosca_definitions_version: tosca_simple_yaml_1_2
topology_template:
  substitution_mappings:
    node_type: tosca.nodes.nfv.VNF
    properties: {flavour_id: simple}
  node_templates:
    VNF:
      type: tosca.nodes.nfv.VNF
      properties:
        flavour_id: simple
        descriptor_id: %s
        provider: bench
        product_name: bench
        software_version: '1.0'
        descriptor_version: '1.0'
        vnfm_info: [bench]
`

// counter is a proxy of the API server that counts requests.
type counter struct {
	server   *httptest.Server
	requests atomic.Int64
	writes   atomic.Int64 // of the requests, those that change an object
}

func newCounter(kubeconfig string) (*counter, error) {
	api, err := bare.Open(kubeconfig)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(api.URL)
	if err != nil {
		return nil, fmt.Errorf("cannot read the URL of the API server: %w", err)
	}
	c := &counter{}
	proxy := &httputil.ReverseProxy{
		Transport: api, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorLog:     slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug), // of watches that end
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	c.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.requests.Add(1)
		if r.Method != http.MethodGet && !r.URL.Query().Has("dryRun") {
			c.writes.Add(1)
		}
		proxy.ServeHTTP(w, r)
	}))
	c.server.EnableHTTP2 = true
	c.server.StartTLS()
	return c, nil
}

// counted starts a service whose requests to the region "sandbox" are counted. Stop ends
// what was started; it is never nil.
func (b *bench) counted(ctx context.Context, kubeconfig string) (counted *counter, stop func(), err error) {
	stop = func() {}
	if b.api, err = newAPIServer(kubeconfig); err != nil {
		return nil, stop, err
	}
	if b.version, err = b.api.version(ctx); err != nil {
		return nil, stop, err
	}
	if err := b.api.createNamespace(ctx); err != nil {
		return nil, stop, err
	}
	if counted, err = newCounter(kubeconfig); err != nil {
		return nil, stop, err
	}
	if b.service, err = newService(ctx, b.binary); err != nil {
		return nil, counted.close, err
	}
	stop = func() {
		b.service.stop()
		counted.close()
	}
	return counted, stop, b.service.register(ctx, "sandbox", kubeconfigOf(counted.server, ""))
}

func (c *counter) close() {
	c.server.CloseClientConnections()
	c.server.Close()
}

const vnfsPreamble = `# Occurrences of SOL003

Written by ` + "`make bench SCENARIO=vnfs`" + ` on %s: Kubernetes %s, %s, %d rounds, medians.

A VNF is created, instantiated, terminated and deleted by ` + "`/vnflcm/v2`" + `. Half of its objects are ConfigMaps, a quarter Deployments of one pod, and a quarter Services. A proxy
counts all requests of the service to the region, watches included, from before the creation until the occurrence is COMPLETED; the column has the most of any round. The requests of OpenStack Tacker are
those of its own driver for the same objects, which were counted once, with pods that are ready after one poll.

The last column is the time from when a watch of this program has seen the last Deployment available until it sees the occurrence COMPLETED. Tacker polls every 10 s. The goal is at most 200 ms.

| objects | requests | Tacker's | ratio | until COMPLETED, ms | after ready, ms |
|--:|--:|--:|--:|--:|--:|
`
