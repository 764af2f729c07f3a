package vnflcm

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// changes serves the requests that start occurrences.
type changes struct {
	e edition

	vnfs          VNFs
	changes       Changes
	modifications Modifications
	points        ConnectionPoints
	connections   Connections
	trace         func(*http.Request) string
}

// request is what the requests for occurrences have in common.
type request struct {
	Extra map[string]any `json:"additionalParams"`
}

// properties are the attributes of a VNF that requests of several kinds set.
type properties struct {
	VIMs         vimRequests    `json:"vimConnectionInfo"`
	Extensions   map[string]any `json:"extensions"`
	Configurable map[string]any `json:"vnfConfigurableProperties"`
}

func checkProperties(p properties) nf.Violations {
	wrong := append(checkStored("extensions", p.Extensions), checkStored("vnfConfigurableProperties", p.Configurable)...)
	for _, key := range slices.Sorted(maps.Keys(p.VIMs)) {
		wrong = append(wrong, northbound.CheckMasks("vimConnectionInfo."+nf.Clip(key, maxQuote)+".extra", p.VIMs[key].Extra, nf.Masked)...)
	}
	return wrong
}

// read decodes the body of a request, which is an empty object if it is missing, and
// returns it with what requests have in common.
func read[T any](cs changes, r *http.Request) (in T, common nf.VNFRequest, err error) {
	document, err := io.ReadAll(r.Body)
	if err != nil {
		return in, common, err
	}
	if len(bytes.TrimSpace(document)) == 0 {
		document = []byte("{}")
	}
	if in, err = northbound.DecodeDocument[T](r, document); err != nil {
		return in, common, err
	}
	var extra request
	var content map[string]any
	if err := json.Unmarshal(document, &extra); err != nil {
		return in, common, undecodable(err)
	}
	if err := json.Unmarshal(document, &content); err != nil {
		return in, common, undecodable(err)
	}
	if err := invalid(checkPairs("additionalParams", extra.Extra)); err != nil {
		return in, common, err
	}
	common = nf.VNFRequest{Trace: cs.trace(r), Extra: extra.Extra}
	if common.Key, err = northbound.RequestKey(r, content); err != nil {
		return in, common, err
	}
	common.Params, err = public(content)
	return in, common, err
}

// answer answers the request for an occurrence with its address.
func (cs changes) answer(w http.ResponseWriter, r *http.Request, o nf.Occurrence, err error) error {
	if err != nil {
		return err
	}
	w.Header().Set("Location", cs.e.occurrenceAt(cs.e.base(r), o.ID))
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// instantiation is an InstantiateVnfRequest.
type instantiation struct {
	properties

	Flavor  string             `json:"flavourId"`
	Level   string             `json:"instantiationLevelId"`
	Links   []externalLink     `json:"extVirtualLinks"`
	Managed []*json.RawMessage `json:"extManagedVirtualLinks"`
}

func (cs changes) instantiate(w http.ResponseWriter, r *http.Request) error {
	in, common, err := read[instantiation](cs, r)
	if err == nil {
		err = invalid(checkProperties(in.properties))
	}
	if err != nil {
		return err
	}
	if len(in.Managed) > 0 {
		return unprocessable(nf.Violations{{Field: "extManagedVirtualLinks[0]", Message: "is not supported; name the network in extVirtualLinks"}})
	}
	var networks []nf.Attachment
	if len(in.Links) > 0 {
		v, err := cs.vnfs.VNF(r.Context(), vnfOf(r))
		if err == nil {
			networks, err = cs.attachments(r.Context(), v, in.Flavor, common.Extra, in.Links)
		}
		if err != nil {
			return err
		}
	}
	req := nf.InstantiateVNFRequest{
		VNFRequest: common, Flavor: in.Flavor, Level: in.Level, VIMs: in.VIMs.connections(), Networks: networks,
		Extensions: in.Extensions, Configurable: in.Configurable,
	}
	o, err := cs.connected(r, &req.VNFRequest, &req.VIMs, func(ctx context.Context) (nf.Occurrence, error) { return cs.changes.Instantiate(ctx, vnfOf(r), req) })
	return cs.answer(w, r, o, err)
}

// connected starts an occurrence after it has registered the VIMs that the connections of
// the request describe. A VIM that no VNF comes to use is removed later. The registration
// replaces the access of a VIM in use, so a request that is refused, or was accepted before,
// must not come to it.
func (cs changes) connected(r *http.Request, common *nf.VNFRequest, vims *map[string]nf.VIMConnectionRequest, start func(context.Context) (nf.Occurrence, error)) (nf.Occurrence, error) {
	ctx := r.Context()
	if !describes(*vims) {
		return start(ctx)
	}
	common.Check = true
	if o, err := start(ctx); err != nil || o.ID != "" {
		return o, err
	}
	common.Check = false
	v, err := cs.vnfs.VNF(ctx, vnfOf(r))
	if err != nil {
		return nf.Occurrence{}, err
	}
	if *vims, err = cs.connections(ctx, v.Project, *vims); err != nil {
		return nf.Occurrence{}, err
	}
	return start(ctx)
}

// describes reports whether a connection has an access.
func describes(vims map[string]nf.VIMConnectionRequest) bool {
	for _, c := range vims {
		if len(c.Access) > 0 {
			return true
		}
	}
	return false
}

// termination is a TerminateVnfRequest.
type termination struct {
	Type  string `json:"terminationType"`
	Grace int64  `json:"gracefulTerminationTimeout"` // seconds
}

func (cs changes) terminate(w http.ResponseWriter, r *http.Request) error {
	in, common, err := read[termination](cs, r)
	if err != nil {
		return err
	}
	o, err := cs.changes.Terminate(r.Context(), vnfOf(r), nf.TerminateVNFRequest{
		VNFRequest: common, Forceful: in.Type == "FORCEFUL", Grace: time.Duration(in.Grace) * time.Second,
	})
	return cs.answer(w, r, o, err)
}

// scaling is a ScaleVnfRequest.
type scaling struct {
	Type   string `json:"type"`
	Aspect string `json:"aspectId"`
	Steps  int    `json:"numberOfSteps"`
}

func (cs changes) scale(w http.ResponseWriter, r *http.Request) error {
	in, common, err := read[scaling](cs, r)
	if err != nil {
		return err
	}
	o, err := cs.changes.Scale(r.Context(), vnfOf(r), nf.ScaleVNFRequest{VNFRequest: common, In: in.Type == "SCALE_IN", Aspect: in.Aspect, Steps: max(in.Steps, 1)})
	return cs.answer(w, r, o, err)
}

// healing is a HealVnfRequest.
type healing struct {
	Cause string   `json:"cause"`
	VNFCs []string `json:"vnfcInstanceId"`
}

func (cs changes) heal(w http.ResponseWriter, r *http.Request) error {
	in, common, err := read[healing](cs, r)
	if err != nil {
		return err
	}
	if all, given := common.Extra["all"]; given {
		if _, ok := all.(bool); !ok {
			return invalid(nf.Violations{{Field: "additionalParams.all", Message: "must be a boolean"}})
		}
	}
	o, err := cs.changes.Heal(r.Context(), vnfOf(r), nf.HealVNFRequest{VNFRequest: common, Cause: in.Cause, VNFCs: in.VNFCs})
	return cs.answer(w, r, o, err)
}

// modification is a VnfInfoModificationRequest.
type modification struct {
	properties

	Name        *string            `json:"vnfInstanceName"`
	Description *string            `json:"vnfInstanceDescription"`
	VNFD        *string            `json:"vnfdId"`
	Metadata    map[string]any     `json:"metadata"`
	VNFCs       []vnfcModification `json:"vnfcInfoModifications"`
}

type vnfcModification struct {
	ID           string         `json:"id"`
	Configurable map[string]any `json:"vnfcConfigurableProperties"`
}

func (cs changes) modify(w http.ResponseWriter, r *http.Request) error {
	in, common, err := read[modification](cs, r)
	if err != nil {
		return err
	}
	wrong := append(checkProperties(in.properties), checkStored("metadata", in.Metadata)...)
	vnfcs := map[string]map[string]any{}
	for i, c := range in.VNFCs {
		at := index("vnfcInfoModifications", i)
		wrong = append(wrong, checkStored(at+".vnfcConfigurableProperties", c.Configurable)...)
		if vnfcs[c.ID] != nil {
			wrong = append(wrong, nf.Violation{Field: at + ".id", Message: "is given twice"})
		}
		vnfcs[c.ID] = c.Configurable
	}
	if err := invalid(wrong); err != nil {
		return err
	}
	req := nf.ModifyVNFRequest{
		VNFRequest: common, Name: in.Name, Description: in.Description, VNFD: in.VNFD, Metadata: in.Metadata, Extensions: in.Extensions,
		Configurable: in.Configurable, VIMs: in.VIMs.connections(), VNFCs: vnfcs,
	}
	o, err := cs.connected(r, &req.VNFRequest, &req.VIMs, func(ctx context.Context) (nf.Occurrence, error) { return cs.modifications.Modify(ctx, vnfOf(r), req) })
	return cs.answer(w, r, o, err)
}

// packageChange is a ChangeCurrentVnfPkgRequest.
type packageChange struct {
	properties

	VNFD    string             `json:"vnfdId"`
	Links   []*json.RawMessage `json:"extVirtualLinks"`
	Managed []*json.RawMessage `json:"extManagedVirtualLinks"`
}

func (cs changes) changePackage(w http.ResponseWriter, r *http.Request) error {
	in, common, err := read[packageChange](cs, r)
	if err == nil {
		err = invalid(checkProperties(in.properties))
	}
	if err != nil {
		return err
	}
	var wrong nf.Violations
	if len(in.Links) > 0 {
		wrong = append(wrong, nf.Violation{Field: "extVirtualLinks[0]", Message: "is not supported here; use change_ext_conn"})
	}
	if len(in.Managed) > 0 {
		wrong = append(wrong, nf.Violation{Field: "extManagedVirtualLinks[0]", Message: "is not supported"})
	}
	if err := unprocessable(wrong); err != nil {
		return err
	}
	req := nf.ChangeVNFPackageRequest{
		VNFRequest: common, VNFD: in.VNFD, Extensions: in.Extensions, Configurable: in.Configurable, VIMs: in.VIMs.connections(),
	}
	o, err := cs.connected(r, &req.VNFRequest, &req.VIMs, func(ctx context.Context) (nf.Occurrence, error) {
		return cs.modifications.ChangePackage(ctx, vnfOf(r), req)
	})
	return cs.answer(w, r, o, err)
}
