package declared

import (
	"fmt"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// Service declares a network service with all its members.
type Service struct {
	Origin Origin `json:"-"`

	wire.ServiceCreate
}

func (d Service) check() nf.Violations {
	v := required("service_id", d.ID)
	if len(d.Members) == 0 {
		v = append(v, nf.Violation{Field: "members", Message: "is missing"})
	}
	for i, m := range d.Members {
		at := fmt.Sprintf("members[%d].", i)
		v = append(v, required(at+"name", m.Name)...)
		v = append(v, required(at+"csar_id", m.Package)...)
		if (m.Region == "") == (m.Placement == nil) {
			v = append(v, nf.Violation{Field: at + "cloud_region_id", Message: "give exactly one of cloud_region_id and placement"})
		}
	}
	return v
}
