package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	loopback = "127.0.0.1"

	// startDeadline is the timeout of a start. A process that exits is noticed
	// at once; the timeout is for one that hangs, on the slowest machine.
	startDeadline = 5 * time.Minute

	// attempts is how often a start is tried with other ports, if another
	// process takes a port after it was chosen.
	attempts = 5
)

var errPortTaken = errors.New("another process has taken the port")

// plane is a control plane that is being started or stopped.
type plane struct {
	options options

	built     installation
	tied      bool // the processes end with this one
	log       *progress
	ports     ports
	processes []process
}

// ports holds the loopback ports that the control plane listens on.
type ports struct{ etcd, peer, api, controller, scheduler, kwok string }

// freePorts chooses unused ports.
func freePorts() (ports, error) {
	var p ports
	for _, port := range []*string{&p.etcd, &p.peer, &p.api, &p.controller, &p.scheduler, &p.kwok} {
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
		if err != nil {
			return p, fmt.Errorf("cannot find a free port: %w", err)
		}
		defer l.Close() // closed together at the end, so that no port is chosen twice
		_, *port, err = net.SplitHostPort(l.Addr().String())
		if err != nil {
			return p, fmt.Errorf("cannot determine the port of %s: %w", l.Addr(), err)
		}
	}
	return p, nil
}

// start starts the control plane and returns when it is ready, including its
// nodes. On an error it stops everything.
func (p *plane) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startDeadline, fmt.Errorf("the sandbox did not start within %s", startDeadline))
	defer cancel()
	if err := p.clear(); err != nil {
		return err
	}
	if err := pkiIn(p.options.dir).ensure(); err != nil {
		return err
	}
	for range attempts {
		err := p.attempt(ctx)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errPortTaken) {
			return errors.Join(err, p.stop(ctx))
		}
		p.log.say("%v; trying other ports", err)
		if err := p.stop(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("after %d attempts: %w", attempts, errPortTaken)
}

// clear prepares the folder for a new start.
func (p *plane) clear() error {
	stale := []string{"log"}
	if !p.options.keep {
		// A service that manages this cluster may store its records in data.
		// They refer to objects that are deleted now.
		stale = append(stale, "etcd", "pki", "data")
	}
	for _, name := range stale {
		if err := os.RemoveAll(filepath.Join(p.options.dir, name)); err != nil {
			return fmt.Errorf("cannot remove the files of the last sandbox: %w", err)
		}
	}
	for _, name := range []string{"log", "etcd"} {
		if err := os.MkdirAll(filepath.Join(p.options.dir, name), 0o700); err != nil {
			return fmt.Errorf("cannot make the sandbox's folder: %w", err)
		}
	}
	return nil
}

// attempt starts everything with one choice of ports.
func (p *plane) attempt(ctx context.Context) (err error) {
	if p.ports, err = freePorts(); err != nil {
		return err
	}
	if p.options.hosts > 0 {
		p.ports.api = servicePort // free: the network of the hosts is new
	}
	if err := writeAccess(p.options.dir, p.apiURL(), identities(p.options.hosts)); err != nil {
		return err
	}
	if err := p.writeConfigs(); err != nil {
		return err
	}
	api, err := dial(adminKubeconfig(p.options.dir))
	if err != nil {
		return err
	}
	for _, wave := range p.waves() {
		for _, c := range wave {
			if err := p.launch(c); err != nil {
				return err
			}
		}
		for i, c := range wave {
			if err := p.await(ctx, api, c, p.processes[len(p.processes)-len(wave)+i]); err != nil {
				return err
			}
		}
	}
	if err := p.launchHosts(); err != nil {
		return err
	}
	return p.populate(ctx, api)
}

// launch starts a component, and records it at once so that it can be stopped.
func (p *plane) launch(c component) error {
	started, err := spawn(c.name, p.logDir(), p.tied, p.built.program(c.name), c.args...)
	if err != nil {
		return err
	}
	p.processes = append(p.processes, started)
	return writeProcesses(processesPath(p.options.dir), p.processes)
}

// await returns when a component is healthy.
func (p *plane) await(ctx context.Context, api *api, c component, proc process) error {
	err := pollUntil(ctx, func() (bool, error) {
		if !proc.alive() {
			return false, p.death(proc)
		}
		return api.get(ctx, c.healthy, nil) == nil, nil
	})
	if err != nil {
		return fmt.Errorf("cannot start %s: %w", c.name, err)
	}
	p.log.say("%s is ready", c.name)
	return nil
}

// death returns an error with the end of the log of a component that ended.
func (p *plane) death(proc process) error {
	const enough = 2000
	content, err := os.ReadFile(filepath.Join(p.logDir(), proc.name+".log"))
	if err != nil {
		return fmt.Errorf("it ended, and its log cannot be read: %w", err)
	}
	tail := content[max(0, len(content)-enough):]
	if bytes.Contains(tail, []byte("address already in use")) {
		return errPortTaken
	}
	return fmt.Errorf("it ended; the end of its log:\n%s", tail)
}

// stop stops all started processes.
func (p *plane) stop(ctx context.Context) error {
	err := stopAll(context.WithoutCancel(ctx), p.processes) // even if the context has ended
	if err != nil {
		return err
	}
	p.processes = nil
	if err := os.Remove(processesPath(p.options.dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot remove the record of the processes: %w", err)
	}
	return nil
}

// writeConfigs writes the configuration files of the components.
func (p *plane) writeConfigs() error {
	own, err := readAll(filepath.Join(p.built.sources, "stages", "*.yaml"))
	if err != nil {
		return err
	}
	kwoks, err := os.ReadFile(p.built.kwokStages())
	if err != nil {
		return fmt.Errorf("cannot read KWOK's stages: %w", err)
	}
	config, err := os.ReadFile(filepath.Join(p.built.sources, "kwok.yaml"))
	if err != nil {
		return fmt.Errorf("cannot read KWOK's configuration: %w", err)
	}
	stages := joinDocuments(append([][]byte{config, kwoks}, own...))
	if err := writeFile(p.file("kwok.yaml"), stages, 0o600); err != nil {
		return err
	}
	for name, content := range map[string]any{
		"scheduler.yaml": schedulerConfig(kubeconfigPath(p.options.dir, "scheduler")),
		"audit.yaml":     auditPolicy(),
	} {
		encoded, err := json.Marshal(content) // JSON is valid YAML and needs no special quoting
		if err != nil {
			return fmt.Errorf("cannot encode %s: %w", name, err)
		}
		if err := writeFile(p.file(name), encoded, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (p *plane) file(name string) string { return filepath.Join(p.options.dir, name) }

func (p *plane) logDir() string { return p.file("log") }

func (p *plane) url(scheme, port string) string {
	return scheme + "://" + net.JoinHostPort(loopback, port)
}

// address returns that of the API server.
func (p *plane) address() string {
	if p.options.hosts > 0 {
		return planeAddress
	}
	return loopback
}

// bindAddress returns the address on which the API server listens. Pods reach it
// at that of its Service, too.
func (p *plane) bindAddress() string {
	if p.options.hosts > 0 {
		return "0.0.0.0"
	}
	return loopback
}

func (p *plane) apiURL() string { return "https://" + net.JoinHostPort(p.address(), p.ports.api) }

func processesPath(dir string) string { return filepath.Join(dir, "pids") }

// up starts the sandbox of its folder, unless it is running.
func up(ctx context.Context, built installation, o options, w io.Writer) error {
	unlock, err := lockSandbox(ctx, o.dir, w)
	if err != nil {
		return err
	}
	defer unlock()
	processes, err := readProcesses(processesPath(o.dir))
	if err != nil {
		return err
	}
	if works(ctx, o.dir, processes) {
		fmt.Fprintln(w, "The sandbox is already running.")
		return nil
	}
	p := &plane{options: o, built: built, log: newProgress(w), processes: processes}
	if err := p.stop(ctx); err != nil {
		return err
	}
	return p.start(ctx)
}

// works reports whether all processes of a sandbox run and its API server is
// healthy.
func works(ctx context.Context, dir string, processes []process) bool {
	if len(processes) < len(programs())-1 { // all but kubectl
		return false
	}
	for _, p := range processes {
		if !p.alive() {
			return false
		}
	}
	api, err := dial(adminKubeconfig(dir))
	return err == nil && api.get(ctx, "/readyz", nil) == nil
}

// down stops the sandbox of a folder. It is not an error if none is running.
func down(ctx context.Context, dir string, w io.Writer) error {
	if _, err := os.Stat(processesPath(dir)); errors.Is(err, os.ErrNotExist) {
		fmt.Fprintln(w, "No sandbox is running.")
		return nil
	}
	unlock, err := lockSandbox(ctx, dir, w)
	if err != nil {
		return err
	}
	defer unlock()
	processes, err := readProcesses(processesPath(dir))
	if err != nil {
		return err
	}
	p := &plane{options: options{dir: dir}, processes: processes}
	if err := p.stop(ctx); err != nil {
		return err
	}
	fmt.Fprintln(w, "The sandbox is stopped.")
	return nil
}

// lockSandbox prevents concurrent up and down in a sandbox's folder.
func lockSandbox(ctx context.Context, dir string, w io.Writer) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the sandbox's folder: %w", err)
	}
	return lock(ctx, filepath.Join(dir, "lock"), func() {
		fmt.Fprintln(w, "Waiting for another process that starts or stops the sandbox.")
	})
}

// progress reports events with the time since the start.
type progress struct {
	w     io.Writer
	begin time.Time
}

func newProgress(w io.Writer) *progress { return &progress{w: w, begin: time.Now()} }

func (p *progress) say(format string, args ...any) {
	fmt.Fprintf(p.w, "[%5.1f s] %s\n", time.Since(p.begin).Seconds(), fmt.Sprintf(format, args...))
}
