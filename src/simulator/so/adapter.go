package so

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	mostChanges   = 30 // of one request to A&AI
	headerTimeout = 10 * time.Second
)

// Adapter is SO's CNF adapter. It receives notifications, and remembers its subscriptions in
// memory only. It is safe for concurrent use.
type Adapter struct {
	Found []string // instances that had a subscription at the start

	d      *Driver
	url    string
	server *http.Server
	served sync.WaitGroup

	writing sync.Mutex // one update of A&AI at a time

	mu         sync.Mutex
	subscribed map[string]VNF // by instance
	received   int
	failed     []error
}

// StartAdapter starts an adapter that listens on an address, such as 127.0.0.1:0, and reads
// the instances and subscriptions of the service. Close ends it.
func (d *Driver) StartAdapter(ctx context.Context, listen string) (*Adapter, error) {
	s := d.step("the adapter starts")
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot listen: %w", s.name, err)
	}
	a := &Adapter{d: d, url: "http://" + listener.Addr().String(), subscribed: map[string]VNF{}}
	a.server = &http.Server{Handler: http.HandlerFunc(a.notified), ReadHeaderTimeout: headerTimeout}
	a.served.Go(func() { _ = a.server.Serve(listener) })
	if a.Found, err = s.start(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// Close ends the adapter. It returns the first failure of a notification.
func (a *Adapter) Close() error {
	_ = a.server.Close()
	a.served.Wait()
	return a.failure()
}

// Notifications returns the number of notifications that the adapter has accepted.
func (a *Adapter) Notifications() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.received
}

func (a *Adapter) failure() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return errors.Join(a.failed...)
}

func (a *Adapter) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = append(a.failed, err)
}

func (a *Adapter) remember(id string, v VNF) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.subscribed[id] = v
}

func (a *Adapter) remembers(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, has := a.subscribed[id]
	return has
}

// forget reports whether the adapter remembered a subscription.
func (a *Adapter) forget(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, has := a.subscribed[id]
	delete(a.subscribed, id)
	return has
}

// notification is what a notification must have; it has nothing else.
type notification struct {
	Instance     string         `json:"instance-id"`
	Subscription string         `json:"subscription-name"`
	Metadata     map[string]any `json:"metadata"`
	Changes      map[string][]struct {
		Name   string          `json:"name"`
		GVK    json.RawMessage `json:"GVK"`
		Status json.RawMessage `json:"status"`
	} `json:"resource-changes"`
}

// notified receives a notification, and updates A&AI by it. One of an instance that the
// adapter does not remember is rejected.
func (a *Adapter) notified(w http.ResponseWriter, r *http.Request) {
	s := a.d.step("the adapter is notified")
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "cannot read the body", http.StatusBadRequest)
		return
	}
	var n notification
	got := reply{step: s, request: r.Method + " " + r.URL.Path, body: body}
	if err := got.strictly(&n); err != nil {
		a.fail(err)
		http.Error(w, "cannot parse the body", http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	v, known := a.subscribed[n.Instance]
	a.mu.Unlock()
	if !known {
		http.Error(w, "unknown subscription", http.StatusBadRequest)
		return
	}
	if n.Subscription != n.Instance+subscription || n.Metadata["vfModuleId"] != v.Module || len(n.Changes) == 0 {
		a.fail(got.differs("subscription %q with the metadata %v", n.Subscription, n.Metadata))
	}
	w.WriteHeader(http.StatusAccepted)
	a.mu.Lock()
	a.received++
	a.mu.Unlock()
	if err := a.write(r.Context(), s, v, n.Instance); err != nil && a.remembers(n.Instance) && r.Context().Err() == nil {
		a.fail(err) // a deletion in the meantime is no failure
	}
}

// UpdateInventory subscribes to an instance, and makes the k8s-resources of its vf-module
// equal to its status: one for each entry. The adapter deletes all others, including those
// that other clients have written.
func (a *Adapter) UpdateInventory(ctx context.Context, v VNF, id string) error {
	s := a.d.step("the adapter updates A&AI")
	if err := a.subscribe(ctx, s, v, id); err != nil {
		return err
	}
	if err := a.write(ctx, s, v, id); err != nil {
		return err
	}
	got, err := s.await(ctx, v, nil)
	if err != nil {
		return err
	}
	s.done("A&AI has %d k8s-resources of instance %s", len(got.Objects), id)
	return a.failure()
}

// resource is a k8s-resource as the adapter writes it.
func (r rbResource) resource(v VNF, instance string) (id string, body map[string]any) {
	of, gvk := r.Status.Metadata, r.GVK
	sum := sha256.Sum256([]byte(instance + r.Name + of.Namespace + gvk.Kind + gvk.Group + gvk.Version + v.Owner + v.Region + v.Tenant))
	id = hex.EncodeToString(sum[:])
	labels := []string{}
	for key, value := range of.Labels {
		labels = append(labels, key+"="+value)
	}
	slices.Sort(labels)
	query := url.Values{"ApiVersion": {gvk.Version}, "Kind": {gvk.Kind}, "Name": {r.Name}, "Namespace": {of.Namespace}}
	return id, map[string]any{
		"id": id, "name": r.Name, "group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind, "namespace": of.Namespace, "labels": labels,
		"selflink":   "http://so-cnf-adapter:8090/api/cnf-adapter/v1/instance/" + instance + "/query?" + query.Encode(),
		"data-owner": "CnfAdapter", "data-source": "K8sPlugin", "data-source-version": of.Version,
	}
}

// operation is a change in a request to A&AI.
type operation struct {
	URI  string `json:"uri"`
	Body any    `json:"body"`
}

// write makes A&AI equal to the status of an instance, in the order of the adapter: it
// creates, updates and deletes.
func (a *Adapter) write(ctx context.Context, s step, v VNF, id string) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	now, err := s.status(ctx, v, id)
	if err != nil {
		return err
	}
	var creates, updates [][]operation
	var wanted []string
	for _, r := range now.Resources {
		if r.Name == "" || r.GVK.Kind == "" || r.Status.Metadata.Name == "" {
			return &Difference{Step: s.name, Request: "GET /v1/instance/" + id + "/status", What: fmt.Sprintf("resource %q has no name, kind or metadata", r.Name)}
		}
		key, body := r.resource(v, id)
		path := v.tenantPath() + "/k8s-resources/k8s-resource/" + key
		wanted = append(wanted, path)
		old, found, err := s.object(ctx, path)
		if err != nil {
			return err
		}
		if !found {
			edge := path + "/relationship-list/relationship"
			creates = append(creates, []operation{{path, body}, {edge, related(v.modulePath())}, {edge, related(v.path())}})
		} else if old.Revision != r.Status.Metadata.Version || old.Owner != body["data-owner"] {
			updates = append(updates, []operation{{path, body}})
		}
	}
	module, err := s.mustObject(ctx, v.modulePath())
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(module.related("k8s-resource"), func(path string) bool { return slices.Contains(wanted, path) })
	if err := s.bulk(ctx, "put", creates); err != nil {
		return err
	}
	if err := s.bulk(ctx, "patch", updates); err != nil {
		return err
	}
	return s.bulk(ctx, "delete", s.deletions(ctx, others))
}

func related(path string) map[string]any { return map[string]any{"related-link": aaiVersion + path} }

// deletions returns the changes that delete objects. One that is gone needs none.
func (s step) deletions(ctx context.Context, paths []string) (out [][]operation) {
	for _, path := range paths {
		if o, found, err := s.object(ctx, path); err != nil || found {
			out = append(out, []operation{{path + "?resource-version=" + url.QueryEscape(o.Version), map[string]any{}}})
		}
	}
	return out
}

// bulk sends changes through A&AI's older bulk request: each transaction has one verb and
// succeeds as a whole. The response is always 201; the statuses are inside.
func (s step) bulk(ctx context.Context, verb string, changes [][]operation) error {
	for len(changes) > 0 {
		transactions, count := []any{}, 0
		for len(changes) > 0 && count+len(changes[0]) <= mostChanges {
			transactions, count = append(transactions, map[string]any{verb: changes[0]}), count+len(changes[0])
			changes = changes[1:]
		}
		r, err := s.aai(ctx, http.MethodPut, "/bulkprocess", map[string]any{"transactions": transactions})
		if err == nil {
			err = r.want(http.StatusCreated)
		}
		if err == nil {
			err = r.transactions()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// transactions returns an error if a change of a bulk request has failed.
func (r reply) transactions() error {
	var out struct {
		All []map[string][]struct {
			URI  string                     `json:"uri"`
			Body map[string]json.RawMessage `json:"body"`
		} `json:"transaction"`
	}
	if err := r.read(&out); err != nil {
		return err
	}
	for _, t := range out.All {
		for verb, operations := range t {
			for _, o := range operations {
				for code, text := range o.Body {
					if n, err := strconv.Atoi(code); err != nil || n >= http.StatusBadRequest {
						return r.differs("%s %s: status %s: %s", strings.ToUpper(verb), o.URI, code, text)
					}
				}
			}
		}
	}
	return nil
}
