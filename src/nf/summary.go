package nf

import "slices"

// Attribute is a property that lists select records by. Its name is that of the
// parameter of the native API. A record may have several attributes of one name.
type Attribute struct{ Name, Value string }

// The names of attributes.
const (
	AttributeRegion       = "cloud_region_id"
	AttributeNamespace    = "namespace"
	AttributeInstance     = "vnf_instance_name"
	AttributePackage      = "csar_id"
	AttributeState        = "state"
	AttributeProject      = "project"
	AttributeSubject      = "subject" // of an operation: the kind of its subject, and the subject
	AttributeLabel        = "label"   // "name=value"
	AttributeVNFD         = "vnfd"
	AttributeDriver       = "driver"
	AttributeIdentity     = "identity"
	AttributeIdentityKind = "identity_kind"
)

// Summary is the part of a record that lists select by. It contains no secret.
type Summary struct {
	Scope      Scope // that permissions to read the record are required in
	Attributes []Attribute
}

// Has reports whether the record has all attributes.
func (s Summary) Has(wanted []Attribute) bool {
	return !slices.ContainsFunc(wanted, func(a Attribute) bool { return !slices.Contains(s.Attributes, a) })
}

// Summary returns the summary of the instance.
func (in Instance) Summary() Summary {
	return Summary{
		Scope: Scope{Project: ProjectOf(in.Project), Region: in.Region},
		Attributes: append(labels(in.Labels),
			Attribute{AttributeRegion, in.Region}, Attribute{AttributeNamespace, in.Namespace}, Attribute{AttributeInstance, in.Name},
			Attribute{AttributePackage, in.Package}, Attribute{AttributeState, string(in.State)}, Attribute{AttributeProject, ProjectOf(in.Project)}),
	}
}

// Summary returns the summary of the operation.
func (o Operation) Summary() Summary {
	return Summary{
		Scope: Scope{Project: ProjectOf(o.Project), Region: o.Region},
		Attributes: []Attribute{
			{AttributeSubject, string(o.Subject.Kind)}, {AttributeSubject, o.Subject.String()},
			{AttributeState, string(o.State)}, {AttributeProject, ProjectOf(o.Project)},
		},
	}
}

// Summary returns the summary of the package.
func (p Package) Summary() Summary {
	project := ProjectOf(p.Project)
	return Summary{Scope: Scope{Project: project}, Attributes: []Attribute{{AttributeProject, project}}}
}

// Summary returns the summary of the VNF.
func (v VNF) Summary() Summary {
	return Summary{Scope: v.Scope(), Attributes: []Attribute{
		{AttributeProject, ProjectOf(v.Project)}, {AttributePackage, v.Package}, {AttributeVNFD, v.VNFD.ID}, {AttributeInstance, v.Name}, {AttributeState, v.State()},
	}}
}

// Summary returns the summary of the occurrence. One that has failed temporarily also has the
// states of the next attempt: until that begins, it is stored as a failed one.
func (o Occurrence) Summary() Summary {
	out := Summary{
		Scope:      o.Scope(),
		Attributes: []Attribute{{AttributeProject, ProjectOf(o.Project)}, {AttributeState, string(o.State)}, {AttributeSubject, Subject{Kind: VNFSubject, ID: o.VNF}.String()}},
	}
	if o.State == OccurrenceFailedTemp {
		out.Attributes = append(out.Attributes, Attribute{AttributeState, string(OccurrenceProcessing)}, Attribute{AttributeState, string(OccurrenceRollingBack)})
	}
	return out
}

// Summary returns the summary of the region.
func (r Region) Summary() Summary {
	return Summary{Scope: Scope{Region: r.ID}, Attributes: labels(r.Labels)}
}

// Summary returns the summary of the site.
func (s Site) Summary() Summary {
	return Summary{
		Scope:      Scope{Region: s.Region},
		Attributes: []Attribute{{AttributeState, string(s.State)}, {AttributeProject, ProjectOf(s.Project)}},
	}
}

// Summary returns the summary of the entry.
func (e AuditEntry) Summary() Summary {
	return Summary{
		Scope: Scope{Project: e.Project, Region: e.Region},
		Attributes: []Attribute{
			{AttributeIdentity, e.Identity}, {AttributeIdentityKind, e.Kind}, {AttributeProject, e.Project}, {AttributeRegion, e.Region},
		},
	}
}

func labels(of map[string]string) []Attribute {
	out := make([]Attribute, 0, len(of)+6) // the caller adds more
	for name, value := range of {
		out = append(out, Attribute{AttributeLabel, name + "=" + value})
	}
	return out
}
