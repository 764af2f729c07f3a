package vnfsubscription

import (
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// document is a LccnSubscription or a FmSubscription.
type document struct {
	ID        string          `json:"id"`
	Filter    *filter         `json:"filter,omitempty"`
	Callback  string          `json:"callbackUri"`
	Verbosity string          `json:"verbosity,omitempty"`
	Links     map[string]link `json:"_links"`
}

type link struct {
	Href string `json:"href"`
}

func (s subscriptions) link(id string) string {
	return s.cfg.Endpoint + "/" + string(s.of) + "/subscriptions/" + id
}

func (s subscriptions) document(of nf.VNFSubscription) document {
	out := document{ID: of.ID, Filter: filterOf(of.Filter), Callback: of.Callback, Links: map[string]link{"self": {s.link(of.ID)}}}
	if s.of == nf.VNFLifecycle {
		out.Verbosity = "FULL"
		if of.Short {
			out.Verbosity = short
		}
	}
	return out
}

// filter is a LifecycleChangeNotificationsFilter or a FmNotificationsFilter.
type filter struct {
	VNFs       *vnfs                    `json:"vnfInstanceSubscriptionFilter,omitempty"`
	Types      []nf.NoticeKind          `json:"notificationTypes,omitempty"`
	Operations []nf.OccurrenceOperation `json:"operationTypes,omitempty"`
	States     []nf.OccurrenceState     `json:"operationStates,omitempty"`
	Resources  []string                 `json:"faultyResourceTypes,omitempty"`
	Severities []nf.AlarmSeverity       `json:"perceivedSeverities,omitempty"`
	Events     []string                 `json:"eventTypes,omitempty"`
	Causes     []string                 `json:"probableCauses,omitempty"`
}

// vnfs is a VnfInstanceSubscriptionFilter.
type vnfs struct {
	VNFDs     []string   `json:"vnfdIds,omitempty"`
	Providers []provider `json:"vnfProductsFromProviders,omitempty"`
	IDs       []string   `json:"vnfInstanceIds,omitempty"`
	Names     []string   `json:"vnfInstanceNames,omitempty"`
}

type provider struct {
	Provider string    `json:"vnfProvider"`
	Products []product `json:"vnfProducts,omitempty"`
}

type product struct {
	Product  string    `json:"vnfProductName"`
	Versions []version `json:"versions,omitempty"`
}

type version struct {
	Software string   `json:"vnfSoftwareVersion"`
	VNFDs    []string `json:"vnfdVersions,omitempty"`
}

// filter returns the filter as it is stored.
func (f filter) filter() nf.VNFFilter {
	out := nf.VNFFilter{
		Types: f.Types, Operations: f.Operations, States: f.States,
		Resources: f.Resources, Severities: f.Severities, Events: f.Events, Causes: f.Causes,
	}
	if f.VNFs != nil {
		out.VNFDs, out.VNFs, out.Names = f.VNFs.VNFDs, f.VNFs.IDs, f.VNFs.Names
		for _, p := range f.VNFs.Providers {
			out.Products = append(out.Products, p.flat()...)
		}
	}
	return out
}

// flat returns a product for each version of a VNFD that the provider selects.
func (p provider) flat() []nf.VNFProduct {
	var out []nf.VNFProduct
	for _, one := range orOne(p.Products) {
		for _, v := range orOne(one.Versions) {
			for _, vnfd := range orOne(v.VNFDs) {
				out = append(out, nf.VNFProduct{Provider: p.Provider, Product: one.Product, SoftwareVersion: v.Software, Version: vnfd})
			}
		}
	}
	return out
}

// orOne returns a list, or one zero value if it is empty.
func orOne[T any](list []T) []T {
	if len(list) == 0 {
		return make([]T, 1)
	}
	return list
}

// filterOf returns the document of a filter; nil: it selects all.
func filterOf(f nf.VNFFilter) *filter {
	out := filter{
		Types: f.Types, Operations: f.Operations, States: f.States,
		Resources: f.Resources, Severities: f.Severities, Events: f.Events, Causes: f.Causes,
	}
	if len(f.VNFDs)+len(f.Products)+len(f.VNFs)+len(f.Names) > 0 {
		out.VNFs = &vnfs{VNFDs: f.VNFDs, Providers: grouped(f.Products), IDs: f.VNFs, Names: f.Names}
	}
	lists := len(out.Types) + len(out.Operations) + len(out.States) + len(out.Resources) + len(out.Severities) + len(out.Events) + len(out.Causes)
	if out.VNFs == nil && lists == 0 {
		return nil
	}
	return &out
}

// grouped returns the products as flat has found them.
func grouped(all []nf.VNFProduct) []provider {
	var out []provider
	for _, p := range all {
		i := slices.IndexFunc(out, func(one provider) bool { return one.Provider == p.Provider })
		if i < 0 {
			i, out = len(out), append(out, provider{Provider: p.Provider})
		}
		if p.Product != "" {
			out[i].Products = withProduct(out[i].Products, p)
		}
	}
	return out
}

func withProduct(all []product, p nf.VNFProduct) []product {
	i := slices.IndexFunc(all, func(one product) bool { return one.Product == p.Product })
	if i < 0 {
		i, all = len(all), append(all, product{Product: p.Product})
	}
	if p.SoftwareVersion == "" {
		return all
	}
	j := slices.IndexFunc(all[i].Versions, func(one version) bool { return one.Software == p.SoftwareVersion })
	if j < 0 {
		j, all[i].Versions = len(all[i].Versions), append(all[i].Versions, version{Software: p.SoftwareVersion})
	}
	if p.Version != "" {
		all[i].Versions[j].VNFDs = append(all[i].Versions[j].VNFDs, p.Version)
	}
	return all
}
