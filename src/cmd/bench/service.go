package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// service is the measured program, in a separate process with its embedded
// database.
type service struct {
	binary string
	flags  []string
	cmd    *exec.Cmd
	data   string
	url    string
	client *http.Client
}

// startService starts a service with the API server of a kubeconfig as its
// region.
func startService(ctx context.Context, binary, kubeconfig string) (*service, error) {
	access, err := os.ReadFile(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	s, err := newService(ctx, binary)
	if err != nil {
		return nil, err
	}
	if err := s.register(ctx, "sandbox", access); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// newService starts a service with an empty database, and with additional flags.
func newService(ctx context.Context, binary string, flags ...string) (*service, error) {
	data, err := os.MkdirTemp("", "bench-service-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a data folder: %w", err)
	}
	const clients = 64 // at most; each keeps its connection
	s := &service{binary: binary, flags: flags, data: data, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}}
	if _, err := s.start(ctx); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// start starts the process on its data, and returns the time until it is ready.
func (s *service) start(ctx context.Context) (time.Duration, error) {
	address, err := freeAddress()
	if err != nil {
		return 0, err
	}
	logs, err := os.Create(filepath.Join(s.data, "log"))
	if err != nil {
		return 0, fmt.Errorf("cannot make a log: %w", err)
	}
	defer func() { _ = logs.Close() }() // the process has its own descriptor
	s.url = "http://" + address
	args := append([]string{"serve", "--listen", address, "--data", filepath.Join(s.data, "db"), "--log-level", "warn"}, s.flags...)
	s.cmd = exec.CommandContext(ctx, s.binary, args...)
	s.cmd.Stderr = logs
	began := time.Now()
	if err := s.cmd.Start(); err != nil {
		return 0, fmt.Errorf("cannot start the service: %w", err)
	}
	err = s.ready(ctx)
	return time.Since(began), err
}

func (s *service) register(ctx context.Context, region string, kubeconfig []byte) error {
	return s.post(ctx, "/v1/cloud_regions", map[string]any{"cloud_region_id": region, "kubeconfig": kubeconfig}, nil)
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("cannot find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func (s *service) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := s.send(ctx, http.MethodGet, "/readyz", content{}, nil); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot reach the service: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// stop ends the process and deletes its data.
func (s *service) stop() {
	s.end()
	_ = os.RemoveAll(s.data)
}

// end ends the process, if it was started.
func (s *service) end() {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		_ = s.cmd.Wait()
	}
}

func (s *service) upload(ctx context.Context, set objectSet) error {
	return s.send(ctx, http.MethodPut, "/v1/packages/"+packageID(set), content{mediaType: "application/zip", bytes: set.archive}, nil)
}

// put uploads a chart.
func (s *service) put(ctx context.Context, id string, chart []byte) error {
	return s.send(ctx, http.MethodPut, "/v1/packages/"+id, content{mediaType: "application/gzip", bytes: chart}, nil)
}

// brought is an instance that was requested.
type brought struct {
	instance, operation string
	took                time.Duration // until the response
}

func (s *service) create(ctx context.Context, request map[string]any) (brought, error) {
	var answer struct {
		Instance  string `json:"vnf_id"`
		Operation string `json:"operation_id"`
	}
	began := time.Now()
	err := s.post(ctx, "/v1/vnf_instances", request, &answer)
	return brought{answer.Instance, answer.Operation, time.Since(began)}, err
}

func packageID(set objectSet) string { return fmt.Sprintf("bench-%d", set.size) }

// instantiate returns the time of the whole request, and the part from the
// operation's acceptance to its last apply.
func (s *service) instantiate(ctx context.Context, set objectSet) (whole, accepted time.Duration, err error) {
	var answer struct {
		OperationID string `json:"operation_id"`
	}
	began := time.Now()
	err = s.post(ctx, "/v1/vnf_instances", map[string]any{
		"cloud_region_id": "sandbox", "csar_id": packageID(set), "namespace": namespace, "vnf_instance_name": "bench",
	}, &answer)
	whole = time.Since(began)
	if err != nil {
		return whole, 0, err
	}
	accepted, err = s.applied(ctx, answer.OperationID)
	return whole, accepted, err
}

// applied returns the time from an operation's acceptance to its last apply.
func (s *service) applied(ctx context.Context, operation string) (time.Duration, error) {
	var op struct {
		Accepted time.Time `json:"accepted_at"`
		Applied  time.Time `json:"applied_at"`
	}
	err := s.send(ctx, http.MethodGet, "/v1/operations/"+operation, content{}, &op)
	return op.Applied.Sub(op.Accepted), err
}

// instantiateReady creates an instance, and waits until its operation has ended.
func (s *service) instantiateReady(ctx context.Context, set objectSet) (applied time.Duration, err error) {
	made, err := s.create(ctx, map[string]any{
		"cloud_region_id": "sandbox", "csar_id": packageID(set), "namespace": namespace, "vnf_instance_name": "bench",
	})
	if err != nil {
		return 0, err
	}
	if err := s.ended(ctx, made.operation); err != nil {
		return 0, err
	}
	return s.applied(ctx, made.operation)
}

// terminateAll deletes all instances. Before each deletion it waits until the
// instance's operation has ended.
func (s *service) terminateAll(ctx context.Context) error {
	var list struct {
		Instances []struct {
			ID        string `json:"vnf_id"`
			Operation string `json:"operation_id"`
		} `json:"vnf_instances"`
	}
	if err := s.send(ctx, http.MethodGet, "/v1/vnf_instances?namespace="+namespace, content{}, &list); err != nil {
		return err
	}
	for _, in := range list.Instances {
		if err := s.ended(ctx, in.Operation); err != nil {
			return err
		}
		if err := s.send(ctx, http.MethodDelete, "/v1/vnf_instances/"+in.ID, content{}, nil); err != nil {
			return err
		}
	}
	return nil
}

// update updates an instance to a package, and returns the operation.
func (s *service) update(ctx context.Context, instance, pkg string) (string, error) {
	document, err := json.Marshal(map[string]any{"csar_id": pkg})
	if err != nil {
		return "", err
	}
	var answer struct {
		Operation string `json:"operation_id"`
	}
	err = s.send(ctx, http.MethodPatch, "/v1/vnf_instances/"+instance, content{mediaType: "application/merge-patch+json", bytes: document}, &answer)
	return answer.Operation, err
}

// ended waits until an operation ends.
func (s *service) ended(ctx context.Context, operation string) error {
	return s.send(ctx, http.MethodGet, "/v1/operations/"+operation+"/events", content{}, nil)
}

func (s *service) post(ctx context.Context, path string, body, answer any) error {
	document, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return s.send(ctx, http.MethodPost, path, content{mediaType: "application/json", bytes: document}, answer)
}

// content is the body of a request. The zero value is no body.
type content struct {
	mediaType string
	bytes     []byte
	version   string // of SOL003's API; empty: another API
}

// statusError is the answer to a request that failed.
type statusError struct {
	status int
	body   string
}

// Error implements error.
func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.body) }

// send sends a request, and decodes the answer as JSON, unless answer is nil or a
// *[]byte.
func (s *service) send(ctx context.Context, method, path string, body content, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(body.bytes))
	if err != nil {
		return err
	}
	if body.mediaType != "" {
		req.Header.Set("Content-Type", body.mediaType)
	}
	if body.version != "" {
		req.Header.Set("Version", body.version)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return fmt.Errorf("cannot %s %s: %w", method, path, err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("cannot read the answer to %s %s: %w", method, path, err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("cannot %s %s: %w", method, path, &statusError{resp.StatusCode, string(got)})
	}
	if text, ok := answer.(*[]byte); ok {
		*text = got
		return nil
	}
	if answer == nil || len(got) == 0 {
		return nil
	}
	return json.Unmarshal(got, answer)
}
