package so

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	aaiVersion = "/aai/v24" // the version that SO uses
	customer   = "/business/customers/customer/k8splugin-simulator"
	services   = customer + "/service-subscriptions/service-subscription/cnf"
)

// VNF is a VNF of one vf-module, as SO has planned it. SO's objects in A&AI have its ids.
type VNF struct {
	Owner, Region, Tenant string // of the cloud region in A&AI
	Service               string // id of the service-instance
	ID, Type              string // of the generic-vnf
	Module                string // id of the vf-module

	// Ids of the vf-module's model: the first and the last are the name and the version
	// of the definition.
	Invariant, Version, Customization string

	Profile string            // of the definition
	Release string            // name of the stack or the release
	Values  map[string]string // from SDNC
	OOF     any               // oof_directives; nil: none
	User    map[string]string // user_directives of a stack
}

// object is an object of A&AI.
type object struct {
	Version       string `json:"resource-version"`
	Relationships struct {
		All []relationship `json:"relationship"`
	} `json:"relationship-list"`

	ID        string   `json:"id"` // the further fields are those of a k8s-resource
	Name      string   `json:"name"`
	Group     string   `json:"group"`
	APILevel  string   `json:"version"`
	Kind      string   `json:"kind"`
	Namespace string   `json:"namespace"`
	Labels    []string `json:"labels"`
	Selflink  string   `json:"selflink"`
	Owner     string   `json:"data-owner"`
	Source    string   `json:"data-source"`
	Revision  string   `json:"data-source-version"`
}

type relationship struct {
	To   string `json:"related-to"`
	Link string `json:"related-link"`
}

// related returns the paths of the related objects of a type, below A&AI's version.
func (o object) related(to string) (paths []string) {
	for _, r := range o.Relationships.All {
		if r.To == to {
			paths = append(paths, below(r.Link))
		}
	}
	return slices.Sorted(slices.Values(paths))
}

// below returns a link without A&AI's version.
func below(link string) string {
	parts := strings.SplitN(link, "/", 4) // "", aai, v24, the rest
	if len(parts) < 4 || parts[1] != "aai" {
		return link
	}
	return "/" + parts[3]
}

func (v VNF) regionPath() string {
	return "/cloud-infrastructure/cloud-regions/cloud-region/" + url.PathEscape(v.Owner) + "/" + url.PathEscape(v.Region)
}

func (v VNF) tenantPath() string {
	return v.regionPath() + "/tenants/tenant/" + url.PathEscape(v.Tenant)
}

func (v VNF) servicePath() string {
	return services + "/service-instances/service-instance/" + url.PathEscape(v.Service)
}

func (v VNF) path() string { return "/network/generic-vnfs/generic-vnf/" + url.PathEscape(v.ID) }

func (v VNF) modulePath() string {
	return v.path() + "/vf-modules/vf-module/" + url.PathEscape(v.Module)
}

// aai sends a request of SO to A&AI.
func (s step) aai(ctx context.Context, method, path string, body any) (reply, error) {
	headers := map[string]string{"Accept": "application/json", "X-FromAppId": "MSO", "X-TransactionId": rand.Text()}
	if body != nil {
		headers["Content-Type"] = "application/json"
	}
	if method == http.MethodPatch {
		method, headers["X-HTTP-Method-Override"], headers["Content-Type"] = http.MethodPost, http.MethodPatch, "application/merge-patch+json"
	}
	return s.send(ctx, s.d.cfg.AAI, message{method, aaiVersion + path, body, headers})
}

// change sends a change to A&AI, which must be accepted.
func (s step) change(ctx context.Context, method, path string, body any) error {
	r, err := s.aai(ctx, method, path, body)
	if err != nil {
		return err
	}
	return r.want(http.StatusOK, http.StatusCreated, http.StatusNoContent)
}

// object reads an object of A&AI. It returns false if it does not exist.
func (s step) object(ctx context.Context, path string) (o object, found bool, err error) {
	r, err := s.aai(ctx, http.MethodGet, path, nil)
	if err == nil && r.status == http.StatusNotFound {
		return o, false, nil
	}
	if err == nil {
		err = r.want(http.StatusOK)
	}
	if err == nil {
		err = r.read(&o)
	}
	return o, err == nil, err
}

// mustObject reads an object of A&AI that must exist.
func (s step) mustObject(ctx context.Context, path string) (object, error) {
	o, found, err := s.object(ctx, path)
	if err == nil && !found {
		err = &Difference{Step: s.name, Request: "GET " + aaiVersion + path, What: "A&AI does not have it"}
	}
	return o, err
}

// remove deletes an object with the version that it reads before, as SO does.
func (s step) remove(ctx context.Context, path string) error {
	o, found, err := s.object(ctx, path)
	if err != nil || !found {
		return err
	}
	return s.change(ctx, http.MethodDelete, path+"?resource-version="+url.QueryEscape(o.Version), nil)
}

// Plan writes the service-instance, the generic-vnf and the vf-module of a VNF into A&AI,
// as SO does before it creates something. The region and the tenant must be there, and no
// other objects with these ids.
func (d *Driver) Plan(ctx context.Context, v VNF) error {
	s := d.step("SO plans")
	if _, err := s.mustObject(ctx, v.tenantPath()); err != nil {
		return err
	}
	if err := s.ensure(ctx, customer, map[string]any{"subscriber-name": "simulator", "subscriber-type": "INFRA"}); err != nil {
		return err
	}
	if err := s.ensure(ctx, services, map[string]any{}); err != nil {
		return err
	}
	links := func(paths ...string) map[string]any {
		var all []any
		for _, path := range paths {
			all = append(all, map[string]any{"related-link": aaiVersion + path})
		}
		return map[string]any{"relationship": all}
	}
	for _, one := range []struct {
		path string
		body map[string]any
	}{
		{v.servicePath(), map[string]any{"service-instance-name": v.Release, "orchestration-status": "Active"}},
		{v.path(), map[string]any{
			"vnf-name": v.ID, "vnf-type": v.Type, "orchestration-status": "Assigned",
			"relationship-list": links(v.servicePath(), v.regionPath(), v.tenantPath()),
		}},
		{v.modulePath(), map[string]any{
			"vf-module-name": v.Release, "is-base-vf-module": true, "orchestration-status": "Assigned",
			"model-invariant-id": v.Invariant, "model-version-id": v.Version, "model-customization-id": v.Customization,
		}},
	} {
		if err := s.create(ctx, one.path, one.body); err != nil {
			return err
		}
	}
	s.done("A&AI has the generic-vnf %s and the vf-module %s", v.ID, v.Module)
	return nil
}

// create creates an object of A&AI, which must not exist.
func (s step) create(ctx context.Context, path string, body map[string]any) error {
	_, found, err := s.object(ctx, path)
	if err != nil {
		return err
	}
	if found {
		return &Difference{Step: s.name, Request: "GET " + aaiVersion + path, What: "A&AI has it already, for example from a run that has failed; delete it, or use another id"}
	}
	return s.change(ctx, http.MethodPut, path, body)
}

// ensure creates an object of A&AI unless it exists.
func (s step) ensure(ctx context.Context, path string, body map[string]any) error {
	_, found, err := s.object(ctx, path)
	if err != nil || found {
		return err
	}
	return s.change(ctx, http.MethodPut, path, body)
}

// activate stores the id of an instance as SO does.
func (s step) activate(ctx context.Context, v VNF, id string) error {
	err := s.change(ctx, http.MethodPatch, v.modulePath(), map[string]any{"heat-stack-id": id, "orchestration-status": "Active"})
	if err != nil {
		return err
	}
	return s.change(ctx, http.MethodPatch, v.path(), map[string]any{"orchestration-status": "Active"})
}

// Clear deletes the objects of Plan from A&AI, as SO does at once after it was told that
// an instance is gone. Objects that are related to the vf-module are a failure, and so is
// a writer that changes one in the meantime.
func (d *Driver) Clear(ctx context.Context, v VNF) error {
	s := d.step("SO deletes the VNF")
	for _, path := range []string{v.modulePath(), v.path()} {
		o, found, err := s.object(ctx, path)
		if err != nil {
			return err
		}
		if left := slices.Concat(o.related("k8s-resource"), o.related("vserver")); found && len(left) > 0 {
			return &Difference{Step: s.name, Request: "GET " + aaiVersion + path, What: fmt.Sprintf("the instance is gone, but A&AI still relates %d objects, such as %s", len(left), left[0])}
		}
	}
	for _, path := range []string{v.modulePath(), v.path(), v.servicePath()} {
		if err := s.remove(ctx, path); err != nil {
			return err
		}
	}
	s.done("A&AI no longer has the VNF %s", v.ID)
	return nil
}

// backOut deletes the objects of Plan after the instance could not be created, as SO does.
// It returns the failure. What the service has left remains, and so does the vf-module that
// it is related to.
func (d *Driver) backOut(ctx context.Context, v VNF, failure error) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.cfg.Limit)
	defer cancel()
	if err := d.Clear(limited, v); err != nil {
		return errors.Join(failure, err)
	}
	return failure
}

// gone returns an error if A&AI has one of the objects.
func (s step) gone(ctx context.Context, paths []string) error {
	for _, path := range paths {
		_, found, err := s.object(ctx, path)
		if err != nil {
			return err
		}
		if found {
			return &Difference{Step: s.name, Request: "GET " + aaiVersion + path, What: "A&AI still has it"}
		}
	}
	return nil
}
