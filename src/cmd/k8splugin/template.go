package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/catalog"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// The names in a package that is rendered without a region and an instance.
const (
	exampleID     = "vnf-id"
	exampleName   = "vnf-name"
	exampleRegion = "cloud-region"
	exampleOwner  = "cloud-owner"
)

// template renders a package as a server of this version does, without a region:
// charts see Helm's default capabilities, and their lookups find nothing. If secrets is
// false, they are masked.
func template(ctx context.Context, archive []byte, req nf.InstantiateRequest, secrets bool) (nf.Preview, error) {
	pkg, err := inspect(ctx, archive)
	if err != nil {
		return nf.Preview{}, err
	}
	in, err := inputOf(archive, req)
	if err != nil {
		return nf.Preview{}, err
	}
	out, plan, err := rendered(ctx, pkg.Kind, in)
	if err != nil {
		return nf.Preview{}, err
	}
	content := render.Masked(nf.NewRedactor(append(out.Secrets, in.Inputs.Secrets(out.Sensitive)...)))
	if secrets {
		content = render.Whole
	}
	return nf.Preview{Warnings: out.Warnings, Manifests: plan.Manifests(content)}, nil
}

// check checks a package as an upload to a server of this version does, and renders it
// if it is a chart or if there are inputs. It returns the warnings of both.
func check(ctx context.Context, archive []byte, given nf.Inputs) ([]string, error) {
	pkg, err := inspect(ctx, archive)
	if err != nil || pkg.Kind != chartKind && len(given.Parameters) == 0 && len(given.Overrides) == 0 {
		return pkg.Warnings, err
	}
	in, err := inputOf(archive, nf.InstantiateRequest{
		Namespace: "default", Name: exampleName, Spec: nf.Spec{Release: exampleName, Inputs: given},
	})
	if err != nil {
		return nil, err
	}
	in.Lint = true
	out, _, err := rendered(ctx, pkg.Kind, in)
	warnings := pkg.Warnings
	for _, warning := range out.Warnings {
		if !slices.Contains(warnings, warning) {
			warnings = append(warnings, warning)
		}
	}
	return warnings, err
}

// inspect checks a package as an upload does. It accepts any size, because servers have
// different limits.
func inspect(ctx context.Context, archive []byte) (nf.Package, error) {
	return catalog.Lint(ctx, bytes.NewReader(archive), int64(len(archive)), render.DefaultLimits().For(largestPackage), renderers(nil))
}

// rendered renders a package of a kind, and orders its objects.
func rendered(ctx context.Context, kind string, in render.Input) (render.Output, render.Plan, error) {
	out, err := renderers(nil)[kind].Render(ctx, in)
	if err != nil {
		return out, render.Plan{}, fmt.Errorf("cannot render the package: %w", err)
	}
	plan, err := render.Order(out.Groups, in.Release.Namespace)
	if err != nil {
		return out, plan, fmt.Errorf("cannot order the package: %w", err)
	}
	plan.Hooks = render.OrderHooks(out.Hooks)
	return out, plan, nil
}

// inputOf returns the input of a package's renderer.
func inputOf(archive []byte, req nf.InstantiateRequest) (render.Input, error) {
	files, _, err := render.Open(bytes.NewReader(archive), int64(len(archive)), render.DefaultLimits().For(largestPackage))
	if err != nil {
		return render.Input{}, fmt.Errorf("cannot open the archive: %w", err)
	}
	in := render.Input{
		Files: files, Inputs: req.Inputs,
		Builtins: map[string]string{
			"namespace": req.Namespace, "vnf_id": exampleID, "vnf_name": req.Name, "cloud_region_id": exampleRegion, "cloud_owner": exampleOwner,
		},
		Release: render.Release{Name: req.Release, Namespace: req.Namespace, Revision: 1},
	}
	for _, fields := range []any{&in.Inputs.Parameters, &in.Inputs.OOF, &in.Inputs.Network} {
		if err := normalize(fields); err != nil {
			return in, fmt.Errorf("cannot read the inputs: %w", err)
		}
	}
	return in, nil
}

// normalize replaces the values that a pointer refers to by those of their JSON form, with
// whole numbers as integers, as the service reads a request.
func normalize(values any) error {
	text, err := json.Marshal(values)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(values); err != nil {
		return err
	}
	switch v := values.(type) {
	case *map[string]any:
		numbers(*v)
	case *[]map[string]any:
		for _, fields := range *v {
			numbers(fields)
		}
	}
	return nil
}

// numbers returns a value with its numbers as int64 or float64.
func numbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			v[name] = numbers(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = numbers(inner)
		}
	case json.Number:
		if whole, err := v.Int64(); err == nil {
			return whole
		}
		number, _ := v.Float64() // the decoder has checked it
		return number
	}
	return value
}
