package main

import (
	"bytes"
	"fmt"

	"github.com/multicloud-k8s/k8splugin/src/cmd/k8splugin/cli"
	"github.com/multicloud-k8s/k8splugin/src/csar"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
)

// translate translates the VNF descriptor of a CSAR as an instance of it would get it.
func translate(archive []byte, flavor, level string) (cli.Translation, error) {
	files, _, err := render.Open(bytes.NewReader(archive), int64(len(archive)), render.DefaultLimits().For(largestPackage))
	if err != nil {
		return cli.Translation{}, fmt.Errorf("cannot open the archive: %w", err)
	}
	if !csar.Is(files) {
		return cli.Translation{}, nf.E(nf.Invalid, "translate", "the package", nf.Violations{{File: csar.MetaFile, Message: "is missing, so that the package is not a CSAR"}})
	}
	c, err := csar.Read(files)
	if err != nil {
		return cli.Translation{}, err
	}
	found, err := tosca.Translate(files, c.VNFD.Files[0], flavor, level)
	if err != nil {
		return cli.Translation{}, err
	}
	out := cli.Translation{Manifests: found.Manifests, Warnings: found.Warnings}
	for _, a := range found.Networks {
		out.Networks = append(out.Networks, nf.Attachment{Network: a.Network, Workload: a.Workload, Interface: a.Interface})
	}
	return out, nil
}
