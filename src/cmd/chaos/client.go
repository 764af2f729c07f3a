package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"
)

// client sends requests like an orchestrator with a list of replicas: if one
// does not respond, it asks another.
type client struct {
	http    *http.Client
	urls    []string
	running func(server int) bool
	counts  *counts
}

func newClient(urls []string, running func(int) bool, c *counts) *client {
	return &client{
		urls: urls, running: running, counts: c,
		// Connections are not reused: those of a killed server must not affect
		// requests to its successor.
		http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}
}

// call is one request, which may be sent several times.
type call struct {
	method, path string
	body         any    // sent as JSON; bytes are sent as a package
	key          string // Idempotency-Key; empty: not sent
	prefer       string // Prefer header; empty: not sent
}

// answer is a response.
type answer struct {
	server  int
	status  int
	body    []byte
	Problem problem // only for status 400 and above
}

// problem holds the fields of a problem document that are used here.
type problem struct {
	Kind      string `json:"kind"`
	Reason    string `json:"reason"`
	Detail    string `json:"detail"`
	Confirm   string `json:"confirm"`
	Operation string `json:"operation"`
	VNF       string `json:"vnf_id"`
}

// patience is the timeout of one attempt. A stalled server responds late.
const patience = 8 * time.Second

// once sends a request to one server.
func (c *client) once(ctx context.Context, server int, q call) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	body, media, err := q.content()
	if err != nil {
		return answer{}, err
	}
	req, err := http.NewRequestWithContext(ctx, q.method, c.urls[server]+q.path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for name, value := range map[string]string{"Content-Type": media, "Idempotency-Key": q.key, "Prefer": q.prefer} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	c.counts.add("attempts", 1)
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	a := answer{server: server, status: resp.StatusCode}
	if a.body, err = io.ReadAll(resp.Body); err != nil {
		return answer{}, err
	}
	if a.status >= http.StatusBadRequest {
		_ = json.Unmarshal(a.body, &a.Problem) // if the body is not a problem document, the kind stays empty
	}
	return a, nil
}

func (q call) content() (body []byte, media string, err error) {
	switch raw, isRaw := q.body.([]byte); {
	case isRaw:
		return raw, "application/zip", nil
	case q.body == nil:
		return nil, "", nil
	}
	body, err = json.Marshal(q.body)
	if q.method == http.MethodPatch {
		return body, "application/merge-patch+json", err
	}
	return body, "application/json", err
}

// insist repeats a request until it gets a final response. It fails only if the
// context ends.
func (c *client) insist(ctx context.Context, q call) (answer, error) {
	began := time.Now()
	for n := 0; ; n++ {
		a, err := c.once(ctx, c.choose(), q)
		if err == nil && a.good() {
			c.counts.longest("longest wait for an answer", time.Since(began))
			return a, nil
		}
		if pause(ctx, min(100*time.Millisecond<<min(n, 5), time.Second)) != nil {
			return answer{}, fmt.Errorf("cannot %s %s: no final response arrived: %w", q.method, q.path, a.failure(err))
		}
	}
}

// choose returns a random server. It prefers servers that run.
func (c *client) choose() int {
	order := rand.Perm(len(c.urls))
	if at := slices.IndexFunc(order, c.running); at >= 0 && rand.IntN(10) > 0 { // otherwise any: a client does not always know
		return order[at]
	}
	return order[0]
}

// accepted returns the operation that the response names as started by the
// request, and its instance.
func (a answer) accepted() (operation, instance string) {
	if a.status >= http.StatusBadRequest {
		if a.Problem.VNF != "" { // otherwise the operation is the one that conflicts
			return a.Problem.Operation, a.Problem.VNF
		}
		return "", ""
	}
	var body struct {
		Operation string `json:"operation_id"`
		Instance  string `json:"vnf_id"`
	}
	_ = json.Unmarshal(a.body, &body) // a response without a body names nothing
	return body.Operation, body.Instance
}

// good reports whether a response is final, so that a retry would not change
// it.
func (a answer) good() bool {
	operation, _ := a.accepted()
	switch {
	case a.status < http.StatusBadRequest || operation != "":
		return true
	case a.status == http.StatusConflict:
		return a.Problem.Kind != "busy"
	}
	return a.status < http.StatusInternalServerError && a.status != http.StatusTooManyRequests
}

// get reads a JSON document from any server.
func (c *client) get(ctx context.Context, path string, out any) (found bool, err error) {
	a, err := c.insist(ctx, call{method: http.MethodGet, path: path})
	if err != nil {
		return false, err
	}
	return a.decode(path, out)
}

// getFrom reads a JSON document from one server.
func (c *client) getFrom(ctx context.Context, server int, path string, out any) error {
	for {
		a, err := c.once(ctx, server, call{method: http.MethodGet, path: path})
		if err == nil && a.good() {
			_, err = a.decode(path, out)
			return err
		}
		if pause(ctx, 200*time.Millisecond) != nil {
			return fmt.Errorf("cannot get %s from server %d: %w", path, server+1, a.failure(err))
		}
	}
}

// failure returns why there is no final response. Err is the request's error,
// if any.
func (a answer) failure(err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("status %d: %s", a.status, a.body)
}

func (a answer) decode(path string, out any) (found bool, err error) {
	switch {
	case a.status == http.StatusNotFound:
		return false, nil
	case a.status != http.StatusOK:
		return false, fmt.Errorf("cannot get %s: status %d: %s", path, a.status, a.body)
	}
	if err := json.Unmarshal(a.body, out); err != nil {
		return false, fmt.Errorf("cannot read the answer to %s: %w", path, err)
	}
	return true, nil
}

// pause waits, or fails if the context ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// gone reports whether an instance is no longer listed. Unlike a read of the
// instance, the list does not need its region.
func (c *client) gone(ctx context.Context, id, name string) (bool, error) {
	var list struct {
		Items []summary `json:"vnf_instances"`
	}
	if _, err := c.get(ctx, "/v1/vnf_instances?vnf_instance_name="+name, &list); err != nil {
		return false, err
	}
	return !slices.ContainsFunc(list.Items, func(in summary) bool { return in.ID == id }), nil
}
