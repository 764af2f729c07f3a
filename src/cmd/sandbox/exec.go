package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// Environment variables for a command that runs with a sandbox.
const (
	envKubeconfig = "K8SPLUGIN_SANDBOX"     // path of the administrator's kubeconfig
	envPrograms   = "K8SPLUGIN_SANDBOX_BIN" // folder of etcd, kube-apiserver, kubectl, ...
)

// execVerb runs a command with a new sandbox and returns its exit code. It
// always stops the sandbox before it returns. If this program is killed, the
// kernel kills the sandbox.
func execVerb(ctx context.Context, args []string, stderr io.Writer) (code int, err error) {
	o, argv, err := parse("exec", args, func(flags *flag.FlagSet, o *options) {
		o.nodesFlag(flags)
		o.hostsFlag(flags)
		o.imagesFlag(flags)
	})
	if err != nil {
		return 0, err
	}
	if len(argv) == 0 {
		return 0, usageError("exec needs a command")
	}
	if o.hosts < 0 || o.hosts > maxHosts {
		return 0, usageError(fmt.Sprintf("--hosts is a number from 0 to %d", maxHosts))
	}
	if o.images != "" && o.hosts == 0 {
		return 0, usageError("--images is for the nodes of --hosts")
	}
	signals := make(chan os.Signal, 8) // catch all signals from here on; one before the command starts stops the start
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	built, err := ensureBuilt(ctx, stderr)
	if err != nil {
		return 0, err
	}
	if o.hosts > 0 {
		o.nodes = 0
		if os.Getenv(envInside) == "" {
			if err := built.ensureHosts(ctx, stderr); err != nil {
				return 0, err
			}
			return inside(args, signals)
		}
		if err := hostNetwork(ctx); err != nil {
			return 0, err
		}
	}
	o.dir, err = os.MkdirTemp("", "k8splugin-sandbox-")
	if err != nil {
		return 0, fmt.Errorf("cannot make a folder for the sandbox: %w", err)
	}
	p := &plane{options: o, built: built, tied: true, log: newProgress(stderr)}
	defer func() {
		err = errors.Join(err, p.stop(ctx), p.removeGroups(), os.RemoveAll(o.dir))
	}()
	if err := p.start(ctx); err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	code, err = command(argv, []string{envKubeconfig + "=" + adminKubeconfig(o.dir), envPrograms + "=" + built.bin()}, signals)
	return code, errors.Join(err, p.casualties())
}

// casualties returns an error that names the components and hosts that have
// ended by themselves.
func (p *plane) casualties() error {
	var dead []error
	for _, proc := range p.processes {
		if !proc.alive() {
			dead = append(dead, fmt.Errorf("%s: %w", proc.name, p.death(proc)))
		}
	}
	return errors.Join(dead...)
}

// command runs a command with this process's input and output, and forwards
// signals to it. It returns the exit code as a shell would.
func command(argv, env []string, signals <-chan os.Signal, more ...func(*syscall.SysProcAttr)) (int, error) {
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:noctx // it is ended by the signals it gets, and told no other way
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// With a terminal the command stays in this process group, which gets the
	// terminal's interrupts. Without one it leads a new group, so that a signal
	// to this group does not reach it twice.
	terminal := hasTerminal()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !terminal}
	dieWithParent(cmd.SysProcAttr, syscall.SIGTERM)
	for _, change := range more {
		change(cmd.SysProcAttr)
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("cannot run %s: %w", argv[0], err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			return outcome(cmd.ProcessState, err)
		case s := <-signals:
			forward(cmd.Process.Pid, s, terminal)
		}
	}
}

// forward forwards a signal to the command's group. With a terminal it forwards
// to the command alone, and omits SIGINT, which the terminal has sent to the
// group.
func forward(pid int, s os.Signal, terminal bool) {
	number, ok := s.(syscall.Signal)
	if !ok || terminal && number == syscall.SIGINT {
		return
	}
	if !terminal {
		pid = -pid
	}
	_ = syscall.Kill(pid, number) // if the command has ended, Wait reports it
}

// outcome returns the exit code of a command that ended: 128 plus the signal's
// number if it was killed.
func outcome(state *os.ProcessState, err error) (int, error) {
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		return 0, fmt.Errorf("cannot wait for the command: %w", err)
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return state.ExitCode(), nil
}

// hasTerminal reports whether the process has a controlling terminal.
func hasTerminal() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	_ = tty.Close()
	return true
}
