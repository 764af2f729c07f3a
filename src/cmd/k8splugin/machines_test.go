//go:build hosts && machines

package main

import (
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
)

// TestMachinesShareANetworkWithContainers runs KubeVirt on a real node, without hardware
// virtualization. It creates a network with the API, and a VNF of a virtual machine and a
// container that it connects. Each asks the other on it. The machine is stopped and
// started with the API, and is gone with its instance.
func TestMachinesShareANetworkWithContainers(t *testing.T) {
	clustertest.Networks(t)
	installKubeVirt(t)
	s := startBareService(t)
	s.want(http.StatusCreated, s.do("POST", "/v1/cloud_regions", map[string]any{
		"cloud_region_id": "site", "kubeconfig": base64.StdEncoding.EncodeToString(clustertest.Kubeconfig(t)),
	}))
	s.upload("mixed", map[string]string{"metadata.yaml": "name: mixed\nresources:\n- virtualmachine: [machine.yaml]\n- deployment: [container.yaml]\n", "machine.yaml": machine, "container.yaml": standin("container")})
	s.want(http.StatusCreated, s.do("POST", "/v1/networks", map[string]any{
		"name": "lan", "cloud_region_id": "site", "driver": "multus", "holder": "operator",
		"spec": map[string]any{"type": "bridge", "bridge": "lan", "node_local": true, "ipam": map[string]any{"type": "host-local", "subnet": "10.4.0.0/24"}},
	}))
	ns := clustertest.Namespace(t)
	created := s.want(http.StatusAccepted, s.async("POST", "/v1/vnf_instances", map[string]any{
		"cloud_region_id": "site", "csar_id": "mixed", "namespace": ns, "on_failure": "keep",
		"networks": []any{map[string]any{"network": "lan", "workload": "*", "interface": "lan"}},
	}))
	id := created.text(t, "vnf_id")
	if end := s.operation(created.text(t, "operation_id")); end.text(t, "state") != "succeeded" {
		t.Fatalf("the instance did not become ready: %s\n%s", end.body, launcherLog(t, ns))
	}
	counted(s, 2, "lan")
	conversation(t, s, id, ns)

	for _, action := range []string{"stop", "start"} {
		done := s.want(http.StatusOK, s.do("POST", "/v1/vnf_instances/"+id+"/"+action, map[string]any{"workloads": []string{"VirtualMachine/guest"}}))
		if end := s.operation(done.text(t, "operation_id")); end.text(t, "state") != "succeeded" {
			t.Fatalf("%s failed: %s", action, end.body)
		}
	}
	conversation(t, s, id, ns)

	s.want(http.StatusNoContent, s.do("DELETE", "/v1/vnf_instances/"+id, nil))
	counted(s, 1, "lan")
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/networks/site.lan?holder=operator", nil))
}

// installKubeVirt installs KubeVirt's operator, and waits until it has installed the rest.
// The folder that deployments/sandbox/kubevirt/build has made is in an environment
// variable; the node has the images in it.
func installKubeVirt(t *testing.T) {
	t.Helper()
	folder := os.Getenv("K8SPLUGIN_KUBEVIRT")
	if folder == "" {
		t.Fatal("K8SPLUGIN_KUBEVIRT is not set: run `make test-machines`")
	}
	askKubectl(t, "label", "--overwrite", "node", "host1", "node-role.kubernetes.io/control-plane=") // KubeVirt's own pods want such a node
	askKubectl(t, "apply", "--server-side", "-f", filepath.Join(folder, "operator.yaml"))
	askKubectl(t, "wait", "--for=condition=Established", "crd/kubevirts.kubevirt.io", "--timeout=1m")
	create := programKubectl(t, "apply", "--server-side", "-f", "-")
	create.Stdin = strings.NewReader(kubeVirt)
	if out, err := create.CombinedOutput(); err != nil {
		t.Fatalf("cannot create the KubeVirt: %v\n%s", err, out)
	}
	out, err := programKubectl(t, "wait", "--for=condition=Available", "kubevirt/kubevirt", "-n", "kubevirt", "--timeout=10m").CombinedOutput()
	if err != nil {
		pods, _ := programKubectl(t, "get", "pods", "-n", "kubevirt", "-o", "wide").CombinedOutput()
		t.Fatalf("KubeVirt is not available: %v\n%s%s", err, out, pods)
	}
}

// conversation checks that the container and the machine of an instance reach each other
// on the network, at the addresses that the instance shows.
func conversation(t *testing.T, s *testService, id, ns string) {
	t.Helper()
	addresses := map[string]string{} // by kind of the workload
	pods, _ := s.want(http.StatusOK, s.do("GET", "/v1/vnf_instances/"+id+"?pods=true", nil)).field(t, "pods").([]any)
	for _, one := range pods {
		pod := one.(map[string]any)
		for _, one := range pod["interfaces"].([]any) {
			link := one.(map[string]any)
			if ips, _ := link["ips"].([]any); link["network"] == "lan" && len(ips) > 0 {
				addresses[pod["workload"].(map[string]any)["kind"].(string)] = ips[0].(string)
			}
		}
	}
	if addresses["VirtualMachine"] == "" || addresses["Deployment"] == "" {
		t.Fatalf("the instance shows the addresses %v on the network, want one of each workload: %v", addresses, pods)
	}
	url := "http://" + addresses["VirtualMachine"] + ":8080/cgi-bin/peer?" + addresses["Deployment"]
	var said string
	for range guestBoots {
		out, err := programKubectl(t, "exec", "-n", ns, "deployment/container", "--", "/standin", "get", url).CombinedOutput()
		if said = string(out); err == nil {
			break
		}
	}
	for _, want := range []string{"guest asked from [::ffff:" + addresses["Deployment"] + "]", "asked from " + addresses["VirtualMachine"]} {
		if !strings.Contains(said, want) {
			t.Errorf("the container asked the guest for %s, and the answer does not contain %q:\n%s\n%s", url, want, said, launcherLog(t, ns))
		}
	}
}

// launcherLog returns the last lines of the guest's console and of its launcher.
func launcherLog(t *testing.T, ns string) string {
	t.Helper()
	out, err := programKubectl(t, "logs", "-n", ns, "-l", "kubevirt.io=virt-launcher", "--all-containers", "--tail=40").CombinedOutput()
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// guestBoots is how often the guest is asked while it boots. Each attempt may take 5 s.
const guestBoots = 100

const kubeVirt = `apiVersion: kubevirt.io/v1
kind: KubeVirt
metadata: {name: kubevirt, namespace: kubevirt}
spec:
  imagePullPolicy: IfNotPresent
  infra: {replicas: 1}
  configuration:
    imagePullPolicy: IfNotPresent
    developerConfiguration: {useEmulation: true}
`

// machine is a virtual machine that boots the kernel of the image directly.
const machine = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: guest}
spec:
  runStrategy: Always
  template:
    spec:
      terminationGracePeriodSeconds: 0
      domain:
        memory: {guest: 192Mi}
        firmware:
          kernelBoot:
            kernelArgs: console=ttyS0 quiet
            container: {image: "localhost/guest:1", imagePullPolicy: Never, kernelPath: /boot/vmlinuz, initrdPath: /boot/initrd}
        devices: {}
`
