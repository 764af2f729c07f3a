package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// build is a set of programs from one Go module.
type build struct {
	component string // folder in the artifacts
	module    string // folder in the checkout whose go.mod pins the versions
	pin       string // module whose version is the component's
	programs  []program
	cgo       bool
	tags      string
	optional  bool
	part      string // "-" and the chosen programs, unless all are
	version   string // as pinned
}

// only returns the build of the chosen programs: all if its component is chosen,
// else those that are chosen by their names.
func (b build) only(names string) build {
	if chosen(b.component, names) {
		return b
	}
	b.programs = slices.DeleteFunc(slices.Clone(b.programs), func(p program) bool { return !chosen(p.file(), names) })
	for _, p := range b.programs {
		b.part += "-" + p.file()
	}
	return b
}

// program is a program of a build. The default name is the last element of pkg.
type program struct{ pkg, name string }

func (p program) file() string {
	if p.name != "" {
		return p.name
	}
	return path.Base(p.pkg)
}

// builds returns all programs from Go modules in build order. The other
// Kubernetes programs reuse the compiled packages of kube-apiserver.
func builds() []build {
	const (
		lab     = "kud/lab/modules/"
		k8s     = "k8s.io/kubernetes"
		plugins = "github.com/containernetworking/plugins"
		ctrd    = "github.com/containerd/containerd/v2"
	)
	return []build{
		{component: "etcd", module: lab + "etcd", pin: "go.etcd.io/etcd/server/v3", programs: []program{
			{"go.etcd.io/etcd/server/v3", "etcd"}, {"go.etcd.io/etcd/etcdctl/v3", "etcdctl"},
		}},
		{component: "kubernetes", module: "deployments/sandbox/kubernetes", pin: k8s, programs: below(k8s+"/cmd/",
			"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")},
		{component: "kubernetes", module: lab + "kubernetes", pin: k8s, programs: below(k8s+"/cmd/", "kubelet", "kubeadm", "kube-proxy")},
		{component: "kubernetes", module: lab + "kubernetes-previous", pin: k8s, optional: true, programs: below(k8s+"/cmd/",
			"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet", "kubeadm", "kube-proxy")},
		{component: "containerd", module: lab + "containerd", pin: ctrd, programs: below(ctrd+"/cmd/", "containerd", "containerd-shim-runc-v2", "ctr")},
		{component: "runc", module: lab + "runc", pin: "github.com/opencontainers/runc", programs: []program{{pkg: "github.com/opencontainers/runc"}},
			cgo: true, tags: "seccomp"},
		{component: "crictl", module: lab + "crictl", pin: "sigs.k8s.io/cri-tools", programs: []program{{pkg: "sigs.k8s.io/cri-tools/cmd/crictl"}}},
		{component: "cni-plugins", module: lab + "cni", pin: plugins, programs: slices.Concat(
			below(plugins+"/plugins/ipam/", "dhcp", "host-local", "static"),
			below(plugins+"/plugins/main/", "bridge", "host-device", "ipvlan", "loopback", "macvlan", "ptp", "vlan"),
			below(plugins+"/plugins/meta/", "bandwidth", "firewall", "portmap", "sbr", "tuning", "vrf"))},
		{component: "flannel", module: lab + "flannel", pin: "github.com/flannel-io/flannel", programs: []program{{"github.com/flannel-io/flannel", "flanneld"}},
			cgo: true},
		// No fetchable module contains Flannel's plugin; use the last standard
		// plugins that contain it.
		{component: "flannel", module: lab + "cni-flannel", pin: plugins, programs: below(plugins+"/plugins/meta/", "flannel")},
		{component: "multus", module: lab + "multus", pin: "gopkg.in/k8snetworkplumbingwg/multus-cni.v4", programs: below("gopkg.in/k8snetworkplumbingwg/multus-cni.v4/cmd/", "multus")},
		{component: "whereabouts", module: lab + "whereabouts", pin: "github.com/k8snetworkplumbingwg/whereabouts", programs: []program{
			{"github.com/k8snetworkplumbingwg/whereabouts/cmd", "whereabouts"},
		}},
		{component: "coredns", module: lab + "coredns", pin: "github.com/coredns/coredns", programs: []program{{pkg: "github.com/coredns/coredns"}}},
		{component: "nfd", module: lab + "nfd", pin: "sigs.k8s.io/node-feature-discovery", programs: below("sigs.k8s.io/node-feature-discovery/cmd/", "nfd-gc", "nfd-master", "nfd-worker")},
	}
}

func below(pkg string, names ...string) []program {
	programs := make([]program, len(names))
	for i, name := range names {
		programs[i] = program{pkg: pkg + name}
	}
	return programs
}

// build builds the programs of b that are missing or were built from other
// pins.
func (f folder) build(ctx context.Context, b build) error {
	var err error
	if b.version, err = f.version(b); err != nil {
		return err
	}
	version, err := f.versionOf(b)
	if err != nil {
		return err
	}
	dir := filepath.Join(f.dir, b.component, version)
	key, err := f.key(b)
	if err != nil {
		return err
	}
	stamp := filepath.Join(f.dir, ".built", strings.ReplaceAll(b.module, "/", "-")+b.part)
	if f.built(b, dir, stamp, key) {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder of %s: %w", b.component, err)
	}
	for _, p := range b.programs {
		begin := time.Now()
		fmt.Fprintf(f.progress, "%-12s %-10s %-24s", b.component, version, p.file())
		if err := f.program(ctx, b, p, filepath.Join(dir, p.file())); err != nil {
			fmt.Fprintln(f.progress, "failed")
			return err
		}
		fmt.Fprintf(f.progress, "%7.1f s\n", time.Since(begin).Seconds())
	}
	if err := os.MkdirAll(filepath.Dir(stamp), 0o755); err != nil {
		return fmt.Errorf("cannot note what was built: %w", err)
	}
	return os.WriteFile(stamp, []byte(key), 0o644)
}

func (f folder) built(b build, dir, stamp, key string) bool {
	noted, err := os.ReadFile(stamp)
	return err == nil && string(noted) == key && !slices.ContainsFunc(b.programs, func(p program) bool {
		_, err := os.Stat(filepath.Join(dir, p.file()))
		return err != nil
	})
}

func (f folder) program(ctx context.Context, b build, p program, out string) error {
	partial := out + ".partial"
	err := f.goBuild(ctx, b, p, partial)
	if err == nil {
		err = os.Rename(partial, out)
	}
	if err != nil {
		return fmt.Errorf("cannot build %s: %w", p.file(), errors.Join(err, os.RemoveAll(partial)))
	}
	return nil
}

func (f folder) goBuild(ctx context.Context, b build, p program, out string) error {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", append(b.flags(), "-o", out, p.pkg)...)
	cmd.Dir = filepath.Join(f.root, filepath.FromSlash(b.module))
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if b.cgo {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
	}
	cmd.Stderr = &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w\n%s", err, stderr.Bytes())
	}
	return nil
}

// flags returns the build flags. They are the sandbox's, so that both share
// Go's cache.
func (b build) flags() []string {
	ldflags := "-s -w"
	if b.pin == "k8s.io/kubernetes" {
		const x = " -X k8s.io/component-base/version."
		major, rest, _ := strings.Cut(strings.TrimPrefix(b.version, "v"), ".")
		minor, _, _ := strings.Cut(rest, ".")
		ldflags += x + "gitVersion=" + b.version + x + "gitMajor=" + major + x + "gitMinor=" + minor
	}
	tags := b.tags
	if b.cgo { // static, because the hosts have another C library
		ldflags += " -extldflags -static"
		tags = strings.TrimPrefix(tags+",netgo,osusergo", ",")
	}
	args := []string{"build", "-trimpath", "-ldflags", ldflags}
	if tags != "" {
		args = append(args, "-tags", tags)
	}
	return args
}

// version returns the version that the module's go.mod pins.
func (f folder) version(b build) (string, error) {
	name := filepath.Join(f.root, filepath.FromSlash(b.module), "go.mod")
	content, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("cannot read the pins of %s: %w", b.component, err)
	}
	return pinned(content, b.pin)
}

// pinned returns the version of a module in a go.mod.
func pinned(gomod []byte, module string) (string, error) {
	m := regexp.MustCompile(`(?m)^\s*(?:require\s+)?` + regexp.QuoteMeta(module) + `\s+(v\S+)`).FindSubmatch(gomod)
	if m == nil {
		return "", fmt.Errorf("go.mod requires no %s", module)
	}
	return string(m[1]), nil
}

// versionOf returns the version of a component. If two modules fill one folder,
// the first decides.
func (f folder) versionOf(b build) (string, error) {
	all := builds()
	first := slices.IndexFunc(all, func(other build) bool { return other.component == b.component })
	if b.optional || first < 0 {
		return f.version(b)
	}
	return f.version(all[first])
}

// key returns a digest of everything that the programs are built from.
func (f folder) key(b build) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOARCH, b.flags(), b.programs)
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(f.root, filepath.FromSlash(b.module), name))
		if err != nil {
			return "", fmt.Errorf("cannot read the pins of %s: %w", b.component, err)
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(content), content)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
