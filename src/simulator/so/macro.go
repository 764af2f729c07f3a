package so

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/simulator/script"
)

// The classes of SO's CNF adapter. It fails if a response has another field.
type (
	rbRequest struct {
		Region     string            `json:"cloud-region"`
		Definition string            `json:"rb-name"`
		Version    string            `json:"rb-version"`
		Profile    string            `json:"profile-name"`
		Release    string            `json:"release-name"`
		Labels     map[string]string `json:"labels"`
		Overrides  map[string]string `json:"override-values"`
	}
	rbInstance struct {
		ID        string    `json:"id"`
		Request   rbRequest `json:"request"`
		Namespace string    `json:"namespace"`
		Release   string    `json:"release-name"`
		Resources []struct {
			GVK  struct{ Group, Version, Kind string }
			Name string
		} `json:"resources"`
	}
)

// rbStatus is the status of an instance. Only the request in it is read strictly.
type rbStatus struct {
	Request   json.RawMessage `json:"request"`
	Ready     bool            `json:"ready"`
	Count     int             `json:"resourceCount"`
	Resources []rbResource    `json:"resourcesStatus"`
}

type rbResource struct {
	Name   string                                `json:"name"`
	GVK    struct{ Group, Version, Kind string } `json:"GVK"`
	Status struct {
		Metadata struct {
			Name      string            `json:"name"`
			Namespace string            `json:"namespace"`
			Version   string            `json:"resourceVersion"`
			Labels    map[string]string `json:"labels"`
		} `json:"metadata"`
	} `json:"status"`
}

// retries of a request that the service does not execute, and their interval in SO's.
const (
	retries      = 3
	retryPart    = 5 // of the interval between polls: 3 s
	subscription = "-cnf-adapter"
	minInterval  = 30 // seconds between notifications
)

// Macro creates a VNF as SO does with its CNF adapter, upgrades it with other values, and
// deletes it. The service must be able to reach the address on which the adapter listens,
// such as 127.0.0.1:0.
func (d *Driver) Macro(ctx context.Context, v VNF, upgraded map[string]string, listen string) (err error) {
	a, err := d.StartAdapter(ctx, listen)
	if err != nil {
		return err
	}
	defer func() {
		if closed := a.Close(); err == nil {
			err = closed
		}
	}()
	if err := d.Plan(ctx, v); err != nil {
		return err
	}
	id, err := a.Create(ctx, v)
	if err != nil {
		return d.backOut(ctx, v, err)
	}
	if err := a.UpdateInventory(ctx, v, id); err != nil {
		return err
	}
	if err := a.Upgrade(ctx, v, id, upgraded); err != nil {
		return err
	}
	if err := a.UpdateInventory(ctx, v, id); err != nil {
		return err
	}
	if err := a.Delete(ctx, v, id); err != nil {
		return err
	}
	return d.Clear(ctx, v)
}

// rb sends a request of the adapter to the service.
func (s step) rb(ctx context.Context, method, path string, body any) (reply, error) {
	return s.send(ctx, s.d.cfg.Service, message{method, path, body, map[string]string{
		"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "Apache-HttpClient/4.5.13",
	}})
}

// repeated sends a request up to three times while the service responds with an error of
// its own.
func (s step) repeated(ctx context.Context, method, path string, body any) (r reply, err error) {
	for n := range retries {
		r, err = s.rb(ctx, method, path, body)
		if err != nil || r.status < http.StatusInternalServerError || n == retries-1 {
			break
		}
		script.Hold(ctx, nil, max(s.d.cfg.Interval/retryPart, time.Millisecond))
	}
	return r, err
}

// start lists the instances and their subscriptions, as the adapter does before it serves
// requests. It returns the ids of the instances that have one.
func (s step) start(ctx context.Context) (subscribed []string, err error) {
	r, err := s.rb(ctx, http.MethodGet, "/v1/instance", nil)
	if err != nil || r.absent() {
		return nil, err
	}
	var all []rbInstance
	if err := r.want(http.StatusOK); err != nil {
		return nil, err
	}
	if err := r.strictly(&all); err != nil {
		return nil, err
	}
	for _, in := range all {
		r, err := s.rb(ctx, http.MethodGet, subscriptionOf(in.ID), nil)
		if err != nil {
			return nil, err
		}
		if r.status == http.StatusOK {
			subscribed = append(subscribed, in.ID)
		} else if !r.absent() {
			return nil, r.want(http.StatusOK)
		}
	}
	return subscribed, nil
}

// absent reports whether the adapter takes a response for the absence of an object: it
// looks for texts in an error of the service.
func (r reply) absent() bool {
	text := string(r.body)
	return r.status == http.StatusInternalServerError && (strings.Contains(text, "no documents") || strings.Contains(text, "Did not find any"))
}

func subscriptionOf(id string) string {
	return "/v1/instance/" + id + "/status/subscription/" + id + subscription
}

func (v VNF) instance(values map[string]string) map[string]any {
	return map[string]any{
		"cloud-region": v.Region, "rb-name": v.Invariant, "rb-version": v.Customization, "profile-name": v.Profile, "release-name": v.Release,
		"labels": nil, "override-values": values,
	}
}

// Create creates an instance, or finds the one with the same release, and polls its status
// until all its objects are ready.
func (a *Adapter) Create(ctx context.Context, v VNF) (id string, err error) {
	s := a.d.step("the adapter creates the instance")
	query := url.Values{"rb-name": {v.Invariant}, "rb-version": {v.Customization}, "profile-name": {v.Profile}}
	r, err := s.repeated(ctx, http.MethodGet, "/v1/instance?"+query.Encode(), nil)
	if err != nil {
		return "", err
	}
	var found []rbInstance
	if !r.absent() {
		if err := r.want(http.StatusOK); err != nil {
			return "", err
		}
		if err := r.strictly(&found); err != nil {
			return "", err
		}
	}
	i := slices.IndexFunc(found, func(in rbInstance) bool { return in.Request.Release == v.Release || in.Release == v.Release })
	if i >= 0 {
		id = found[i].ID
	} else if id, err = s.instantiate(ctx, v); err != nil {
		return "", err
	}
	if err := s.ready(ctx, v, id); err != nil {
		return id, err
	}
	s.done("instance %s is ready", id)
	return id, s.activate(ctx, v, id)
}

func (s step) instantiate(ctx context.Context, v VNF) (string, error) {
	r, err := s.repeated(ctx, http.MethodPost, "/v1/instance", v.instance(v.Values))
	if err != nil {
		return "", err
	}
	var made rbInstance
	if err := r.want(http.StatusCreated); err != nil {
		return "", err
	}
	if err := r.strictly(&made); err != nil {
		return "", err
	}
	if made.ID == "" || made.Request.Region != v.Region {
		return "", r.differs("the instance is %q in the region %q", made.ID, made.Request.Region)
	}
	return made.ID, nil
}

// ready polls the status of an instance, and nothing else, until it is ready.
func (s step) ready(ctx context.Context, v VNF, id string) error {
	return s.poll(ctx, func(ctx context.Context) (bool, error) {
		now, err := s.status(ctx, v, id)
		return now.Ready, err
	})
}

// status reads the status of an instance.
func (s step) status(ctx context.Context, v VNF, id string) (now rbStatus, err error) {
	r, err := s.rb(ctx, http.MethodGet, "/v1/instance/"+id+"/status", nil)
	if err == nil {
		err = r.want(http.StatusOK)
	}
	if err == nil {
		err = r.read(&now)
	}
	if err != nil {
		return now, err
	}
	var request rbRequest
	inner := reply{step: s, request: r.request, body: now.Request}
	if err := inner.strictly(&request); err != nil {
		return now, err
	}
	if request.Release != v.Release || now.Count != len(now.Resources) {
		return now, r.differs("it is the status of the release %q, with %d of %d resources", request.Release, len(now.Resources), now.Count)
	}
	return now, nil
}

// Upgrade changes the values of an instance, and waits until it is ready again.
func (a *Adapter) Upgrade(ctx context.Context, v VNF, id string, values map[string]string) error {
	s := a.d.step("the adapter upgrades the instance")
	body := v.instance(values)
	body["labels"], body["release-name"] = values, nil
	r, err := s.rb(ctx, http.MethodPost, "/v1/instance/"+id+"/upgrade", body)
	if err != nil {
		return err
	}
	var made rbInstance
	if err := r.want(http.StatusCreated); err != nil {
		return err
	}
	if err := r.strictly(&made); err != nil {
		return err
	}
	if made.ID != id || made.Release != v.Release {
		return r.differs("instance %s, release %q, has become %s, release %q", id, v.Release, made.ID, made.Release)
	}
	if err := s.ready(ctx, v, id); err != nil {
		return err
	}
	s.done("instance %s is ready again", id)
	return nil
}

// Delete deletes the subscription of an instance, if the adapter remembers one, the
// instance, and then its k8s-resources in A&AI.
func (a *Adapter) Delete(ctx context.Context, v VNF, id string) error {
	s := a.d.step("the adapter deletes the instance")
	if a.forget(id) {
		r, err := s.rb(ctx, http.MethodDelete, subscriptionOf(id), nil)
		if err != nil {
			return err
		}
		if r.status/100 != 2 {
			return r.want(http.StatusAccepted)
		}
	}
	r, err := s.rb(ctx, http.MethodDelete, "/v1/instance/"+id, nil)
	if err != nil {
		return err
	}
	if r.status/100 != 2 {
		return r.want(http.StatusAccepted)
	}
	if r, err = s.rb(ctx, http.MethodGet, "/v1/instance/"+id, nil); err != nil {
		return err
	}
	if r.status < http.StatusBadRequest {
		return r.differs("status %d after the deletion", r.status)
	}
	a.writing.Lock()
	defer a.writing.Unlock()
	module, err := s.mustObject(ctx, v.modulePath())
	if err != nil {
		return err
	}
	paths := module.related("k8s-resource")
	if err := s.bulk(ctx, "delete", s.deletions(ctx, paths)); err != nil {
		return err
	}
	if err := s.gone(ctx, paths); err != nil {
		return err
	}
	s.done("instance %s is gone, and A&AI has none of its %d objects", id, len(paths))
	return a.failure()
}

// callback returns the metadata of a subscription.
func (v VNF) callback(id string) map[string]any {
	return map[string]any{
		"instanceId": id, "cloudRegion": v.Region, "cloudOwner": v.Owner, "tenantId": v.Tenant, "callbackUrl": nil,
		"genericVnfId": v.ID, "vfModuleId": v.Module,
	}
}

// subscribe creates the subscription of an instance unless the adapter remembers it.
func (a *Adapter) subscribe(ctx context.Context, s step, v VNF, id string) error {
	if a.remembers(id) {
		return nil
	}
	a.remember(id, v)
	r, err := s.rb(ctx, http.MethodPost, "/v1/instance/"+id+"/status/subscription", map[string]any{
		"name": id + subscription, "min-notify-interval": minInterval, "metadata": v.callback(id),
		"callback-url": a.url + fmt.Sprintf("/api/cnf-adapter/v1/instance/%s/status/notify", id),
	})
	if err == nil {
		err = r.want(http.StatusCreated)
	}
	if err != nil {
		a.forget(id)
	}
	return err
}
