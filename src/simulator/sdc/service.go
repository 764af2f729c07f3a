package sdc

import (
	"crypto/md5" //nolint:gosec // SDC's checksums are MD5
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// The types of artifacts that the simulator knows. They are a part of SDC's list.
const (
	typeModules = "VF_MODULES_METADATA"
	typeCSAR    = "TOSCA_CSAR"
)

var artifactTypes = []string{
	"HELM", "CLOUD_TECHNOLOGY_SPECIFIC_ARTIFACT", typeModules, typeCSAR, "TOSCA_TEMPLATE", "ASD_PACKAGE", "ETSI_PACKAGE", "ONBOARDED_PACKAGE",
	"HEAT", "HEAT_ENV", "HEAT_ARTIFACT", "HEAT_NESTED", "HEAT_VOL", "CONTROLLER_BLUEPRINT_ARCHIVE", "OTHER",
}

// Service is a version of a service. Empty UUIDs are created.
type Service struct {
	UUID          string // of the version
	InvariantUUID string
	Name          string
	Version       string // "1.0" by default
	Resources     []Resource
	Artifacts     []Artifact // of the service itself
}

// Resource is an instance of a resource in a service.
type Resource struct {
	Instance          string // its name, such as "vf 0"
	Name              string
	Type              string // "VF" by default
	UUID              string
	InvariantUUID     string
	CustomizationUUID string
	Modules           []Module // become an artifact of the type VF_MODULES_METADATA
	Artifacts         []Artifact
}

// Module is a VF module of a resource.
type Module struct {
	Name              string // such as "Vfw..helm_vf..module-0"
	InvariantUUID     string
	UUID              string
	CustomizationUUID string
	Artifacts         []string // UUIDs
}

// Artifact is a file of a service or a resource.
type Artifact struct {
	Name          string
	Type          string
	UUID          string
	GeneratedFrom string // UUID of the artifact that it was generated from
	Content       []byte
	Raw           bool // the checksum is base64 of the digest, not of its hexadecimal digits

	url string // in notifications
}

// complete sets the defaults of a service.
func (s Service) complete() (Service, error) {
	defaults(&s.UUID, &s.InvariantUUID)
	if s.Version == "" {
		s.Version = "1.0"
	}
	s.Artifacts = append([]Artifact(nil), s.Artifacts...)
	for i := range s.Artifacts {
		s.Artifacts[i].complete(s.path() + "/artifacts/")
	}
	s.Resources = append([]Resource(nil), s.Resources...)
	for i := range s.Resources {
		if err := s.Resources[i].complete(s.path()); err != nil {
			return s, err
		}
	}
	return s, nil
}

// path returns the path of a service in notifications, which has its name.
func (s Service) path() string {
	return "/sdc/v1/catalog/services/" + strings.ReplaceAll(s.Name, " ", "") + "/" + s.Version
}

func (r *Resource) complete(service string) error {
	defaults(&r.UUID, &r.InvariantUUID, &r.CustomizationUUID)
	if r.Type == "" {
		r.Type = "VF"
	}
	r.Artifacts = append([]Artifact(nil), r.Artifacts...)
	if r.Modules != nil {
		content, err := json.Marshal(modulesDocument(r.Modules))
		if err != nil {
			return fmt.Errorf("cannot encode the modules of %s: %w", r.Instance, err)
		}
		r.Artifacts = append(r.Artifacts, Artifact{Name: normalized(r.Instance) + "_modules.json", Type: typeModules, Content: content})
	}
	for i := range r.Artifacts {
		r.Artifacts[i].complete(service + "/resourceInstances/" + normalized(r.Instance) + "/artifacts/")
	}
	return nil
}

func (a *Artifact) complete(folder string) {
	defaults(&a.UUID)
	a.url = folder + a.Name
}

// checksum returns the checksum of an artifact in SDC's form.
func (a Artifact) checksum() string { return checksum(a.Content, a.Raw) }

func checksum(content []byte, raw bool) string {
	sum := md5.Sum(content) //nolint:gosec // as above
	if raw {
		return base64.StdEncoding.EncodeToString(sum[:])
	}
	return base64.StdEncoding.EncodeToString([]byte(hex.EncodeToString(sum[:])))
}

// modulesDocument returns the content of an artifact of the type VF_MODULES_METADATA.
func modulesDocument(modules []Module) []map[string]any {
	out := []map[string]any{}
	for i, m := range modules {
		out = append(out, map[string]any{
			"vfModuleModelName": m.Name, "vfModuleModelInvariantUUID": m.InvariantUUID, "vfModuleModelVersion": "1",
			"vfModuleModelUUID": m.UUID, "vfModuleModelCustomizationUUID": m.CustomizationUUID, "vfModuleModelDescription": nil,
			"isBase": i == 0, "artifacts": m.Artifacts, "properties": map[string]any{"min_vf_module_instances": "1", "vf_module_label": "x"},
		})
	}
	return out
}

var unusual = regexp.MustCompile(`[^a-z0-9]`)

// normalized returns the name of an instance as SDC has it in paths.
func normalized(name string) string { return unusual.ReplaceAllString(strings.ToLower(name), "") }

// defaults sets the UUIDs that are empty.
func defaults(ids ...*string) {
	for _, id := range ids {
		if *id == "" {
			*id = NewUUID()
		}
	}
}

// NewUUID returns a random UUID.
func NewUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
