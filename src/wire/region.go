package wire

import (
	"cmp"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Region is a cloud region. It has no field for its access.
type Region struct {
	ID           string               `json:"cloud_region_id"`
	Owner        string               `json:"cloud_owner"`
	Type         nf.RegionType        `json:"type"`
	Origin       nf.RegionOrigin      `json:"origin"`
	Description  string               `json:"description,omitempty"`
	Labels       map[string]string    `json:"labels,omitempty"`
	Namespace    string               `json:"default_namespace,omitempty"`
	AAITenant    string               `json:"aai_tenant,omitempty"`
	Plugins      map[string]bool      `json:"cni_plugins,omitempty"`
	Interfaces   map[string]string    `json:"interfaces,omitempty"`
	Tenants      map[string]nf.Tenant `json:"tenants,omitempty"` // by project
	Server       string               `json:"server"`
	Version      string               `json:"kubernetes_version"`
	APIs         []string             `json:"apis"`
	ProbedAt     time.Time            `json:"probed_at,omitzero"`
	VNFInstances []string             `json:"vnf_instances,omitzero"` // only for a single region
	More         bool                 `json:"more_vnf_instances,omitempty"`
	Parent       *ParentCluster       `json:"parent,omitempty"` // nil: it is not a cluster of another region
	AAI          *InventoryRegion     `json:"aai,omitempty"`    // nil: the access is not read from A&AI
	State        *RegionState         `json:"state,omitempty"`  // nil: not requested
	Credential   *Credential          `json:"credential,omitempty"`
	Created      time.Time            `json:"created_at"`
	Updated      time.Time            `json:"updated_at"`
}

// RegionState is the state of a region.
type RegionState struct {
	Condition nf.RegionCondition `json:"condition"`
	Reason    string             `json:"reason,omitempty"`
	Message   string             `json:"message,omitempty"`
	Since     time.Time          `json:"since,omitzero"`
	Checked   time.Time          `json:"checked_at,omitzero"`
	Breaker   nf.BreakerState    `json:"breaker"`
	Retry     time.Time          `json:"retry_at,omitzero"`
}

// InventoryRegion is the cloud region of A&AI that the access of a region is read from.
type InventoryRegion struct {
	Owner    string    `json:"cloud_owner"`
	Version  string    `json:"resource_version"`
	Place    string    `json:"place,omitempty"`
	Reason   string    `json:"reason,omitempty"` // why A&AI has no access that can be used
	Vanished time.Time `json:"vanished_at,omitzero"`
}

func inventoryOf(a *nf.AAISource) *InventoryRegion {
	if a == nil {
		return nil
	}
	return &InventoryRegion{a.Owner, a.Version, a.Place, a.Reason, a.Vanished}
}

// Credential describes the credential of a region's access.
type Credential struct {
	Kind    string    `json:"kind"`
	Expires time.Time `json:"expires_at,omitzero"`
	Rotates bool      `json:"rotates,omitempty"`              // the service renews it
	Request string    `json:"certificate_request,omitempty"`  // the CertificateSigningRequest that is not answered
	Failing time.Time `json:"renewal_failing_since,omitzero"` // since when its renewal fails or waits for an operator
}

// RegionOf converts a region without its state.
func RegionOf(r nf.Region) Region {
	return Region{
		ID: r.ID, Owner: r.Owner, Type: r.Type, Origin: r.Origin, Namespace: r.DefaultNamespace, Description: r.Description,
		Labels: r.Labels, AAITenant: r.AAITenant, Plugins: r.Plugins, Interfaces: r.Interfaces, Tenants: r.Tenants,
		Server: r.Probe.Server, Version: r.Probe.Version, APIs: notNil(r.Probe.APIs), ProbedAt: r.Probe.Time,
		Parent: parentOf(r.Parent), AAI: inventoryOf(r.AAI), Created: r.Created, Updated: r.Updated,
	}
}

// WithState adds the state of the region.
func (r Region) WithState(s nf.RegionState) Region {
	r.State = &RegionState{
		Condition: cmp.Or(s.Condition, nf.RegionUnknown), Reason: s.Reason, Message: s.Message, Since: s.Since,
		Checked: s.Checked, Breaker: cmp.Or(s.Breaker, nf.BreakerClosed), Retry: s.Retry,
	}
	if s.Credential.Kind != "" {
		r.Credential = &Credential{
			Kind: s.Credential.Kind, Expires: s.Credential.Expires, Rotates: s.Credential.Rotates, Request: s.Credential.Request, Failing: s.Credential.Failing,
		}
	}
	return r
}
