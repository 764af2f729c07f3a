package sdc

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// The types of artifacts that matter here.
const (
	TypeHelm      = "HELM"
	TypeCloud     = "CLOUD_TECHNOLOGY_SPECIFIC_ARTIFACT" // a chart, too
	TypeModules   = "VF_MODULES_METADATA"
	TypeETSI      = "ETSI_PACKAGE"      // a CSAR
	TypeOnboarded = "ONBOARDED_PACKAGE" // the archive that the vendor delivers, such as a CSAR
	TypeOther     = "OTHER"
)

// ResourceVF is the type of the resources that have modules.
const ResourceVF = "VF"

const (
	maxName    = 256     // bytes of a name or a UUID
	maxURL     = 4096    // bytes of the URL of an artifact
	maxMessage = 4 << 20 // bytes of a notification
	maxItems   = 10_000  // artifacts of a notification, and modules
)

// Summary is an entry of the list of services.
type Summary struct {
	UUID    string `json:"uuid"` // of the version
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Metadata describes a version of a service or a resource.
type Metadata struct {
	UUID          string     `json:"uuid"`
	InvariantUUID string     `json:"invariantUUID"`
	Name          string     `json:"name"`
	Version       string     `json:"version"`
	Artifacts     []Artifact `json:"artifacts"`
	Resources     []Resource `json:"resources"` // the instances in a service
}

// All returns the artifacts of a service and of its resources.
func (m Metadata) All() []Artifact { return allOf(m.Artifacts, m.Resources) }

// Notification announces a distribution of a version of a service.
type Notification struct {
	Distribution string     `json:"distributionID"`
	Name         string     `json:"serviceName"`
	Version      string     `json:"serviceVersion"`
	Service      string     `json:"serviceUUID"` // of the version
	Invariant    string     `json:"serviceInvariantUUID"`
	Description  string     `json:"serviceDescription"`
	Resources    []Resource `json:"resources"`
	Artifacts    []Artifact `json:"serviceArtifacts"`
}

// Resource is an instance of a resource in a service.
type Resource struct {
	Instance  string
	Name      string
	Type      string // such as ResourceVF
	UUID      string
	Artifacts []Artifact
}

// UnmarshalJSON reads the type from resoucreType, as SDC spells it, or from
// resourceType.
func (r *Resource) UnmarshalJSON(data []byte) error {
	var raw struct {
		Instance  string     `json:"resourceInstanceName"`
		Name      string     `json:"resourceName"`
		Misspelt  string     `json:"resoucreType"` // SDC's spelling
		Type      string     `json:"resourceType"`
		UUID      string     `json:"resourceUUID"`
		Artifacts []Artifact `json:"artifacts"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err //nolint:wrapcheck // encoding/json adds the place
	}
	*r = Resource{raw.Instance, raw.Name, raw.Type, raw.UUID, raw.Artifacts}
	if raw.Misspelt != "" {
		r.Type = raw.Misspelt
	}
	return nil
}

// Artifact is a file of a service or a resource.
type Artifact struct {
	Name          string `json:"artifactName"`
	Type          string `json:"artifactType"`
	URL           string `json:"artifactURL"`      // a path
	Checksum      string `json:"artifactChecksum"` // base64 of an MD5, or of its hexadecimal digits
	UUID          string `json:"artifactUUID"`
	GeneratedFrom string `json:"generatedFromUUID,omitempty"` // UUID of the artifact that it was generated from
}

// All returns the artifacts of a notification and of its resources.
func (n Notification) All() []Artifact { return allOf(n.Artifacts, n.Resources) }

func allOf(own []Artifact, resources []Resource) []Artifact {
	out := slices.Clone(own)
	for _, r := range resources {
		out = append(out, r.Artifacts...)
	}
	return out
}

// ParseNotification reads a notification. It returns nf.Invalid if it is none, or
// names no distribution.
func ParseNotification(data []byte) (Notification, error) {
	var n Notification
	if len(data) > maxMessage {
		return n, nf.E(nf.Invalid, "read", "the notification", errLarge(maxMessage))
	}
	if err := json.Unmarshal(data, &n); err != nil {
		return Notification{}, nf.E(nf.Invalid, "read", "the notification", errors.New("it is not a JSON document of a distribution"))
	}
	all := n.All()
	switch {
	case n.Distribution == "" || len(n.Distribution) > maxName || len(n.Service) > maxName:
		return Notification{}, nf.E(nf.Invalid, "read", "the notification", errors.New("distributionID is missing, or longer than 256 bytes"))
	case len(all) > maxItems:
		return Notification{}, nf.E(nf.Invalid, "read", "the notification", fmt.Errorf("it has more than %d artifacts", maxItems))
	}
	return n, nil
}

// Deletion announces that a version of a service was deleted.
type Deletion struct {
	Service string `json:"serviceUUID"`
	Name    string `json:"serviceName"`
}

// ParseDeletion reads the announcement of a deletion. It returns nf.Invalid if it is
// none, or names no service.
func ParseDeletion(data []byte) (Deletion, error) {
	var d Deletion
	if len(data) > maxMessage || json.Unmarshal(data, &d) != nil || d.Service == "" || len(d.Service) > maxName {
		return Deletion{}, nf.E(nf.Invalid, "read", "the deletion", errors.New("it names no serviceUUID"))
	}
	return d, nil
}

// Module is a VF module of a resource.
type Module struct {
	Name          string   `json:"vfModuleModelName"` // such as "Vfw..helm_vf..module-0"
	Invariant     string   `json:"vfModuleModelInvariantUUID"`
	UUID          string   `json:"vfModuleModelUUID"`
	Customization string   `json:"vfModuleModelCustomizationUUID"`
	Description   string   `json:"vfModuleModelDescription"`
	Artifacts     []string `json:"artifacts"` // UUIDs
}

// ParseModules reads an artifact of TypeModules. It returns nf.Invalid if it is none, or
// if a module lacks a UUID that identifies it.
func ParseModules(data []byte) ([]Module, error) {
	var out []Module
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, nf.E(nf.Invalid, "read", "the modules", errors.New("the artifact is not a JSON list of VF modules"))
	}
	if len(out) > maxItems {
		return nil, nf.E(nf.Invalid, "read", "the modules", fmt.Errorf("there are more than %d", maxItems))
	}
	var v nf.Violations
	for i, m := range out {
		for _, id := range [][2]string{{"vfModuleModelInvariantUUID", m.Invariant}, {"vfModuleModelCustomizationUUID", m.Customization}} {
			if id[1] == "" || len(id[1]) > maxName {
				v = append(v, nf.Violation{Field: fmt.Sprintf("%d.%s", i, id[0]), Message: "is missing, or longer than 256 bytes"})
			}
		}
	}
	if v != nil {
		return nil, nf.E(nf.Invalid, "read", "the modules", v)
	}
	return out, nil
}

// IsChart reports whether an artifact has a type whose files are charts.
func (a Artifact) IsChart() bool { return a.Type == TypeHelm || a.Type == TypeCloud }

// Chart returns the chart of a module, or false if it has none. It is the first
// artifact of TypeHelm in the module's list. Otherwise, it is the first one of TypeCloud
// whose name begins with the module's label and an underscore. If none does, it is the
// only one of TypeCloud, or the first one if the name of the module has no label.
func (m Module) Chart(artifacts []Artifact) (Artifact, bool) {
	var cloud []Artifact
	for _, id := range m.Artifacts {
		i := slices.IndexFunc(artifacts, func(a Artifact) bool { return a.UUID == id })
		switch {
		case i < 0:
		case artifacts[i].Type == TypeHelm:
			return artifacts[i], true
		case artifacts[i].Type == TypeCloud:
			cloud = append(cloud, artifacts[i])
		}
	}
	label, labeled := m.label()
	for _, a := range cloud {
		if labeled && strings.HasPrefix(strings.ToLower(a.Name), label+"_") {
			return a, true
		}
	}
	if len(cloud) == 1 || len(cloud) > 0 && !labeled {
		return cloud[0], true
	}
	return Artifact{}, false
}

// label returns the part of the module's name between its first two "..".
func (m Module) label() (string, bool) {
	parts := strings.SplitN(m.Name, "..", 3)
	if len(parts) < 3 || parts[1] == "" {
		return "", false
	}
	return strings.ToLower(parts[1]), true
}
