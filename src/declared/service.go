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

	// NSDFile is the network service descriptor, relative to the declaration.
	NSDFile string `json:"nsd_file,omitempty"`
}

// descriptor reads the NSD of a service.
func (r *reader) descriptor(at Origin, d *Service) nf.Violations {
	switch {
	case d.NSDFile == "":
		return nil
	case d.NSD != "":
		return nf.Violations{{Field: "nsd_file", Message: "give at most one of nsd and nsd_file"}}
	}
	text, err := r.read(Beside(at, d.NSDFile))
	if err != nil {
		return nf.Violations{{Field: "nsd_file", Message: "cannot read " + d.NSDFile + ": " + err.Error()}}
	}
	d.NSD, d.NSDFile = string(text), ""
	return nil
}

func (d Service) check() nf.Violations {
	v := required("service_id", d.ID)
	described := d.NSD != "" || d.NSDFile != ""
	if len(d.Members) == 0 && !described {
		v = append(v, nf.Violation{Field: "members", Message: "is missing"})
	}
	for i, m := range d.Members {
		at := fmt.Sprintf("members[%d].", i)
		v = append(v, required(at+"name", m.Name)...)
		if !described {
			v = append(v, required(at+"csar_id", m.Package)...)
		}
		if (m.Region == "") == (m.Placement == nil) {
			v = append(v, nf.Violation{Field: at + "cloud_region_id", Message: "give exactly one of cloud_region_id and placement"})
		}
	}
	return v
}
