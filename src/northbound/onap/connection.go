package onap

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"iter"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// Regions manages the cloud regions.
type Regions interface {
	// Enlist registers a region even if its cluster is unreachable. It returns
	// nf.Exists if the id is taken, and nf.Invalid if the content of the
	// kubeconfig is rejected.
	Enlist(ctx context.Context, r nf.Region) (nf.Region, error)
	// Region returns a region, or nf.NotFound.
	Region(ctx context.Context, id string) (nf.Region, error)
	// RemoveRegion deletes a region. It returns nf.Conflict while instances use
	// it.
	RemoveRegion(ctx context.Context, id string) error
	// Users yields the holders of a region.
	Users(ctx context.Context, of nf.Holding) iter.Seq2[nf.Subject, error]
}

// connection is the connection to a region, as clients see it.
type connection struct {
	Region     string       `json:"cloud-region"`
	Owner      string       `json:"cloud-owner"`
	Kubeconfig string       `json:"kubeconfig"` // base64
	Other      connectivity `json:"other-connectivity-list"`
}

type connectivity struct {
	Records []map[string]string `json:"connectivity-records"`
}

// connections serves the connections to regions.
type connections struct {
	regions    Regions
	stored     Connections
	instances  Views
	operations Operations
	longest    time.Duration // of a wait
}

func (cs connections) routes(on route) {
	on(http.MethodPost, "/v1/connectivity-info", cs.create)
	on(http.MethodGet, "/v1/connectivity-info/{cloud-region}", cs.get)
	on(http.MethodDelete, "/v1/connectivity-info/{cloud-region}", cs.remove)
}

func (cs connections) create(w http.ResponseWriter, r *http.Request) error {
	in, kubeconfig, err := readConnection(r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	made, err := cs.regions.Enlist(ctx, nf.Region{ID: in.Region, Owner: in.Owner, Origin: nf.OriginONAP, Access: nf.Access{Kubeconfig: kubeconfig}})
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
	if err := cs.stored.Put(ctx, made.ID, kept); err != nil {
		// Otherwise a retry of the client would fail with nf.Exists.
		return fail("Creating DB Entry", errors.Join(err, cs.regions.RemoveRegion(ctx, made.ID)))
	}
	in.Kubeconfig = base64.StdEncoding.EncodeToString(kubeconfig)
	return answer(w, http.StatusCreated, in)
}

// readConnection reads a form with the parts metadata and file, or a JSON
// document that contains the kubeconfig, as ONAP's adapter sends it.
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
	if err != nil || len(kubeconfig) == 0 { // not the decoder's error, because the kubeconfig is secret
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

// get shows the kubeconfig only to callers that may change the
// region, because they could have written it.
func (cs connections) get(w http.ResponseWriter, r *http.Request) error {
	region, kept, err := cs.stored.Connection(r.Context(), mux.Vars(r)["cloud-region"])
	if err != nil {
		return fail("Get Connection", err)
	}
	return answer(w, http.StatusOK, connection{
		Region: region.ID, Owner: region.Owner, Kubeconfig: base64.StdEncoding.EncodeToString(region.Access.Kubeconfig),
		Other: connectivity{kept.Records},
	})
}

// remove deletes a region and its connection. ONAP did so even if
// instances used the region. Here, a region in use remains. Instances that are
// terminating are waited for, because ONAP's clients delete an instance and
// immediately afterwards its region. If the region does not exist or the caller
// may not see it, the response is the same and nothing is deleted.
func (cs connections) remove(w http.ResponseWriter, r *http.Request) error {
	id := mux.Vars(r)["cloud-region"]
	ctx, cancel := context.WithTimeout(r.Context(), cs.longest)
	defer cancel()
	for last := false; ; {
		err := cs.regions.RemoveRegion(ctx, id)
		if err == nil {
			err = cs.stored.Remove(ctx, id)
		}
		if nf.IgnoreNotFound(err) == nil {
			return done(w, http.StatusNoContent)
		}
		if nf.KindOf(err) != nf.Conflict {
			return fail("Delete Connection", err)
		}
		departed, users := cs.departed(ctx, id)
		if !departed && (users || last) {
			return fail("Delete Connection", err)
		}
		// The last instance may have gone since, or the caller may not see it.
		last = !departed
	}
}

// departed waits for the terminating instances of a region. It reports whether
// at least one has gone, and whether the caller can see any user of the region.
func (cs connections) departed(ctx context.Context, id string) (departed, users bool) {
	var leaving []nf.Instance
	for user, err := range cs.regions.Users(ctx, nf.Holding{Region: id}) {
		if err != nil {
			return nf.KindOf(err) == nf.NotFound, false
		}
		if user.Kind != nf.InstanceSubject {
			return false, true
		}
		instance, err := cs.instances.Instance(ctx, user.ID)
		switch {
		case nf.KindOf(err) == nf.NotFound: // it has gone since
		case err != nil || instance.State != nf.Terminating || instance.Operation == "":
			return false, true
		default:
			leaving = append(leaving, instance)
		}
	}
	for _, instance := range leaving {
		departed = cs.gone(ctx, instance.Operation) || departed
	}
	return departed, len(leaving) > 0
}

// gone waits until an operation has ended, and reports whether it succeeded.
func (cs connections) gone(ctx context.Context, operation string) bool {
	op, ended, err := northbound.Await(ctx, nf.Operation{ID: operation}, cs.operations.Follow, northbound.Ended)
	return err == nil && ended && op.State == nf.Succeeded
}
