// Command artifacts creates the folder from which a site is built without
// network access or without trusted downloads. It contains programs, built from
// the Go modules that kud/lab/modules and deployments/sandbox pin, and the
// images of the lab. A manifest has the SHA-256 of every file, which the
// collection in kud verifies.
//
// It downloads from Go's module proxy only: real sites use the publishers' own
// files (`kud bundle`). It keeps files that were built from the same pins. Of
// the programs that it builds it runs only istioctl, which prints Istio's
// manifests.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const usage = `Usage: artifacts [--only name,...] [--previous] [--kubeadm] [DIR]

Builds the components of a site into DIR (default: k8splugin/lab/artifacts in the user's cache folder) and prints DIR.
--previous also builds the previous minor version of Kubernetes, for tests of upgrades.
--kubeadm also packs the images of kubeadm's control plane, into images-kubeadm.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "artifacts:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("artifacts", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage) }
	only := flags.String("only", "", "comma-separated components, or single programs, to build; if empty, all")
	previous := flags.Bool("previous", false, "also build the previous minor version of Kubernetes")
	kubeadm := flags.Bool("kubeadm", false, "also pack the images of kubeadm's control plane")
	if err := flags.Parse(args); err != nil {
		return err
	}
	f, err := newFolder(flags.Arg(0))
	if err != nil {
		return err
	}
	f.progress = stderr
	begin := time.Now()
	for _, b := range slices.Concat(builds(), roleBuilds()) {
		b = b.only(*only)
		if b.optional && !*previous || len(b.programs) == 0 {
			continue
		}
		if err := f.build(ctx, b); err != nil {
			return err
		}
	}
	if err := f.fill(ctx, *only); err != nil {
		return err
	}
	if err := f.images(ctx, *only == ""); err != nil {
		return err
	}
	if *kubeadm {
		if err := f.packKubeadm(); err != nil {
			return err
		}
	}
	n, err := f.writeManifest()
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "%d files, %.0f s\n", n, time.Since(begin).Seconds())
	fmt.Fprintln(stdout, f.dir)
	return nil
}

func chosen(component, only string) bool {
	return only == "" || strings.Contains(","+only+",", ","+component+",")
}

// folder is the folder to fill.
type folder struct {
	root     string // of the checkout
	dir      string
	progress io.Writer
}

func newFolder(dir string) (folder, error) {
	root, err := checkout()
	if err != nil {
		return folder{}, err
	}
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return folder{}, fmt.Errorf("cannot determine the user's cache folder: %w", err)
		}
		dir = filepath.Join(cache, "k8splugin", "lab", "artifacts")
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return folder{}, fmt.Errorf("cannot determine the location of %s: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return folder{}, fmt.Errorf("cannot make the folder: %w", err)
	}
	return folder{root: root, dir: dir}, nil
}

// checkout returns the root of the checkout that contains the working
// directory.
func checkout() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("cannot determine the working directory: %w", err)
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "kud", "lab", "modules")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not in a checkout of k8splugin", wd)
		}
	}
}
