package vnflcm

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// vim is a VimConnectionInfo of a response. It has nothing of a request's access, and no
// secrets of its further data.
type vim struct {
	ID    string         `json:"id,omitempty"` // in a list
	VIM   string         `json:"vimId"`
	Type  string         `json:"vimType"`
	At    *vimAddress    `json:"interfaceInfo,omitempty"` // of a VIM that the VNF has made
	Extra map[string]any `json:"extra,omitempty"`
}

type vimAddress struct {
	Endpoint string `json:"endpoint"`
}

// vimsOf returns the connections of a VNF in the form of the edition, or nil.
func (e edition) vimsOf(vims map[string]nf.VIMConnection) any {
	if len(vims) == 0 {
		return nil
	}
	list, byKey := []vim{}, map[string]vim{}
	for _, key := range slices.Sorted(maps.Keys(vims)) {
		shown := vim{VIM: vims[key].VIM, Type: vims[key].Type, Extra: northbound.MaskFields(vims[key].Extra, nf.Masked)}
		if server := vims[key].Server; server != "" {
			shown.At = &vimAddress{server}
		}
		byKey[key] = shown
		shown.ID = key
		list = append(list, shown)
	}
	if e.lists {
		return list
	}
	return byKey
}

// vimRequest is a VimConnectionInfo of a request.
type vimRequest struct {
	ID        string         `json:"id"` // in a list
	VIM       string         `json:"vimId"`
	Type      string         `json:"vimType"`
	Interface map[string]any `json:"interfaceInfo"`
	Access    map[string]any `json:"accessInfo"`
	Extra     map[string]any `json:"extra"`
}

// vimRequests are those of a request by their keys.
type vimRequests map[string]vimRequest

// UnmarshalJSON reads a map, or a list of items with ids.
func (v *vimRequests) UnmarshalJSON(document []byte) error {
	if !isList(document) {
		var byKey map[string]vimRequest
		err := json.Unmarshal(document, &byKey)
		*v = byKey
		return err //nolint:wrapcheck // of a decoder, to the decoder that calls it
	}
	var list []vimRequest
	err := json.Unmarshal(document, &list)
	*v = vimRequests{}
	for _, item := range list {
		(*v)[item.ID] = item
	}
	return err //nolint:wrapcheck // as above
}

func isList(document []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(document), []byte("[")) }

// connections returns what the requests ask for, or nil.
func (v vimRequests) connections() map[string]nf.VIMConnectionRequest {
	if len(v) == 0 {
		return nil
	}
	out := map[string]nf.VIMConnectionRequest{}
	for key, c := range v {
		out[key] = nf.VIMConnectionRequest{VIM: c.VIM, Type: c.Type, Interface: c.Interface, Access: c.Access, Extra: c.Extra}
	}
	return out
}
