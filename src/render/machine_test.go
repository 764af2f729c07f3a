package render_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// machineOf returns a VirtualMachine in YAML with the specification of its
// instance.
func machineOf(spec string) string {
	return fmt.Sprintf(`{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: vm}, spec: {template: {spec: %s}}}`, spec)
}

// TestAttachMachine compares the instances of virtual machines.
func TestAttachMachine(t *testing.T) {
	t.Parallel()
	a, sriov := nf.Attachment{Network: "a"}, nf.Attachment{Network: "sriov"}
	const attached = `{domain: {devices: {interfaces: [{name: default, masquerade: {}}, {name: net1, bridge: {}}]}}, networks: [{name: default, pod: {}}, {name: net1, multus: {networkName: networks/a}}]}`
	cases := map[string]struct {
		reason      string
		in          string
		attachments []nf.Attachment
		want        string
	}{
		"Implicit": {"the network of the pod stays when others are listed", machineOf(`{domain: {}}`), []nf.Attachment{a}, machineOf(attached)},
		"NoPod": {
			"unless it is not wanted", machineOf(`{domain: {devices: {autoattachPodInterface: false}}}`), []nf.Attachment{a},
			machineOf(`{domain: {devices: {autoattachPodInterface: false, interfaces: [{name: net1, bridge: {}}]}}, networks: [{name: net1, multus: {networkName: networks/a}}]}`),
		},
		"Listed": {
			"networks of the package stay in front, and their names are passed over",
			machineOf(`{domain: {devices: {disks: [{name: d}], interfaces: [{name: net1, masquerade: {}, ports: [{port: 80}]}]}}, networks: [{name: net1, pod: {vmNetworkCIDR: 10.0.0.0/24}}]}`), []nf.Attachment{a},
			machineOf(`{domain: {devices: {disks: [{name: d}], interfaces: [{name: net1, masquerade: {}, ports: [{port: 80}]}, {name: net2, bridge: {}}]}}, networks: [{name: net1, pod: {vmNetworkCIDR: 10.0.0.0/24}}, {name: net2, multus: {networkName: networks/a}}]}`),
		},
		"Settings": {
			"a MAC address is the machine's, and a device is passed through; KubeVirt requests it",
			machineOf(`{domain: {}}`), []nf.Attachment{{Network: "a", MAC: "02:00:00:00:00:01", Interface: "oam"}, sriov, {Network: "noted"}},
			`{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: vm}, spec: {template: {metadata: {annotations: {ovn.kubernetes.io/ip: "1"}}, spec: {domain: {devices: {interfaces: [
				{name: default, masquerade: {}}, {name: oam, bridge: {}, macAddress: "02:00:00:00:00:01"}, {name: net2, sriov: {}}, {name: net3, bridge: {}}]}}, networks: [
				{name: default, pod: {}}, {name: oam, multus: {networkName: networks/a}}, {name: net2, multus: {networkName: networks/sriov}}, {name: net3, multus: {networkName: networks/noted}}]}}}}`,
		},
		"Annotated": {
			"an address in an annotation of its own is that of the machine's pod; KubeVirt copies it",
			machineOf(`{domain: {}}`), []nf.Attachment{{Network: "kube-ovn", IPs: []string{"10.0.0.9"}, Bandwidth: &nf.Bandwidth{EgressRate: 1}}},
			`{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: vm}, spec: {template: {metadata: {annotations: {k.ovn.kubernetes.io/ip_address: 10.0.0.9}}, spec: {domain: {devices: {interfaces: [
				{name: default, masquerade: {}}, {name: net1, bridge: {}}]}}, networks: [{name: default, pod: {}}, {name: net1, multus: {networkName: networks/kube-ovn}}]}}}}`,
		},
		"Same": {
			"a network that is there is left, whatever its name and binding",
			machineOf(`{domain: {devices: {interfaces: [{name: x, model: virtio, bridge: {}}]}}, networks: [{name: x, multus: {networkName: networks/a}}]}`), []nf.Attachment{a},
			machineOf(`{domain: {devices: {interfaces: [{name: x, model: virtio, bridge: {}}]}}, networks: [{name: x, multus: {networkName: networks/a}}]}`),
		},
		"SameMAC": {
			"the case of a MAC address does not matter",
			machineOf(`{domain: {devices: {interfaces: [{name: x, bridge: {}, macAddress: "02:00:00:00:00:0A"}]}}, networks: [{name: x, multus: {networkName: networks/a}}]}`), []nf.Attachment{{Network: "a", Interface: "x", MAC: "02:00:00:00:00:0a"}},
			machineOf(`{domain: {devices: {interfaces: [{name: x, bridge: {}, macAddress: "02:00:00:00:00:0A"}]}}, networks: [{name: x, multus: {networkName: networks/a}}]}`),
		},
		"Namespace": {
			"a name without a namespace is in the machine's",
			machineOf(`{domain: {devices: {interfaces: [{name: x, bridge: {}}]}}, networks: [{name: x, multus: {networkName: a}}]}`), []nf.Attachment{a},
			machineOf(`{domain: {devices: {interfaces: [{name: x, bridge: {}}, {name: net2, bridge: {}}]}}, networks: [{name: x, multus: {networkName: a}}, {name: net2, multus: {networkName: networks/a}}]}`),
		},
		"Instance": {
			"an instance has its networks itself",
			`{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstance, metadata: {name: vm}, spec: {domain: {}}}`, []nf.Attachment{a},
			`{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstance, metadata: {name: vm}, spec: ` + attached + `}`,
		},
		"ReplicaSet": {
			"so has each one of a replica set",
			`{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstanceReplicaSet, metadata: {name: vm}, spec: {replicas: 2, template: {spec: {domain: {}}}}}`, []nf.Attachment{a},
			`{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstanceReplicaSet, metadata: {name: vm}, spec: {replicas: 2, template: {spec: ` + attached + `}}}`,
		},
		"Pool": {
			"and each one of a pool",
			`{apiVersion: pool.kubevirt.io/v1beta1, kind: VirtualMachinePool, metadata: {name: vm}, spec: {virtualMachineTemplate: {spec: {template: {spec: {domain: {}}}}}}}`, []nf.Attachment{a},
			`{apiVersion: pool.kubevirt.io/v1beta1, kind: VirtualMachinePool, metadata: {name: vm}, spec: {virtualMachineTemplate: {spec: {template: {spec: ` + attached + `}}}}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := planOf(t, tc.in)
			once, err := p.Attach(wantedOf(tc.attachments...), connect)
			if err != nil {
				t.Fatal(err)
			}
			twice, err := once.Attach(wantedOf(tc.attachments...), connect)
			if err != nil {
				t.Fatal(err)
			}
			want := planOf(t, tc.want).Stages[0].Objects[0].Object.Object
			for _, got := range []render.Plan{once, twice} {
				if diff := cmp.Diff(want, got.Stages[0].Objects[0].Object.Object); diff != "" {
					t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
				}
			}
			if diff := cmp.Diff(planOf(t, tc.in).Stages[0].Objects[0].Object.Object, p.Stages[0].Objects[0].Object.Object); diff != "" {
				t.Errorf("the plan itself has changed (-want +got)\n%s", diff)
			}
		})
	}
}

func TestAttachMachineWrong(t *testing.T) {
	t.Parallel()
	const listed = `{domain: {devices: {interfaces: [{name: default, masquerade: {}}, {name: x, bridge: {}}]}}, networks: [{name: default, pod: {}}, {name: x, multus: {networkName: networks/a}}]}`
	all := nf.Attachment{Network: "a", IPs: []string{"10.0.0.9/24"}, DefaultRoute: []string{"10.0.0.1"}, Bandwidth: &nf.Bandwidth{EgressRate: 1, EgressBurst: 1}}
	const dropped = `KubeVirt does not pass it to the network of VirtualMachine/vm; `
	cases := map[string]struct {
		reason string
		object string
		a      nf.Attachment
		want   string
	}{
		"Dropped": {"KubeVirt passes MAC addresses only", machineOf(`{domain: {}}`), all, `networks[0].ips: ` + dropped + `set the address in networkData of the machine's cloud-init volume; networks[0].default_route: ` +
			dropped + `set the route in networkData of the machine's cloud-init volume; networks[0].bandwidth: ` + dropped + `set limits in the plugin bandwidth of the network's chain`},
		"Clash":      {"a name is of one network", machineOf(listed), nf.Attachment{Network: "b", Interface: "x"}, `networks[0].interface: x of VirtualMachine/vm is attached to the network a already`},
		"PodNetwork": {"also if it is that of the pod", machineOf(listed), nf.Attachment{Network: "b", Interface: "default"}, `networks[0].interface: default of VirtualMachine/vm is another network's name`},
		"MAC":        {"the request is not ignored", machineOf(listed), nf.Attachment{Network: "a", Interface: "x", MAC: "02:00:00:00:00:01"}, `networks[0].interface: x of VirtualMachine/vm is attached to this network already, with other settings`},
		"Annotation": {"KubeVirt replaces the annotation", `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: vm}, spec: {template: {metadata: {annotations: {` + networksKey + `: x}}, spec: {}}}}`, nf.Attachment{Network: "a"},
			`m.yaml:7: VirtualMachine vm: spec.template.metadata.annotations[` + networksKey + `]: is replaced by KubeVirt; use spec.networks in place of it`},
		"Template":   {"without a template there is no instance", `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: vm}, spec: {}}`, nf.Attachment{Network: "a"}, `m.yaml:7: VirtualMachine vm: spec.template.spec.domain.devices: must be an object`},
		"Networks":   {"networks are a list", machineOf(`{networks: {}}`), nf.Attachment{Network: "a"}, `m.yaml:7: VirtualMachine vm: spec.template.spec.networks: must be a list`},
		"Interfaces": {"so are interfaces", machineOf(`{domain: {devices: {interfaces: {}}}}`), nf.Attachment{Network: "a"}, `m.yaml:7: VirtualMachine vm: spec.template.spec.domain.devices.interfaces: must be a list`},
		"Pool":       {"the driver knows the number of machines", `{apiVersion: pool.kubevirt.io/v1beta1, kind: VirtualMachinePool, metadata: {name: vm}, spec: {replicas: 3}}`, nf.Attachment{Network: "a", IPs: []string{"10.0.0.9/24"}}, `networks[0].ips: has 3 pods`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := planOf(t, tc.object).Attach(wantedOf(tc.a), connect)
			if diff := cmp.Diff(tc.want, textOf(err)); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}
