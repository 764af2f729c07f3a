package csar_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/csar"
	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestImages(t *testing.T) {
	t.Parallel()
	const flavor = "Definitions/df_simple.yaml"
	cases := map[string]struct {
		reason string
		nodes  string
		want   []nf.SoftwareImage
	}{
		"None": {"a VDU without an image", "VDU1: {type: tosca.nodes.nfv.Vdu.Compute, properties: {name: vdu1}}", nil},
		"Disk": {"an image in the CSAR, by a path that is relative to the descriptor", `VDU1:
      type: tosca.nodes.nfv.Vdu.Compute
      properties:
        sw_image_data:
          name: Disk
          version: '0.5'
          checksum: {algorithm: sha-256, hash: AB}
          container_format: bare
          disk_format: qcow2
          min_disk: 2 GB
          min_ram: 256 MiB
          size: 1.5 kB
      artifacts:
        sw_image: {type: tosca.artifacts.nfv.SwImage, file: ../Files/images/disk.img}`, []nf.SoftwareImage{{
			ID: "VDU1", Name: "Disk", Version: "0.5", Algorithm: "SHA-256", Hash: "ab", ContainerFormat: "BARE", DiskFormat: "QCOW2",
			MinDisk: 2e9, MinRAM: 256 << 20, Size: 1500, Path: "Files/images/disk.img",
		}}},
		"Container": {"an image of a registry", `web:
      type: tosca.nodes.nfv.Vdu.OsContainer
      properties:
        sw_image_data: {name: web, version: 1.25, provider: Example, container_format: docker, size: many}
      artifacts: {image: registry.example.com/web:1.25}`, []nf.SoftwareImage{{
			ID: "web", Name: "web", Version: "1.25", Provider: "Example", ContainerFormat: "DOCKER", Path: "registry.example.com/web:1.25",
		}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := csartest.Files(map[string]string{"Files/images/disk.img": "disk"})
			files[flavor] += "  node_templates:\n    " + tc.nodes + "\n"
			delete(files, "sample.mf")
			files[csar.MetaFile] = strings.Replace(files[csar.MetaFile], "ETSI-Entry-Manifest: sample.mf\n", "", 1)
			c, err := csar.Read(held(files))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, c.VNFD.Images); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
