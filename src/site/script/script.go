package script

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/site"
	"github.com/multicloud-k8s/k8splugin/src/site/shell"
)

// Runner runs the scripts of sites.
type Runner struct{}

var _ site.Runner = Runner{}

const (
	maxResult = 1 << 20          // most bytes of a script's standard output
	killTime  = 20 * time.Second // limit for stopping a script
)

// Run implements site.Runner.
func (Runner) Run(ctx context.Context, job site.Job) iter.Seq2[site.Event, error] {
	return func(yield func(site.Event, error) bool) {
		content := job.Secrets.Script
		if job.Action == site.Reset {
			content = job.Secrets.RemoveScript
		}
		hosts := hostsOf(job)
		if len(hosts) == 0 || len(content) == 0 {
			yield(site.Event{}, nf.E(nf.Invalid, "run", "the script of site "+job.Site.ID, errors.New("the script or the host to run it on is missing")))
			return
		}
		r := run{job: job, yield: yield}
		for _, h := range hosts {
			if err := r.on(ctx, h, content); err != nil && !r.stopped {
				yield(site.Event{}, err)
				return
			}
			if r.stopped {
				return
			}
		}
	}
}

// hostsOf returns the hosts that a job runs the script on, in order. A build begins with
// the control planes, and a reset ends with them.
func hostsOf(job site.Job) []nf.SiteHost {
	var out, workers []nf.SiteHost
	for _, h := range job.Site.Hosts {
		switch {
		case h.Role == nf.ControlPlane:
			out = append(out, h)
		case job.Action == site.Reset || h.State != nf.HostLeaving:
			workers = append(workers, h)
		}
	}
	if !job.Site.EveryHost || job.Action == site.Shrink {
		return out[:min(len(out), 1)]
	}
	out = append(out, workers...)
	if job.Action == site.Reset {
		slices.Reverse(out)
	}
	return out
}

// on runs the script on one host.
func (r *run) on(ctx context.Context, h nf.SiteHost, content nf.Secret) error {
	client, _, err := shell.Dial(ctx, h, r.job.Secrets)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // it may be closed already
	r.host, r.client, r.last = h, client, ""
	return r.execute(ctx, content)
}

// run is one run of a script.
type run struct {
	job     site.Job
	host    nf.SiteHost
	client  *ssh.Client
	built   bool            // a host has returned the result
	join    json.RawMessage // of that host, for those that follow
	yield   func(site.Event, error) bool
	stopped bool // the loop over the events was left
	last    string
}

func (r *run) execute(ctx context.Context, content nf.Secret) error {
	if err := r.command(ctx, r.setFolder()+halt+copyIn, content); err != nil {
		return r.fail("copy", err)
	}
	// From here on there may be a process to stop.
	killed := make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		defer close(killed)
		r.stop(ctx)
		_ = r.client.Close() // unblocks all that use the client
	})
	defer func() {
		if !forget() {
			<-killed
		}
	}()
	out, err := r.runScript()
	if r.stopped || err != nil && ctx.Err() == nil {
		r.stop(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case r.stopped:
		return nil
	case err != nil:
		return r.fail("run", err)
	}
	if err := r.command(ctx, r.setFolder()+clean, nil); err != nil {
		return r.fail("clean up after", err)
	}
	if r.job.Action != site.Build || r.built {
		return nil
	}
	kubeconfig, err := ParseResult(out)
	if err != nil {
		return &nf.Error{Kind: nf.Failed, Op: "read", Subject: "the result of the script", Reason: nf.ReasonResult, Err: err}
	}
	e := site.Event{Kubeconfig: kubeconfig}
	r.join, e.Hidden = joinOf(out)
	r.built = true
	r.tell(e)
	return nil
}

// The shell's side. The folder is specific to the site, so that a later run
// finds what an earlier one has left. The process group in the pid file is
// treated as the script's only while its command line names the folder.
const (
	halt = `
if [ -f "$d/pid" ]; then
  p=$(cat "$d/pid")
  ours() { grep -qsF "$n" "/proc/$p/cmdline"; }
  if ours; then
    kill -s TERM -- "-$p"
    i=0
    while ours && [ "$i" -lt 50 ]; do sleep 0.1; i=$((i + 1)); done
    kill -s KILL -- "-$p" 2>/dev/null || true
  fi
  rm -f "$d/pid"
fi
`
	copyIn = `mkdir -p "$d"; cat >"$d/run"; chmod 700 "$d/run"`
	clean  = `rm -rf "$d"; rmdir "$HOME/.k8splugin" 2>/dev/null || true`
)

// setFolder returns shell code that sets the path of the site's folder.
func (r *run) setFolder() string {
	return "set -eu; umask 077; n=" + quote(".k8splugin/"+r.job.Site.UID) + `; d="$HOME/$n"; `
}

// command runs a command. It uses the output only for the error.
func (r *run) command(ctx context.Context, text string, input []byte) error {
	session, err := r.client.NewSession()
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }() // it may be closed already
	forget := context.AfterFunc(ctx, func() { _ = session.Close() })
	defer forget()
	var said bytes.Buffer
	session.Stderr = &limited{to: &said, left: 4 << 10}
	err = start(session, shellCommand(text), input)
	if err == nil {
		err = session.Wait()
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	return nil
}

// start starts a command that need not read all its input. The session's own
// Stdin would make unread input an error.
func start(session *ssh.Session, command string, input []byte) error {
	stdin, err := session.StdinPipe()
	if err != nil {
		return err
	}
	if err := session.Start(command); err != nil {
		return err
	}
	go func() { // ends when the session is closed, at the latest
		_, _ = stdin.Write(input)
		_ = stdin.Close()
	}()
	return nil
}

// stop stops the script on the host, with the processes of its group. The run's
// context has usually ended by then.
func (r *run) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	_ = r.command(ctx, r.setFolder()+halt+clean, nil) // impossible on a host that does not answer
}

// runScript runs the script, yields the lines of its standard error as events,
// and returns its standard output. It ends with the script, or when the client
// is closed.
func (r *run) runScript() ([]byte, error) {
	document, err := r.document()
	if err != nil {
		return nil, err
	}
	session, err := r.client.NewSession()
	if err != nil {
		return nil, err
	}
	defer func() { _ = session.Close() }() // it may be closed already
	var out bytes.Buffer
	bounded := &limited{to: &out, left: maxResult}
	session.Stdout = bounded
	lines, err := session.StderrPipe()
	if err != nil {
		return nil, err
	}
	words := []string{r.setFolder() + `echo $$ >"$d/pid"; SITE_ACTION=` + string(r.job.Action) + `; SITE_HOST=` + quote(r.host.Name) + `; SITE_ROLE=` + quote(string(r.host.Role)) +
		`; export SITE_ACTION SITE_HOST SITE_ROLE; exec "$d/run"`}
	for _, option := range r.job.Secrets.Options {
		words = append(words, quote(option))
	}
	if err := start(session, shellCommand(strings.Join(words, " ")), document); err != nil {
		return nil, err
	}
	for line := range site.Lines(lines) {
		r.last = line
		if !r.tell(site.Event{LogEntry: nf.LogEntry{Kind: nf.EventLine, Host: r.host.Name, Message: line}}) {
			return nil, nil
		}
	}
	if err := session.Wait(); err != nil {
		return nil, err
	}
	if bounded.over {
		return nil, nf.E(nf.TooLarge, "read", "the result of the script", fmt.Errorf("it has more than %d bytes", maxResult))
	}
	return out.Bytes(), nil
}

func (r *run) tell(e site.Event) bool {
	if !r.stopped && !r.yield(e, nil) {
		r.stopped = true
	}
	return !r.stopped
}

// fail converts an error of the connection or of the script into an nf.Error.
func (r *run) fail(op string, err error) error {
	if nf.KindOf(err) != nf.Internal {
		return err
	}
	subject := "the script on host " + r.host.Name
	if e, ok := errors.AsType[*ssh.ExitError](err); ok {
		cause := fmt.Errorf("it ended with code %d", e.ExitStatus())
		if e.Signal() != "" {
			cause = fmt.Errorf("it was ended by signal %s", e.Signal())
		}
		if r.last != "" {
			cause = fmt.Errorf("%w; last output: %s", cause, r.last)
		} else if op != "run" {
			cause = err
		}
		return &nf.Error{Kind: nf.Failed, Op: op, Subject: subject, Reason: nf.ReasonScript, Err: cause}
	}
	return &nf.Error{Kind: nf.Unreachable, Op: op, Subject: subject, Reason: nf.ReasonSSH, Err: err}
}

// document returns the script's standard input.
func (r *run) document() ([]byte, error) {
	type host struct {
		Name    string           `json:"name"`
		Address string           `json:"address"`
		Port    int              `json:"port"`
		User    string           `json:"user"`
		Role    nf.SiteRole      `json:"role"`
		State   nf.SiteHostState `json:"state"`
	}
	in := r.job.Site
	hosts := make([]host, len(in.Hosts))
	for i, h := range in.Hosts {
		hosts[i] = host{h.Name, h.Address, h.Port, h.User, h.Role, h.State}
	}
	secrets := map[string]string{}
	for name, value := range r.job.Secrets.Secrets {
		secrets[name] = string(value)
	}
	parameters := in.Parameters
	if parameters == nil {
		parameters = map[string]any{}
	}
	return json.Marshal(map[string]any{
		"action": r.job.Action, "site": in.ID, "region": in.Region, "host": r.host.Name, "hosts": hosts, "parameters": parameters, "secrets": secrets, "join": r.join,
		"proxy": map[string]string{"http": in.Proxy.HTTP, "https": in.Proxy.HTTPS, "no_proxy": in.Proxy.None},
	})
}

// shellCommand returns a command that runs the text with sh, whatever the
// user's login shell is.
func shellCommand(text string) string { return "exec sh -c " + quote(text) }

// quote quotes a text as one shell word.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// limited keeps the first bytes written to it.
type limited struct {
	to   *bytes.Buffer
	left int
	over bool
}

// Write never fails, so that the writer does not block.
func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.over = l.over || n < len(p)
	l.left -= n
	l.to.Write(p[:n])
	return len(p), nil
}
