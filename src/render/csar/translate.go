package csar

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/csar"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
)

// translationFile is the name of the manifests that a VNF descriptor is translated to.
const translationFile = "translation.yaml"

// translationPackage returns a package of manifests with those of a translation, and
// with its attachments to networks.
func translationPackage(of tosca.Translation) render.Files {
	out := manifestPackage(render.Files{translationFile: of.Manifests}, translationFile)
	if len(of.Networks) == 0 {
		return out
	}
	var list strings.Builder
	list.WriteString("networks:\n")
	for _, a := range of.Networks {
		list.WriteString("- network: " + strconv.Quote(a.Network) + "\n  workload: " + strconv.Quote(a.Workload) + "\n")
		if a.Interface != "" {
			list.WriteString("  interface: " + strconv.Quote(a.Interface) + "\n")
		}
	}
	out["metadata.yaml"] = append(out["metadata.yaml"], list.String()...)
	return out
}

// translated renders the translation of the VNF descriptor.
func (r Renderer) translated(ctx context.Context, in render.Input, c csar.CSAR, size *sizing) (render.Output, error) {
	nothing := unusable(FilesParameter, "is empty, and no artifact of the CSAR is a Kubernetes manifest or a Helm chart")
	if top, err := descriptor(c, in.Files); err == nil && !describesVDUs(top) {
		return render.Output{}, nothing
	}
	translation, err := tosca.Translate(in.Files, c.VNFD.Files[0], size.flavor, size.level)
	if err != nil {
		return render.Output{}, nf.E(nf.Invalid, "render", "the CSAR", slices.Concat(nf.ViolationsOf(nothing), nf.ViolationsOf(parameter(err))))
	}
	in.Files = translationPackage(translation)
	out, err := r.cfg.Manifests.Render(ctx, in)
	if err != nil {
		return out, fmt.Errorf("cannot render the translation of the VNF descriptor: %w", err)
	}
	move(out, in.Builtins["namespace"])
	return out, nil
}

func describesVDUs(top tosca.Topology) bool {
	for _, f := range top.Flavors {
		if len(f.VDUs) > 0 {
			return true
		}
	}
	return false
}

// checkTranslation adds why flavors cannot be translated to the warnings of a CSAR that
// has nothing else to create an instance from. It returns an error that does not
// describe the CSAR.
func (r Renderer) checkTranslation(ctx context.Context, out *render.Summary, c csar.CSAR, files render.Files) error {
	top, err := descriptor(c, files)
	if err != nil { // describe reports it
		top = tosca.Topology{}
	}
	usable := false
	for _, id := range slices.Sorted(maps.Keys(top.Flavors)) {
		f := top.Flavors[id]
		if len(f.VDUs) == 0 {
			continue
		}
		level := f.DefaultLevel
		if levels := slices.Sorted(maps.Keys(f.Levels)); level == "" && len(levels) > 0 {
			level = levels[0]
		}
		translation, err := tosca.Translate(files, c.VNFD.Files[0], id, level)
		if err == nil {
			_, err = r.cfg.Manifests.Check(ctx, translationPackage(translation))
		}
		usable = usable || err == nil
		if err := warnOf(out, fmt.Sprintf("flavor %q", id), err); err != nil {
			return err
		}
	}
	if !usable {
		out.Warnings = append(out.Warnings, "no artifact is a Kubernetes manifest or a Helm chart, and the VNF descriptor cannot be translated, so that no instance can be created")
	}
	return nil
}
