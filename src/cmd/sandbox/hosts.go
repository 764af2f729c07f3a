package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// Hosts are real nodes: each runs a kubelet and containerd in namespaces of its
// own. They share a network with the control plane and the command, which no
// other network can reach.
const (
	planeAddress = "172.29.0.1" // of the control plane; host N has 172.29.0.(10+N)
	maxHosts     = 9

	envInside = "K8SPLUGIN_SANDBOX_INSIDE" // set in the network of the hosts
)

// hostParts are the components that a host consists of, as `artifacts` names
// them.
const hostParts = "kubelet,containerd,runc,cni-plugins,multus,ovs-cni"

// hostPackages returns the Debian packages that hosts use without installing
// them.
func hostPackages() []string { return []string{"openvswitch-switch", "ovn-central", "ovn-host"} }

// hostName returns the name of a host, which is also that of its node.
func hostName(i int) string { return fmt.Sprintf("host%d", i) }

// parts returns the folder of the programs and images of hosts. A digest of
// everything that they are built from names it.
func (in installation) parts() (string, error) {
	h := sha256.New()
	kud := filepath.Join(in.root(), "kud")
	pins, err := filepath.Glob(filepath.Join(kud, "lab", "modules", "*", "go.*"))
	if err != nil || len(pins) == 0 {
		return "", fmt.Errorf("cannot find the modules of the hosts: %w", errors.Join(err, fs.ErrNotExist))
	}
	slices.Sort(pins)
	if err := digest(h, append(pins, filepath.Join(kud, "versions.yml"))...); err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(in.dir), "hosts-"+hex.EncodeToString(h.Sum(nil))[:12]), nil
}

// ensureHosts builds the missing programs and images of hosts, and fetches their
// Debian packages.
func (in installation) ensureHosts(ctx context.Context, w io.Writer) error {
	parts, err := in.parts()
	if err != nil {
		return err
	}
	build := []string{"go", "run", "./src/cmd/artifacts", "--only", hostParts, parts}
	fetch := append([]string{filepath.Join(in.sources, "packages"), filepath.Join(parts, "debian")}, hostPackages()...)
	for _, step := range [][]string{build, fetch} {
		cmd := exec.CommandContext(ctx, step[0], step[1:]...)
		cmd.Dir = in.root()
		cmd.Stderr = w
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("cannot prepare the hosts: %s: %w", step[0], err)
		}
	}
	return nil
}

// inside runs this program again, in the network of the hosts.
func inside(args []string, signals <-chan os.Signal) (int, error) {
	if os.Geteuid() != 0 {
		return 0, errors.New("hosts have networks and mounts of their own: only root may create them")
	}
	self, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("cannot find the program of the sandbox: %w", err)
	}
	return command(append([]string{self, "exec"}, args...), []string{envInside + "=1"}, signals, ownNetwork)
}

// hostNetwork prepares the network of the hosts, in which this process is
// alone: a bridge with the address of the control plane, and a second one for
// virtual networks.
func hostNetwork(ctx context.Context) error {
	const script = `set -e
mount --make-rprivate /
ip link set lo up
ip link add sandbox type bridge
ip addr add ` + planeAddress + `/24 dev sandbox
ip addr add ` + serviceAddress + `/32 dev sandbox
ip link set sandbox up
ip link add provider type bridge
ip link set provider up
echo 1 >/proc/sys/net/ipv4/ip_forward
mkdir -p /run/netns
mount -t tmpfs tmpfs /run/netns
touch /run/netns/sandbox
mount --bind /proc/self/ns/net /run/netns/sandbox`
	output, err := exec.CommandContext(ctx, "sh", "-c", script).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot make the network of the hosts: %w\n%s", err, output)
	}
	return nil
}

// launchHosts starts the hosts.
func (p *plane) launchHosts() error {
	if p.options.hosts == 0 {
		return nil
	}
	parts, err := p.built.parts()
	if err != nil {
		return err
	}
	for i := 1; i <= p.options.hosts; i++ {
		script := filepath.Join(p.built.sources, "host")
		attr := syscall.SysProcAttr{Setsid: true}
		dieWithParent(&attr, syscall.SIGKILL)
		ownMachine(&attr)
		started, err := spawnAs(&attr, hostName(i), p.logDir(), script, hostName(i), strconv.Itoa(i), p.options.dir, parts, p.options.images)
		if err != nil {
			return err
		}
		p.processes = append(p.processes, started)
	}
	return nil
}

// removeGroups removes the control groups of ended hosts.
func (p *plane) removeGroups() error {
	var dirs []string
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		groups, err := filepath.Glob(pattern + filepath.Base(p.options.dir) + "-host*")
		if err != nil {
			return fmt.Errorf("cannot find the control groups of the hosts: %w", err)
		}
		for _, group := range groups {
			err := filepath.WalkDir(group, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					dirs = append(dirs, path)
				}
				return err
			})
			if err != nil {
				return fmt.Errorf("cannot list the control groups of the hosts: %w", err)
			}
		}
	}
	slices.Sort(dirs)
	var failures []error
	for _, dir := range slices.Backward(dirs) { // those in a group before the group
		failures = append(failures, os.Remove(dir))
	}
	return errors.Join(failures...)
}
