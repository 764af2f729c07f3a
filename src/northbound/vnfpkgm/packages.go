package vnfpkgm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// packages serves packages, without their content.
type packages struct {
	store    Packages
	archives Archives
	newID    func() string
	now      func() time.Time
}

// find returns a VNF package, or nf.NotFound.
func (ps packages) find(ctx context.Context, id string) (nf.Package, error) {
	p, err := ps.store.Package(ctx, id)
	if err == nil {
		err = known(p)
	}
	return p, err
}

// known returns nf.NotFound for a package that is not a VNF package.
func known(p nf.Package) error {
	if isVNF(p) {
		return nil
	}
	return nf.E(nf.NotFound, "find", "VNF package "+p.ID, nil)
}

// info describes a package with its use.
func (ps packages) info(ctx context.Context, p nf.Package) (info, error) {
	used, err := ps.archives.InUse(ctx, p.ID)
	return infoOf(p, used, ps.now()), err
}

// creation is a CreateVnfPkgInfoRequest.
type creation struct {
	UserData map[string]any `json:"userDefinedData"`
}

func (ps packages) create(w http.ResponseWriter, r *http.Request) error {
	document, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	var in creation
	if len(bytes.TrimSpace(document)) > 0 {
		if in, err = northbound.DecodeDocument[creation](r, document); err != nil {
			return err
		}
	}
	if v := nf.CheckUserData("userDefinedData", in.UserData); v != nil {
		return nf.E(nf.Invalid, "read", "the request", v)
	}
	made, err := ps.store.CreatePackage(r.Context(), nf.Package{ID: ps.newID(), Project: r.URL.Query().Get("project"), UserData: in.UserData})
	if err != nil {
		return err
	}
	w.Header().Set("Location", pathOf(made.ID))
	return northbound.Answer(w, http.StatusCreated, infoOf(made, false, ps.now()))
}

func (ps packages) get(w http.ResponseWriter, r *http.Request) error {
	p, err := ps.find(r.Context(), mux.Vars(r)["csar_id"])
	if err != nil {
		return err
	}
	shown, err := ps.info(r.Context(), p)
	if err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, shown)
}

// modifications is a VnfPkgInfoModifications.
type modifications struct {
	Operational string         `json:"operationalState,omitempty"`
	UserData    map[string]any `json:"userDefinedData,omitempty"`
}

func (ps packages) update(w http.ResponseWriter, r *http.Request) error {
	change, err := northbound.Decode[modifications](r)
	if err != nil {
		return err
	}
	if change.Operational == "" && change.UserData == nil {
		return nf.E(nf.Invalid, "read", "the request", nf.Violations{{Message: "operationalState or userDefinedData must be given"}})
	}
	id := mux.Vars(r)["csar_id"]
	var changed modifications
	_, err = ps.store.UpdatePackage(r.Context(), id, func(p *nf.Package) error {
		if err := known(*p); err != nil {
			return err
		}
		changed = modifications{}
		if change.Operational != "" && change.Operational != operational(*p) {
			if p.State() != nf.PackageOnboarded {
				return nf.E(nf.Conflict, "update", "VNF package "+id, errors.New("it has no content yet, so it stays DISABLED"))
			}
			p.Disabled, changed.Operational = change.Operational == disabled, change.Operational
		}
		merged, _ := nf.MergePatch(p.UserData, change.UserData).(map[string]any)
		if !reflect.DeepEqual(merged, p.UserData) && len(merged)+len(p.UserData) > 0 {
			p.UserData, changed.UserData = merged, change.UserData
		}
		if changed.Operational == "" && changed.UserData == nil {
			return nf.E(nf.Conflict, "update", "VNF package "+id, errors.New("it has these values already"))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, changed)
}

func (ps packages) remove(w http.ResponseWriter, r *http.Request) error {
	ctx, id := r.Context(), mux.Vars(r)["csar_id"]
	// Before the states: an answer of them is for callers that may change the package.
	if err := ps.archives.MayChange(ctx, id); err != nil {
		return err
	}
	p, err := ps.find(ctx, id)
	if err != nil {
		return err
	}
	if operational(p) == enabled {
		return nf.E(nf.Conflict, "remove", "VNF package "+id, fmt.Errorf("it is %s; set its operationalState to %s first", enabled, disabled))
	}
	if err := ps.store.RemovePackage(ctx, id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
