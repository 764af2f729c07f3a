package nfvo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// request is a GrantRequest of SOL003 V3.3.1, clause 9.5.2.2.
type request struct {
	VNF         string             `json:"vnfInstanceId"`
	Occurrence  string             `json:"vnfLcmOpOccId"`
	VNFD        string             `json:"vnfdId"`
	Destination string             `json:"dstVnfdId"`
	Flavor      string             `json:"flavourId"`
	Operation   string             `json:"operation"`
	Automatic   *bool              `json:"isAutomaticInvocation"`
	Level       string             `json:"instantiationLevelId"`
	Add         []definition       `json:"addResources"`
	Remove      []definition       `json:"removeResources"`
	Update      []definition       `json:"updateResources"`
	Params      map[string]any     `json:"additionalParams"`
	Links       map[string]linkRef `json:"_links"`
}

type definition struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	VDU      string `json:"vduId"`
	Template string `json:"resourceTemplateId"`
	Resource *struct {
		ID string `json:"resourceId"`
	} `json:"resource"`
}

type linkRef struct {
	Href string `json:"href"`
}

// read reads a request, or says why an NFVO refuses it.
func read(body []byte) (r request, fault string) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, "the body is not a GrantRequest: " + err.Error()
	}
	switch {
	case r.VNF == "" || r.Occurrence == "" || r.VNFD == "" || r.Automatic == nil:
		return r, "vnfInstanceId, vnfLcmOpOccId, vnfdId and isAutomaticInvocation are mandatory"
	case !slices.Contains([]string{"INSTANTIATE", "SCALE", "SCALE_TO_LEVEL", "CHANGE_FLAVOUR", "TERMINATE", "HEAL", "OPERATE", "CHANGE_EXT_CONN", "CREATE_SNAPSHOT", "REVERT_TO_SNAPSHOT", "CHANGE_VNFPKG"}, r.Operation):
		return r, "operation " + r.Operation + " needs no grant, or does not exist"
	case r.Operation == "INSTANTIATE" && r.Flavor == "":
		return r, "flavourId is mandatory for INSTANTIATE"
	case (r.Operation == "CHANGE_VNFPKG") != (r.Destination != ""):
		return r, "dstVnfdId is mandatory for CHANGE_VNFPKG, and for nothing else"
	case r.Links["vnfInstance"].Href == "" || r.Links["vnfLcmOpOcc"].Href == "":
		return r, "_links must have vnfInstance and vnfLcmOpOcc"
	case r.Operation == "INSTANTIATE" && len(r.Remove)+len(r.Update) > 0, r.Operation == "TERMINATE" && len(r.Add)+len(r.Update) > 0:
		return r, "the resources do not fit the operation"
	}
	return r, r.checkDefinitions()
}

func (r request) checkDefinitions() (fault string) {
	seen := map[string]bool{}
	for i, d := range slices.Concat(r.Add, r.Remove, r.Update) {
		added := i < len(r.Add)
		switch {
		case d.ID == "" || seen[d.ID]:
			return fmt.Sprintf("resource definition %d has no id of its own", i)
		case !slices.Contains([]string{"COMPUTE", "VL", "STORAGE", "LINKPORT"}, d.Type):
			return "resource definition " + d.ID + " has an unknown type"
		case d.Type == "COMPUTE" && d.VDU == "":
			return "resource definition " + d.ID + " has no vduId"
		case added && (d.Template == "" || d.Resource != nil):
			return "resource definition " + d.ID + " of a new resource needs resourceTemplateId, and no resource"
		case !added && (d.Resource == nil || d.Resource.ID == ""):
			return "resource definition " + d.ID + " of an existing resource needs resource"
		}
		seen[d.ID] = true
	}
	return ""
}

// grant returns a Grant that permits all that was asked for.
func (r request) grant() map[string]any {
	out := map[string]any{"vnfInstanceId": r.VNF, "vnfLcmOpOccId": r.Occurrence, "_links": map[string]any{"vnfInstance": r.Links["vnfInstance"], "vnfLcmOpOcc": r.Links["vnfLcmOpOcc"]}}
	for name, all := range map[string][]definition{"addResources": r.Add, "removeResources": r.Remove, "updateResources": r.Update} {
		var infos []any
		for _, d := range all {
			infos = append(infos, map[string]any{"resourceDefinitionId": d.ID})
		}
		if infos != nil {
			out[name] = infos
		}
	}
	return out
}
