package vnfpkgm

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// kind is the kind of the packages that this API has.
const kind = "csar"

// isVNF reports whether a package is one of this API.
func isVNF(p nf.Package) bool { return p.Kind == "" || p.Kind == kind }

// The states of a VNF package.
const (
	enabled  = "ENABLED"
	disabled = "DISABLED"
	inUse    = "IN_USE"
	notInUse = "NOT_IN_USE"
)

// info is a VnfPkgInfo.
type info struct {
	ID              string         `json:"id"`
	VNFD            string         `json:"vnfdId,omitempty"`
	Provider        string         `json:"vnfProvider,omitempty"`
	Product         string         `json:"vnfProductName,omitempty"`
	SoftwareVersion string         `json:"vnfSoftwareVersion,omitempty"`
	Version         string         `json:"vnfdVersion,omitempty"`
	Checksum        *checksum      `json:"checksum,omitempty"`
	Images          []image        `json:"softwareImages,omitempty"`
	Artifacts       []artifact     `json:"additionalArtifacts,omitempty"`
	Onboarding      string         `json:"onboardingState"`
	Failure         *failure       `json:"onboardingFailureDetails,omitempty"`
	Operational     string         `json:"operationalState"`
	Usage           string         `json:"usageState"`
	UserData        map[string]any `json:"userDefinedData,omitempty"`
	Links           links          `json:"_links"`
}

// failure is the ProblemDetails of an upload that failed.
type failure struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Hash      string `json:"hash"`
}

// image is a VnfPackageSoftwareImageInfo.
type image struct {
	ID              string    `json:"id"`
	Name            string    `json:"name"`
	Provider        string    `json:"provider"`
	Version         string    `json:"version"`
	Checksum        *checksum `json:"checksum,omitempty"`
	ContainerFormat string    `json:"containerFormat,omitempty"`
	DiskFormat      string    `json:"diskFormat,omitempty"`
	CreatedAt       time.Time `json:"createdAt"`
	MinDisk         int64     `json:"minDisk"`
	MinRAM          int64     `json:"minRam"`
	Size            int64     `json:"size"`
	Path            string    `json:"imagePath,omitempty"`
}

func imageOf(of nf.SoftwareImage, created time.Time) image {
	out := image{
		ID: of.ID, Name: of.Name, Provider: of.Provider, Version: of.Version, ContainerFormat: of.ContainerFormat, DiskFormat: of.DiskFormat,
		CreatedAt: created, MinDisk: of.MinDisk, MinRAM: of.MinRAM, Size: of.Size, Path: of.Path,
	}
	if of.Hash != "" {
		out.Checksum = &checksum{of.Algorithm, of.Hash}
	}
	return out
}

// artifact is a VnfPackageArtifactInfo.
type artifact struct {
	Path     string    `json:"artifactPath"`
	Checksum *checksum `json:"checksum,omitempty"`
}

type links struct {
	Self    link  `json:"self"`
	VNFD    *link `json:"vnfd,omitempty"`
	Content link  `json:"packageContent"`
}

type link struct {
	Href string `json:"href"`
}

func pathOf(id string) string { return root + "/" + id }

// infoOf converts a package as it is now.
func infoOf(p nf.Package, used bool, now time.Time) info {
	out := info{
		ID: p.ID, Onboarding: strings.ToUpper(string(p.StateAt(now))), Operational: operational(p), Usage: notInUse, UserData: p.UserData,
		Links: links{Self: link{pathOf(p.ID)}, Content: link{pathOf(p.ID) + "/package_content"}},
	}
	if used {
		out.Usage = inUse
	}
	if p.Failure != nil {
		status := northbound.Status(nf.E(p.Failure.Kind, "onboard", "the package", nil))
		out.Failure = &failure{http.StatusText(status), status, p.Failure.Message}
	}
	if p.VNFD == nil {
		return out
	}
	v := p.VNFD
	out.VNFD, out.Provider, out.Product, out.SoftwareVersion, out.Version = v.ID, v.Provider, v.Product, v.SoftwareVersion, v.Version
	algorithm, hash, _ := strings.Cut(p.Digest, ":")
	out.Checksum = &checksum{strings.Replace(strings.ToUpper(algorithm), "SHA", "SHA-", 1), hash}
	out.Links.VNFD = &link{pathOf(p.ID) + "/vnfd"}
	for _, i := range v.Images {
		out.Images = append(out.Images, imageOf(i, p.Created))
	}
	for _, a := range v.Artifacts {
		if slices.Contains(v.Files, a.Path) || strings.HasPrefix(a.Path, "TOSCA-Metadata/") {
			continue
		}
		shown := artifact{Path: a.Path}
		if a.Hash != "" {
			shown.Checksum = &checksum{a.Algorithm, a.Hash}
		}
		out.Artifacts = append(out.Artifacts, shown)
	}
	return out
}

// operational returns the operationalState: a package is disabled until it has content.
func operational(p nf.Package) string {
	if p.Disabled || p.State() != nf.PackageOnboarded {
		return disabled
	}
	return enabled
}
