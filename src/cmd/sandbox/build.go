package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// program is one executable of the sandbox.
type program struct {
	name   string
	module string // folder under deployments/sandbox whose go.mod pins its version
	pkg    string // import path of its main package
}

// programs returns the programs of a sandbox in build order. The three after
// kube-apiserver reuse its compiled packages.
func programs() []program {
	return []program{
		{"etcd", "etcd", "go.etcd.io/etcd/server/v3"},
		{"kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"},
		{"kube-controller-manager", "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"},
		{"kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"},
		{"kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl"},
		{"kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"},
	}
}

// installation is a built sandbox. Its folder in the user's cache is named by a
// digest of all sources.
type installation struct {
	sources string // deployments/sandbox of the checkout
	dir     string
	ldflags map[string]string // by module
}

// locate returns the installation for the checkout of the working directory. It
// may not be built yet.
func locate() (installation, error) {
	root, err := checkout()
	if err != nil {
		return installation{}, err
	}
	home, err := cacheDir()
	if err != nil {
		return installation{}, err
	}
	in := installation{sources: filepath.Join(root, "deployments", "sandbox")}
	stamp, err := kubernetesStamp(filepath.Join(in.sources, "kubernetes", "go.mod"))
	if err != nil {
		return installation{}, err
	}
	in.ldflags = map[string]string{"etcd": "-s -w", "kubernetes": "-s -w " + stamp, "kwok": "-s -w"}
	key, err := in.key()
	if err != nil {
		return installation{}, err
	}
	in.dir = filepath.Join(home, key)
	return in, nil
}

// root returns the checkout.
func (in installation) root() string { return filepath.Join(in.sources, "..", "..") }

// bin returns the folder of the programs.
func (in installation) bin() string { return filepath.Join(in.dir, "bin") }

// program returns the path of a program.
func (in installation) program(name string) string { return filepath.Join(in.bin(), name) }

// kwokStages returns the path of the file with KWOK's standard stages.
func (in installation) kwokStages() string { return filepath.Join(in.dir, "kwok-stages.yaml") }

// key returns a digest of everything that the programs depend on.
func (in installation) key() (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, p := range programs() {
		fmt.Fprintln(h, in.buildArgs(p, p.name))
		module := filepath.Join(in.sources, p.module)
		if err := digest(h, filepath.Join(module, "go.mod"), filepath.Join(module, "go.sum")); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:12], nil
}

// digest adds files to a digest of what programs are built from.
func digest(h io.Writer, names ...string) error {
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("cannot read what the sandbox is built from: %w", err)
		}
		fmt.Fprintf(h, "%s %d\n%s", filepath.Base(name), len(content), content)
	}
	return nil
}

func (in installation) buildArgs(p program, out string) []string {
	return []string{"build", "-trimpath", "-ldflags", in.ldflags[p.module], "-o", out, p.pkg}
}

// missing returns the programs that are not built.
func (in installation) missing() []program {
	return slices.DeleteFunc(programs(), func(p program) bool {
		_, err := os.Stat(in.program(p.name))
		return err == nil
	})
}

// ensureBuilt returns the installation, and builds missing programs first.
func ensureBuilt(ctx context.Context, w io.Writer) (installation, error) {
	in, err := locate()
	if err != nil {
		return in, err
	}
	_, err = os.Stat(in.kwokStages()) // written last
	if err == nil && len(in.missing()) == 0 {
		return in, nil
	}
	if err := os.MkdirAll(in.bin(), 0o755); err != nil {
		return in, fmt.Errorf("cannot make the folder of the sandbox's programs: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(in.dir, "lock"), func() {
		fmt.Fprintln(w, "Waiting for another process that builds the sandbox.")
	})
	if err != nil {
		return in, err
	}
	defer unlock()
	return in, in.build(ctx, w)
}

// build builds the missing programs. The caller must hold the lock.
func (in installation) build(ctx context.Context, w io.Writer) error {
	begin := time.Now()
	missing := in.missing()
	if len(missing) > 0 {
		names := make([]string, len(missing))
		for i, p := range missing {
			names[i] = p.name
		}
		fmt.Fprintf(w, "Building the sandbox, once: %s.\n", strings.Join(names, ", "))
		fmt.Fprint(w, "With empty Go caches, all six take about 1,250 CPU-seconds (about 10 minutes on two\n"+
			"cores), 2.7 GiB of memory at the peak and 6 GiB of disk, most of it in those caches.\n")
	}
	for i, p := range missing {
		fmt.Fprintf(w, "[%d/%d] %-24s", i+1, len(missing), p.name)
		start := time.Now()
		if err := in.buildProgram(ctx, p); err != nil {
			fmt.Fprintln(w, "failed")
			return err
		}
		fmt.Fprintf(w, "%7.1f s\n", time.Since(start).Seconds())
	}
	if err := in.copyKwokStages(ctx); err != nil {
		return err
	}
	fmt.Fprintf(w, "The sandbox is built (%.0f s).\n", time.Since(begin).Seconds())
	return nil
}

func (in installation) buildProgram(ctx context.Context, p program) error {
	out := in.program(p.name)
	partial := out + ".partial"
	_, err := in.goCommand(ctx, p.module, in.buildArgs(p, partial)...)
	if err != nil {
		return fmt.Errorf("cannot build %s: %w", p.name, errors.Join(err, os.RemoveAll(partial)))
	}
	if err := os.Rename(partial, out); err != nil {
		return fmt.Errorf("cannot put %s in place: %w", p.name, err)
	}
	return nil
}

// copyKwokStages copies KWOK's description of the behavior of nodes and pods
// from its Go module.
func (in installation) copyKwokStages(ctx context.Context) error {
	answer, err := in.goCommand(ctx, "kwok", "mod", "download", "-json", "sigs.k8s.io/kwok")
	if err != nil {
		return fmt.Errorf("cannot find KWOK's module: %w", err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(answer, &module); err != nil {
		return fmt.Errorf("cannot read where KWOK's module is: %w", err)
	}
	var stages [][]byte
	for _, pattern := range []string{
		"kustomize/stage/node/fast/node-*.yaml",
		"kustomize/stage/node/heartbeat-with-lease/node-*.yaml",
		"kustomize/stage/pod/fast/pod-*.yaml",
	} {
		more, err := readAll(filepath.Join(module.Dir, filepath.FromSlash(pattern)))
		if err != nil {
			return err
		}
		stages = append(stages, more...)
	}
	return writeFile(in.kwokStages(), joinDocuments(stages), 0o644)
}

// goCommand runs the go command in one of the sandbox's modules and returns its
// output. It interrupts the command if the context ends.
func (in installation) goCommand(ctx context.Context, module string, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(in.sources, module)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOGC=400") // the compiler takes a fifth less processor time
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, stderr.Bytes())
	}
	return stdout.Bytes(), nil
}

// kubernetesStamp returns the linker flags that set the Kubernetes version,
// which a build outside its repository lacks.
func kubernetesStamp(gomod string) (string, error) {
	content, err := os.ReadFile(gomod)
	if err != nil {
		return "", fmt.Errorf("cannot read the version of Kubernetes: %w", err)
	}
	m := regexp.MustCompile(`(?m)^(?:require)?\s*k8s\.io/kubernetes (v(\d+)\.(\d+)\.\S+)`).FindSubmatch(content)
	if m == nil {
		return "", fmt.Errorf("%s requires no k8s.io/kubernetes", gomod)
	}
	const x = "-X k8s.io/component-base/version."
	return fmt.Sprintf("%sgitVersion=%s %sgitMajor=%s %sgitMinor=%s", x, m[1], x, m[2], x, m[3]), nil
}

// checkout returns the root of the checkout that contains the working
// directory.
func checkout() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("cannot determine the working directory: %w", err)
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "deployments", "sandbox", "kubernetes", "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not in a checkout of k8splugin", wd)
		}
	}
}

// cacheDir returns the folder of all sandbox files.
func cacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cannot determine the user's cache folder: %w", err)
	}
	return filepath.Join(dir, "k8splugin", "sandbox"), nil
}
