package onap

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"iter"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// Regions is what the API asks of the cloud regions.
type Regions interface {
	// Enlist keeps a region whether or not its cluster can be reached now:
	// nf.Exists when the id is taken, nf.Invalid when the kubeconfig is refused
	// for what it says.
	Enlist(ctx context.Context, r nf.Region) (nf.Region, error)
	// Region returns a region, or nf.NotFound.
	Region(ctx context.Context, id string) (nf.Region, error)
	// RemoveRegion removes a region; nf.Conflict while instances use it.
	RemoveRegion(ctx context.Context, id string) error
	// Users yields the ids of the instances that use a region.
	Users(ctx context.Context, of nf.Holding) iter.Seq2[string, error]
}

// connection is the connection to a region as clients see it.
type connection struct {
	Region     string       `json:"cloud-region"`
	Owner      string       `json:"cloud-owner"`
	Kubeconfig string       `json:"kubeconfig"` // base64
	Other      connectivity `json:"other-connectivity-list"`
}

type connectivity struct {
	Records []map[string]string `json:"connectivity-records"`
}

func (a *API) connectionRoutes(r *mux.Router) {
	a.on(r, http.MethodPost, "/v1/connectivity-info", a.createConnection)
	a.on(r, http.MethodGet, "/v1/connectivity-info/{cloud-region}", a.getConnection)
	a.on(r, http.MethodDelete, "/v1/connectivity-info/{cloud-region}", a.deleteConnection)
}

func (a *API) createConnection(w http.ResponseWriter, r *http.Request) error {
	in, kubeconfig, err := readConnection(r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	made, err := a.cfg.Regions.Enlist(ctx, nf.Region{ID: in.Region, Owner: in.Owner, Kubeconfig: kubeconfig})
	switch {
	case err != nil && nf.KindOf(err) == nf.Invalid:
		return &refusal{
			status: http.StatusUnprocessableEntity, strict: http.StatusUnprocessableEntity,
			text: "Unable to process file: " + err.Error(), cause: err,
		}
	case err != nil:
		return onlyIf(nf.Exists, err, "Connection already exists", "Creating DB Entry")
	}
	kept := bundle.Connection{Region: made.ID, Registered: made.Created, Owner: made.Owner, Records: in.Other.Records}
	if err := a.cfg.Bundles.PutConnection(ctx, kept); err != nil {
		// Half a connection would be there already when the client tries again.
		return fail("Creating DB Entry", errors.Join(err, a.cfg.Regions.RemoveRegion(ctx, made.ID)))
	}
	in.Kubeconfig = base64.StdEncoding.EncodeToString(kubeconfig)
	return answer(w, http.StatusCreated, in)
}

// readConnection reads a form with the parts metadata and file, or a JSON
// document that has the kubeconfig in it, as ONAP's adapter sends it.
func readConnection(r *http.Request) (connection, nf.Secret, error) {
	body, err := readBody(r, northbound.MaxDocument)
	if err != nil {
		return connection{}, nil, err
	}
	boundary := boundaryOf(r.Header.Get("Content-Type"), body)
	if boundary == "" {
		return connectionDocument(body)
	}
	parts, err := readForm(body, boundary)
	if err != nil {
		return connection{}, nil, refuse(http.StatusUnprocessableEntity, err.Error())
	}
	metadata, _ := named(parts, "metadata")
	in, err := decodeConnection(metadata.content)
	if err != nil {
		return connection{}, nil, err
	}
	file, ok := named(parts, "file")
	if !ok || len(file.content) == 0 {
		return connection{}, nil, refuse(http.StatusUnprocessableEntity, "Unable to process file")
	}
	return in, file.content, nil
}

func connectionDocument(body []byte) (connection, nf.Secret, error) {
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return connection{}, nil, refuse(http.StatusUnprocessableEntity, "request Content-Type isn't multipart/form-data")
	}
	in, err := decodeConnection(body)
	if err != nil {
		return connection{}, nil, err
	}
	kubeconfig, err := base64.StdEncoding.DecodeString(in.Kubeconfig)
	if err != nil || len(kubeconfig) == 0 { // where a secret stops being base64 is nobody's business
		return connection{}, nil, refuse(http.StatusUnprocessableEntity, "Unable to process file: the kubeconfig is not base64")
	}
	return in, kubeconfig, nil
}

func decodeConnection(document []byte) (connection, error) {
	in, err := decodeDocument[connection](document, emptyBody())
	switch {
	case err != nil:
		return in, err
	case in.Region == "":
		return in, refuse(http.StatusBadRequest, "Missing name in POST request")
	case in.Owner == "":
		return in, refuse(http.StatusBadRequest, "Missing cloudowner in POST request")
	}
	return in, nil
}

// getConnection shows the kubeconfig to those alone who may change the region:
// they could have written it.
func (a *API) getConnection(w http.ResponseWriter, r *http.Request) error {
	id, ctx := mux.Vars(r)["cloud-region"], r.Context()
	region, err := a.cfg.Regions.Region(ctx, id)
	if err != nil {
		return fail("Get Connection", err)
	}
	out := connection{Region: region.ID, Owner: region.Owner}
	kept, err := a.cfg.Bundles.Connection(ctx, region)
	if err != nil && nf.KindOf(err) != nf.NotFound { // the region may have been registered in another way
		return fail("Get Connection", err)
	}
	switch may := a.cfg.Access.May(ctx, nf.WriteRegion, nf.Scope{Region: id}, ids([]string{id})...); {
	case may == nil:
		out.Kubeconfig, out.Other.Records = base64.StdEncoding.EncodeToString(region.Kubeconfig), kept.Records
	case nf.KindOf(may) == nf.Forbidden:
		out.Other.Records = masked(kept.Records)
	default:
		return fail("Get Connection", may)
	}
	return answer(w, http.StatusOK, out)
}

// masked hides what of a connectivity record is secret.
func masked(records []map[string]string) []map[string]string {
	return each(records, func(record map[string]string) map[string]string {
		shown := map[string]string{}
		for key, value := range record {
			if key == "password" || key == "private-key" {
				value = nf.Masked
			}
			shown[key] = value
		}
		return shown
	})
}

// deleteConnection removes a region and its connection. ONAP did so whoever used
// the region; here instances that stay keep it, and those that are being
// terminated are waited for: ONAP's clients delete an instance, and then at once
// its region. A region that does not exist, or that the caller may not see, is
// answered in the same way, and nothing is removed.
func (a *API) deleteConnection(w http.ResponseWriter, r *http.Request) error {
	id := mux.Vars(r)["cloud-region"]
	ctx, cancel := context.WithTimeout(r.Context(), a.cfg.Wait)
	defer cancel()
	for last := false; ; {
		err := a.cfg.Regions.RemoveRegion(ctx, id)
		if err == nil {
			err = a.cfg.Bundles.RemoveConnection(ctx, id)
		}
		if nf.UnlessGone(err) == nil {
			return done(w, http.StatusNoContent)
		}
		departed, users := a.departed(ctx, id)
		if nf.KindOf(err) != nf.Conflict || !departed && (users || last) {
			return fail("Delete Connection", err)
		}
		// The last user may have left meanwhile, or the caller may not see it.
		last = !departed
	}
}

// departed waits for the instances of a region that are being terminated. It
// reports whether one has left, and whether the caller saw any instance that uses
// the region.
func (a *API) departed(ctx context.Context, id string) (departed, users bool) {
	var leaving []nf.Instance
	for user, err := range a.cfg.Regions.Users(ctx, nf.Holding{Region: id}) {
		if err != nil {
			return nf.KindOf(err) == nf.NotFound, false
		}
		instance, err := a.cfg.Instances.Instance(ctx, user)
		switch {
		case nf.KindOf(err) == nf.NotFound: // it has left meanwhile
		case err != nil || instance.State != nf.Terminating || instance.Operation == "":
			return false, true
		default:
			leaving = append(leaving, instance)
		}
	}
	for _, instance := range leaving {
		departed = a.gone(ctx, instance.Operation) || departed
	}
	return departed, len(leaving) > 0
}

// gone waits for an operation to end, and reports whether it succeeded.
func (a *API) gone(ctx context.Context, operation string) bool {
	for op, err := range a.cfg.Operations.Follow(ctx, operation) {
		if err != nil {
			return false
		}
		if op.State.Final() {
			return op.State == nf.Succeeded
		}
	}
	return false
}
