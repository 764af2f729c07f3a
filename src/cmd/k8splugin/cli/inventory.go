package cli

import (
	"cmp"

	"github.com/spf13/pflag"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// inventoryFlags say what A&AI is to have of an instance.
type inventoryFlags struct{ writer, vnf, module, tenant string }

func (f *inventoryFlags) define(flags *pflag.FlagSet) {
	flags.StringVar(&f.writer, "aai-writer", "", "what writes the objects to A&AI: service, adapter or none (default service)")
	flags.StringVar(&f.vnf, "generic-vnf", "", "id of the generic-vnf of A&AI that the instance belongs to")
	flags.StringVar(&f.module, "vf-module", "", "id of the vf-module of the generic-vnf")
	flags.StringVar(&f.tenant, "aai-tenant", "", "id of the tenant of A&AI that contains the objects (default that of the region)")
}

// document returns the given flags; nil: none.
func (f *inventoryFlags) document() *wire.AAI {
	return wire.AAIOf(nf.AAI{Writer: nf.AAIWriter(f.writer), VNF: f.vnf, Module: f.module, Tenant: f.tenant})
}

// inventoryLine describes what A&AI is to have of an instance.
func inventoryLine(a *wire.AAI) string {
	if a == nil {
		return ""
	}
	line := "written by " + string(cmp.Or(a.Writer, nf.AAIService))
	for _, part := range []struct{ name, value string }{{"generic-vnf", a.VNF}, {"vf-module", a.Module}, {"tenant", a.Tenant}} {
		if part.value != "" {
			line += ", " + part.name + " " + part.value
		}
	}
	return line
}
