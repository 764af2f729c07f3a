// Command sandbox runs a real Kubernetes control plane on this machine, to try
// and test the service. It consists of etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler, built once from their Go modules
// (deployments/sandbox), and KWOK, which simulates nodes and pods.
//
// It needs no root, no containers and no network except Go's module proxy. It
// listens on loopback only, and leaves no process behind that it cannot stop.
// Pods are only records: they become ready, but run nothing. With `exec --hosts`,
// which needs root, they run on real nodes instead.
//
// It uses the standard library only, so that `go run ./src/cmd/sandbox` is
// quick.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

const usage = `Usage: sandbox <verb>

  build                          build the programs into the user's cache, if they are missing
  up   [--dir D] [--nodes N] [--keep]
                                 start a sandbox; print the path of its kubeconfig
  down [--dir D]                 stop the sandbox
  exec [--nodes N | --hosts N [--images D]] [--] command
                                 run a command with a separate sandbox, and with
                                 K8SPLUGIN_SANDBOX=<kubeconfig> and K8SPLUGIN_SANDBOX_BIN=<programs>;
                                 with --hosts, as root, N real nodes run real pods;
                                 with --images, they also have the images of the archives in D
  kubectl arguments              run kubectl on the running sandbox
`

const (
	defaultNodes = 5
	exitUsage    = 2
)

func main() {
	// The kernel kills processes started by `exec` when the thread that started
	// them ends. Everything starts from this goroutine, so its thread must live
	// as long as the program.
	runtime.LockOSThread()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	code, err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
	}
	os.Exit(code)
}

// run executes a verb and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (int, error) {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return exitUsage, nil
	}
	var (
		code int
		err  error
	)
	switch verb, rest := args[0], args[1:]; verb {
	case "build":
		err = buildVerb(ctx, rest, stderr)
	case "up":
		err = upVerb(ctx, rest, stdout, stderr)
	case "down":
		err = downVerb(ctx, rest, stderr)
	case "exec":
		code, err = execVerb(ctx, rest, stderr)
	case "kubectl":
		err = kubectlVerb(rest)
	case "help", "-h", "--help":
		fmt.Fprint(stdout, usage)
	default:
		err = usageError("unknown command " + verb)
	}
	return exitCode(code, err), err
}

// usageError is an error in the command line.
type usageError string

// Error implements error.
func (e usageError) Error() string { return string(e) + "\n\n" + strings.TrimSpace(usage) }

// exitCode returns the exit code for the result of a verb.
func exitCode(code int, err error) int {
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if err != nil && code == 0 {
		return 1
	}
	return code
}

// options holds the flags of all verbs. Each verb declares those that it
// accepts.
type options struct {
	dir   string
	nodes int
	hosts int
	keep  bool

	images string // folder of archives of images, for the hosts
}

// parse parses a verb's flags and returns the remaining arguments.
func parse(verb string, args []string, declare func(*flag.FlagSet, *options)) (options, []string, error) {
	var o options
	flags := flag.NewFlagSet(verb, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	declare(flags, &o)
	if err := flags.Parse(args); err != nil {
		return o, nil, usageError(err.Error())
	}
	if o.dir == "" {
		home, err := cacheDir()
		if err != nil {
			return o, nil, err
		}
		o.dir = filepath.Join(home, "run")
	}
	var err error
	o.dir, err = filepath.Abs(o.dir)
	return o, flags.Args(), err
}

func (o *options) dirFlag(flags *flag.FlagSet) {
	flags.StringVar(&o.dir, "dir", "", "folder of the sandbox")
}

func (o *options) nodesFlag(flags *flag.FlagSet) {
	flags.IntVar(&o.nodes, "nodes", defaultNodes, "number of simulated nodes")
}

func (o *options) hostsFlag(flags *flag.FlagSet) {
	flags.IntVar(&o.hosts, "hosts", 0, "number of real nodes, in place of simulated ones")
}

func (o *options) imagesFlag(flags *flag.FlagSet) {
	flags.StringVar(&o.images, "images", "", "folder of archives of images that the real nodes have, too")
}

func buildVerb(ctx context.Context, args []string, stderr io.Writer) error {
	if len(args) > 0 {
		return usageError("build takes no arguments")
	}
	built, err := ensureBuilt(ctx, stderr)
	if err != nil {
		return err
	}
	fmt.Fprintln(stderr, "The programs are in", built.bin())
	return nil
}

func upVerb(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, rest, err := parse("up", args, func(flags *flag.FlagSet, o *options) {
		o.dirFlag(flags)
		o.nodesFlag(flags)
		flags.BoolVar(&o.keep, "keep", false, "keep the objects of the last run")
	})
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return usageError("up takes no arguments")
	}
	built, err := ensureBuilt(ctx, stderr)
	if err != nil {
		return err
	}
	if err := up(ctx, built, o, stderr); err != nil {
		return err
	}
	fmt.Fprintln(stdout, adminKubeconfig(o.dir))
	return nil
}

func downVerb(ctx context.Context, args []string, stderr io.Writer) error {
	o, rest, err := parse("down", args, func(flags *flag.FlagSet, o *options) { o.dirFlag(flags) })
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return usageError("down takes no arguments")
	}
	return down(ctx, o.dir, stderr)
}

// kubectlVerb replaces the process with kubectl. It uses the sandbox of the
// surrounding `exec`, or otherwise the one that `up` started. A --kubeconfig in
// the arguments takes precedence.
func kubectlVerb(args []string) error {
	built, err := locate()
	if err != nil {
		return err
	}
	kubeconfig := os.Getenv(envKubeconfig)
	if kubeconfig == "" {
		home, err := cacheDir()
		if err != nil {
			return err
		}
		kubeconfig = adminKubeconfig(filepath.Join(home, "run"))
	}
	if _, err := os.Stat(kubeconfig); err != nil {
		return fmt.Errorf("no sandbox is running: %w", err)
	}
	env := append(os.Environ(), "KUBECONFIG="+kubeconfig)
	kubectl := built.program("kubectl")
	return fmt.Errorf("cannot run %s: %w", kubectl, syscall.Exec(kubectl, append([]string{"kubectl"}, args...), env))
}
