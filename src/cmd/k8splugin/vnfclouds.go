package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/catalog"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/openstack"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/sol003"
)

// vnfClouds makes stacks of OpenStack clouds of the packages of VNFs.
type vnfClouds struct {
	catalog *catalog.Catalog
	clouds  *openstack.Clouds
}

var _ sol003.Clouds = vnfClouds{}

// The folders of Heat templates in a CSAR: one for each flavor, with one template, and in it
// one for the templates that this one refers to.
const (
	hotFolder    = "BaseHOT"
	nestedFolder = "nested"
)

// Stack implements sol003.Clouds.
func (v vnfClouds) Stack(ctx context.Context, pkg, flavor string, s nf.Stack) (nf.Stack, error) {
	p, files, done, err := v.catalog.Files(ctx, pkg)
	if err != nil {
		return s, err
	}
	defer done()
	if err := templates(files, flavor, &s); err != nil {
		return s, nf.E(nf.Unsupported, "use", "package "+pkg, err)
	}
	s.Params.Images = map[string]string{}
	if p.VNFD != nil {
		for _, image := range p.VNFD.Images {
			s.Params.Images[image.ID] = image.Name
		}
	}
	_, err = openstack.Parameters(s)
	return s, err
}

// templates gives a stack the templates of a flavor.
func templates(files render.Files, flavor string, s *nf.Stack) error {
	folder := hotFolder + "/" + flavor
	s.Files = map[string][]byte{}
	var found string
	for name, content := range files {
		if !slices.Contains([]string{".yaml", ".yml"}, path.Ext(name)) || content == nil {
			continue
		}
		switch dir, file := path.Split(name); strings.TrimSuffix(dir, "/") {
		case folder:
			if found != "" {
				return fmt.Errorf("%s has two templates, %s and %s", folder, min(found, file), max(found, file))
			}
			found, s.Template = file, slices.Clone(content)
		case folder + "/" + nestedFolder:
			s.Files[file] = slices.Clone(content)
		}
	}
	if found == "" {
		return errors.New("it has no Heat template " + folder + "/*.yaml, which a VIM of OpenStack needs")
	}
	return nil
}

// cloud returns the OpenStack cloud that a region is.
func (v vnfClouds) cloud(ctx context.Context, region string) (nf.OpenStack, error) {
	r, err := v.catalog.Region(ctx, region)
	if err != nil {
		return nf.OpenStack{}, err
	}
	if r.VIM == nil || r.VIM.OpenStack == nil {
		return nf.OpenStack{}, nf.E(nf.Unsupported, "use", "cloud region "+region, errors.New("it is not an OpenStack cloud"))
	}
	return *r.VIM.OpenStack, nil
}

// Apply implements sol003.Clouds.
func (v vnfClouds) Apply(ctx context.Context, region string, s nf.Stack) error {
	o, err := v.cloud(ctx, region)
	if err != nil {
		return err
	}
	return v.clouds.ApplyStack(ctx, o, s)
}

// Delete implements sol003.Clouds.
func (v vnfClouds) Delete(ctx context.Context, region, name string) error {
	o, err := v.cloud(ctx, region)
	if err != nil {
		return err
	}
	return v.clouds.DeleteStack(ctx, o, name)
}

// Await implements sol003.Clouds.
func (v vnfClouds) Await(ctx context.Context, region, name string, stop bool) (attempt string, err error) {
	o, err := v.cloud(ctx, region)
	if err != nil {
		return "", err
	}
	return v.clouds.AwaitStack(ctx, o, name, stop)
}

// Components implements sol003.Clouds.
func (v vnfClouds) Components(ctx context.Context, region, name string) ([]nf.VNFC, error) {
	o, err := v.cloud(ctx, region)
	if err != nil {
		return nil, err
	}
	return v.clouds.StackServers(ctx, o, name)
}
