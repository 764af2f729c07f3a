package so

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
)

// Request is a request for a VNF instance through the native API. Its region is that of
// the VNF.
type Request struct {
	Package   string           // csar_id
	Name      string           // of the instance
	Namespace string           // of its objects; empty: that of the region
	OOF       []map[string]any // oof_parameters
	Networks  map[string]any   // network_parameters
	Values    map[string]any   // parameters
	Attach    []map[string]any // networks
}

// Instance is a VNF instance, as the native API returns it.
type Instance struct {
	ID         string              `json:"vnf_id"`
	Region     string              `json:"cloud_region_id"`
	Namespace  string              `json:"namespace"`
	Package    string              `json:"csar_id"`
	State      string              `json:"state"`
	Operation  string              `json:"operation_id"`
	Components map[string][]string `json:"vnf_components"`
	Links      map[string]string   `json:"links"`
	Objects    []struct {
		Kind string `json:"kind"`
		Name string `json:"name"`
	} `json:"objects"`

	Listed Listed `json:"-"` // in A&AI
}

// Native creates a VNF through the native API, reads what the service returns and what
// A&AI has, and deletes it.
func (d *Driver) Native(ctx context.Context, v VNF, r Request) error {
	if err := d.Plan(ctx, v); err != nil {
		return err
	}
	in, err := d.CreateVNF(ctx, v, r)
	if err != nil {
		return d.backOut(ctx, v, err)
	}
	if err := d.DeleteVNF(ctx, v, in); err != nil {
		return err
	}
	return d.Clear(ctx, v)
}

// native sends a request to the native API. The service does not wait for operations.
func (s step) native(ctx context.Context, method, path string, body any) (reply, error) {
	headers := map[string]string{"Accept": "application/json"}
	if method != http.MethodGet {
		headers["Prefer"] = "respond-async"
	}
	if body != nil {
		headers["Content-Type"] = "application/json"
	}
	if method == http.MethodPost {
		headers["Idempotency-Key"] = rand.Text()
	}
	return s.send(ctx, s.d.cfg.Service, message{method, path, body, headers})
}

// CreateVNF creates a VNF instance, polls its operation, and waits until A&AI has all its
// objects.
func (d *Driver) CreateVNF(ctx context.Context, v VNF, req Request) (in Instance, err error) {
	s := d.step("SO creates the VNF")
	body := map[string]any{
		"csar_id": req.Package, "cloud_region_id": v.Region, "vnf_instance_name": req.Name,
		"aai": map[string]any{"generic_vnf_id": v.ID, "vf_module_id": v.Module, "tenant_id": v.Tenant},
	}
	for name, value := range map[string]any{"namespace": req.Namespace, "oof_parameters": req.OOF, "network_parameters": req.Networks, "parameters": req.Values, "networks": req.Attach} {
		if !empty(value) {
			body[name] = value
		}
	}
	r, err := s.native(ctx, http.MethodPost, "/v1/vnf_instances", body)
	if err == nil {
		err = r.want(http.StatusAccepted, http.StatusCreated)
	}
	if err == nil {
		err = r.read(&in)
	}
	if err == nil && (in.ID == "" || in.Operation == "") {
		err = r.differs("it has no vnf_id or no operation_id")
	}
	if err == nil {
		err = s.operation(ctx, in.Operation)
	}
	if err != nil {
		return in, err
	}
	if in, err = s.returned(ctx, v, req, in.ID); err != nil {
		return in, err
	}
	s.done("instance %s has %d objects in namespace %s", in.ID, len(in.Objects), in.Namespace)
	if err := s.activate(ctx, v, in.ID); err != nil {
		return in, err
	}
	in.Listed, err = d.InventoryOf(ctx, v, in)
	return in, err
}

// empty reports whether a value is not sent.
func empty(value any) bool {
	switch of := value.(type) {
	case string:
		return of == ""
	case []map[string]any:
		return len(of) == 0
	case map[string]any:
		return len(of) == 0
	}
	return false
}

// operation polls an operation until it has succeeded.
func (s step) operation(ctx context.Context, id string) error {
	return s.poll(ctx, func(ctx context.Context) (bool, error) {
		r, err := s.native(ctx, http.MethodGet, "/v1/operations/"+url.PathEscape(id), nil)
		if err == nil {
			err = r.want(http.StatusOK)
		}
		var op struct {
			State   string `json:"state"`
			Failure struct {
				Message string `json:"message"`
			} `json:"failure"`
		}
		if err == nil {
			err = r.read(&op)
		}
		if err != nil {
			return false, err
		}
		switch op.State {
		case "succeeded":
			return true, nil
		case "queued", "running":
			return false, nil
		}
		return false, r.differs("the operation is %s: %s", op.State, op.Failure.Message)
	})
}

// returned reads the values that the service returns of an instance.
func (s step) returned(ctx context.Context, v VNF, req Request, id string) (in Instance, err error) {
	r, err := s.native(ctx, http.MethodGet, "/v1/vnf_instances/"+url.PathEscape(id), nil)
	if err == nil {
		err = r.want(http.StatusOK)
	}
	if err == nil {
		err = r.read(&in)
	}
	if err != nil {
		return in, err
	}
	named := 0
	for _, names := range in.Components {
		named += len(names)
	}
	switch {
	case in.ID != id || in.Region != v.Region || in.Package != req.Package || req.Namespace != "" && in.Namespace != req.Namespace:
		err = r.differs("it is %s of package %s, in region %s and namespace %s", in.ID, in.Package, in.Region, in.Namespace)
	case len(in.Objects) == 0 || named != len(in.Objects):
		err = r.differs("vnf_components has %d names, objects %d", named, len(in.Objects))
	}
	return in, err
}

// InventoryOf waits until A&AI has the objects of an instance, all related to the
// generic-vnf and the vf-module.
func (d *Driver) InventoryOf(ctx context.Context, v VNF, in Instance) (Listed, error) {
	s := d.step("SO reads A&AI")
	var want []string
	for _, o := range in.Objects {
		want = append(want, o.Kind+" "+o.Name)
	}
	got, err := s.await(ctx, v, want)
	if err == nil {
		s.done("A&AI has %d k8s-resources and %s", len(got.Objects), got.text())
	}
	return got, err
}

// Heal heals an instance, and waits for the operation.
func (d *Driver) Heal(ctx context.Context, id string) error {
	s := d.step("SO heals the VNF")
	var in Instance
	r, err := s.native(ctx, http.MethodPost, "/v1/vnf_instances/"+url.PathEscape(id)+"/heal", map[string]any{})
	if err == nil {
		err = r.want(http.StatusAccepted, http.StatusOK)
	}
	if err == nil {
		err = r.read(&in)
	}
	if err == nil {
		err = s.operation(ctx, in.Operation)
	}
	if err == nil {
		s.done("instance %s is healed", in.ID)
	}
	return err
}

// DeleteVNF deletes a VNF instance, and polls it until it is gone. A&AI must not have its
// objects then.
func (d *Driver) DeleteVNF(ctx context.Context, v VNF, in Instance) error {
	s := d.step("SO deletes the instance")
	path := "/v1/vnf_instances/" + url.PathEscape(in.ID)
	paths, err := s.related(ctx, v, in.Listed)
	if err != nil {
		return err
	}
	r, err := s.native(ctx, http.MethodDelete, path, nil)
	if err == nil {
		err = r.want(http.StatusAccepted, http.StatusNoContent, http.StatusNotFound)
	}
	if err == nil {
		err = s.poll(ctx, func(ctx context.Context) (bool, error) {
			r, err := s.native(ctx, http.MethodGet, path, nil)
			if err != nil || r.status == http.StatusNotFound {
				return err == nil, err
			}
			return false, r.want(http.StatusOK)
		})
	}
	if err == nil {
		err = s.gone(ctx, paths)
	}
	if err == nil {
		s.done("instance %s is gone, and A&AI has none of its %d objects", in.ID, len(paths))
	}
	return err
}
