package volume

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/shared"
)

// modes are the access modes of Kubernetes.
var modes = []string{"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"}

const (
	filesystem = "Filesystem"
	block      = "Block"
)

// specOf returns the spec of a volume. A stored one is never malformed.
func specOf(v nf.Volume) (nf.VolumeSpec, error) {
	var spec nf.VolumeSpec
	if err := json.Unmarshal(v.Spec, &spec); err != nil {
		return spec, nf.E(nf.Invalid, "read", "volume "+v.Name, nf.Violations{{Message: "its spec is not an object of the expected form"}})
	}
	return spec, nil
}

// Normalize implements shared.Kind.
func (k *Kind) Normalize(_ context.Context, _ shared.Place, v nf.Volume, before json.RawMessage) (json.RawMessage, error) {
	spec, err := specOf(v)
	if err != nil {
		return nil, err
	}
	wrong := complete(&spec)
	if before != nil && len(wrong) == 0 {
		was, err := specOf(nf.Volume{Name: v.Name, Spec: before})
		if err != nil {
			return nil, err
		}
		wrong = changed(was, spec)
	}
	if len(wrong) > 0 {
		return nil, nf.E(nf.Invalid, "check", "volume "+v.Name, wrong)
	}
	return json.Marshal(spec)
}

// complete sets the defaults of a spec, and returns a violation for each fault.
func complete(spec *nf.VolumeSpec) nf.Violations {
	var c checks
	c.source(spec.Source)
	adopted := spec.Source.Adopt != nil
	if !adopted {
		if len(spec.AccessModes) == 0 {
			spec.AccessModes = []string{modes[0]}
		}
		if spec.Mode == "" {
			spec.Mode = filesystem
		}
	}
	if spec.Retention == "" {
		spec.Retention = nf.RetainVolume
	}
	if size, err := resource.ParseQuantity(spec.Size); spec.Size != "" || !adopted {
		switch {
		case spec.Size == "":
			c.add("size", "is required")
		case err != nil || size.Sign() <= 0:
			c.add("size", "%q is not a positive quantity, as in 10Gi", nf.Clip(spec.Size, 64))
		default:
			spec.Size = size.String()
		}
	}
	c.modes(spec.AccessModes)
	switch {
	case spec.Mode != filesystem && spec.Mode != block && (!adopted || spec.Mode != ""):
		c.add("mode", "%q is not one of %s, %s", nf.Clip(spec.Mode, 64), filesystem, block)
	case spec.Mode == block && (spec.Source.NFS != nil || spec.Source.HostPath != nil):
		c.add("mode", "%s is not possible for a directory", block)
	case spec.Mode == block && spec.Source.CSI != nil && spec.Source.CSI.FSType != "":
		c.add("source.csi.fs_type", "is not possible with the mode %s", block)
	}
	if spec.Retention != nf.RetainVolume && spec.Retention != nf.DeleteVolume {
		c.add("retention", "%q is not one of %s, %s", nf.Clip(string(spec.Retention), 64), nf.RetainVolume, nf.DeleteVolume)
	}
	return c.wrong
}

// checks collects violations.
type checks struct{ wrong nf.Violations }

func (c *checks) add(field, format string, args ...any) {
	c.wrong = append(c.wrong, nf.Violation{Field: field, Message: fmt.Sprintf(format, args...)})
}

func (c *checks) source(s nf.VolumeSource) {
	set := 0
	for _, given := range []bool{s.NFS != nil, s.Local != nil, s.HostPath != nil, s.CSI != nil, s.Class != nil, s.Adopt != nil} {
		if given {
			set++
		}
	}
	if set != 1 {
		c.add("source", "must have exactly one of adopt, class, csi, host_path, local, nfs")
		return
	}
	switch {
	case s.NFS != nil:
		if s.NFS.Server == "" || strings.ContainsAny(s.NFS.Server, "/ \t\n") {
			c.add("source.nfs.server", "%q is not the name or the address of a host", nf.Clip(s.NFS.Server, 64))
		}
		c.path("source.nfs.path", s.NFS.Path)
	case s.Local != nil:
		c.name("source.local.node", s.Local.Node)
		c.path("source.local.path", s.Local.Path)
	case s.HostPath != nil:
		if s.HostPath.Node != "" {
			c.name("source.host_path.node", s.HostPath.Node)
		}
		c.path("source.host_path.path", s.HostPath.Path)
	case s.CSI != nil:
		c.csi(*s.CSI)
	case s.Class != nil:
		c.name("source.class.name", s.Class.Name)
		if s.Class.Node != "" {
			c.name("source.class.node", s.Class.Node)
		}
	default:
		c.name("source.adopt.pv", s.Adopt.PV)
	}
}

func (c *checks) csi(s nf.CSIVolume) {
	c.name("source.csi.driver", s.Driver)
	if s.Handle == "" {
		c.add("source.csi.volume_handle", "is required")
	}
	if s.Secret != nil {
		c.name("source.csi.secret.namespace", s.Secret.Namespace)
		c.name("source.csi.secret.name", s.Secret.Name)
	}
}

// path checks an absolute path, as the API server does.
func (c *checks) path(field, text string) {
	switch {
	case text == "":
		c.add(field, "is required")
	case !path.IsAbs(text) || slices.Contains(strings.Split(text, "/"), ".."):
		c.add(field, `%q is not an absolute path without ".."`, nf.Clip(text, 64))
	}
}

func (c *checks) name(field, name string) {
	switch {
	case name == "":
		c.add(field, "is required")
	case len(validation.IsDNS1123Subdomain(strings.ToLower(name))) > 0:
		c.add(field, "%q is not the name of an object", nf.Clip(name, 64))
	}
}

func (c *checks) modes(all []string) {
	for i, mode := range all {
		field := fmt.Sprintf("access_modes[%d]", i)
		switch {
		case !slices.Contains(modes, mode):
			c.add(field, "%q is not one of %s", nf.Clip(mode, 64), strings.Join(modes, ", "))
		case slices.Contains(all[:i], mode):
			c.add(field, "%s is a repetition", mode)
		case mode == "ReadWriteOncePod" && len(all) > 1:
			c.add(field, "%s is possible only without another mode", mode)
		}
	}
}

// changed returns a violation for each difference between two specs that a region
// cannot carry out.
func changed(was, is nf.VolumeSpec) nf.Violations {
	var c checks
	for _, f := range []struct {
		field    string
		was, now any
	}{
		{"source", was.Source, is.Source}, {"access_modes", was.AccessModes, is.AccessModes}, {"mode", was.Mode, is.Mode},
	} {
		if !reflect.DeepEqual(f.was, f.now) {
			c.add(f.field, "cannot be changed")
		}
	}
	if smaller(is.Size, was.Size) {
		c.add("size", "%s is less than %s: a volume cannot shrink", is.Size, was.Size)
	}
	return c.wrong
}

// smaller reports whether a quantity is less than another one. An empty one is 0.
func smaller(a, b string) bool {
	left, _ := resource.ParseQuantity(a)
	right, _ := resource.ParseQuantity(b)
	return left.Cmp(right) < 0
}
