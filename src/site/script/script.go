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
	maxResult = 1 << 20          // bytes of what a script says
	killTime  = 20 * time.Second // how long stopping a script may take
)

// Run implements site.Runner.
func (Runner) Run(ctx context.Context, job site.Job) iter.Seq2[site.Event, error] {
	return func(yield func(site.Event, error) bool) {
		content := job.Material.Script
		if job.Action == site.Reset {
			content = job.Material.RemoveScript
		}
		at := slices.IndexFunc(job.Site.Hosts, func(h nf.SiteHost) bool { return h.Role == nf.ControlPlane })
		if at < 0 || len(content) == 0 {
			yield(site.Event{}, nf.E(nf.Invalid, "run", "the script of site "+job.Site.ID, errors.New("there is no script, or no host for it")))
			return
		}
		client, _, err := shell.Dial(ctx, job.Site.Hosts[at], job.Material)
		if err != nil {
			yield(site.Event{}, err)
			return
		}
		defer func() { _ = client.Close() }() // it may be closed already
		r := run{job: job, host: job.Site.Hosts[at].Name, client: client, yield: yield}
		if err := r.carry(ctx, content); err != nil && !r.stopped {
			yield(site.Event{}, err)
		}
	}
}

// run is one run of a script.
type run struct {
	job     site.Job
	host    string
	client  *ssh.Client
	yield   func(site.Event, error) bool
	stopped bool // the loop over the events was left
	last    string
}

func (r *run) carry(ctx context.Context, content nf.Secret) error {
	if err := r.command(ctx, r.place()+halt+copyIn, content); err != nil {
		return r.fail("copy", err)
	}
	// From here on there may be something to stop.
	killed := make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		defer close(killed)
		r.stop(ctx)
		_ = r.client.Close() // whatever waits for it wakes up
	})
	defer func() {
		if !forget() {
			<-killed
		}
	}()
	out, err := r.execute()
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
	if err := r.command(ctx, r.place()+clean, nil); err != nil {
		return r.fail("clean up after", err)
	}
	if r.job.Action != site.Build {
		return nil
	}
	kubeconfig, err := ParseResult(out)
	if err != nil {
		return &nf.Error{Kind: nf.Failed, Op: "read", Subject: "what the script said", Reason: "result", Err: err}
	}
	r.tell(site.Event{Kubeconfig: kubeconfig})
	return nil
}

// The shell's side. The folder is the site's own, so that a later run finds what
// a former one has left; and the process group in pid is only taken for the
// script's while its command line names the folder.
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

// place names the folder of the site.
func (r *run) place() string {
	return "set -eu; umask 077; n=" + quote(".k8splugin/"+r.job.Site.UID) + `; d="$HOME/$n"; `
}

// command runs a command, and reads nothing of it but why it failed.
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

// start starts a command that may read the input, and need not: the session's
// own Stdin makes an error of what is left unread.
func start(session *ssh.Session, command string, input []byte) error {
	stdin, err := session.StdinPipe()
	if err != nil {
		return err
	}
	if err := session.Start(command); err != nil {
		return err
	}
	go func() { // until the session is closed at the latest
		_, _ = stdin.Write(input)
		_ = stdin.Close()
	}()
	return nil
}

// stop ends the script on the host, with what it has started. The run's context
// has ended mostly.
func (r *run) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	_ = r.command(ctx, r.place()+halt+clean, nil) // a host that does not answer cannot be told
}

// execute runs the script, tells what it writes to standard error, and returns
// what it writes to standard output. It ends with the script, or when the client
// is closed.
func (r *run) execute() ([]byte, error) {
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
	words := []string{r.place() + `echo $$ >"$d/pid"; SITE_ACTION=` + string(r.job.Action) + `; export SITE_ACTION; exec "$d/run"`}
	for _, option := range r.job.Material.Options {
		words = append(words, quote(option))
	}
	if err := start(session, shellCommand(strings.Join(words, " ")), document); err != nil {
		return nil, err
	}
	for line := range site.Lines(lines) {
		r.last = line
		if !r.tell(site.Event{SiteEvent: nf.SiteEvent{Kind: nf.EventLine, Host: r.host, Message: line}}) {
			return nil, nil
		}
	}
	if err := session.Wait(); err != nil {
		return nil, err
	}
	if bounded.over {
		return nil, nf.E(nf.TooLarge, "read", "what the script said", fmt.Errorf("it is more than %d bytes", maxResult))
	}
	return out.Bytes(), nil
}

func (r *run) tell(e site.Event) bool {
	if !r.stopped && !r.yield(e, nil) {
		r.stopped = true
	}
	return !r.stopped
}

// fail gives an error of the connection or the script its kind.
func (r *run) fail(op string, err error) error {
	if nf.KindOf(err) != nf.Internal {
		return err
	}
	subject := "the script on host " + r.host
	if e, ok := errors.AsType[*ssh.ExitError](err); ok {
		cause := fmt.Errorf("it ended with code %d", e.ExitStatus())
		if e.Signal() != "" {
			cause = fmt.Errorf("it was ended by signal %s", e.Signal())
		}
		if r.last != "" {
			cause = fmt.Errorf("%w, and said last: %s", cause, r.last)
		} else if op != "run" {
			cause = err
		}
		return &nf.Error{Kind: nf.Failed, Op: op, Subject: subject, Reason: "script", Err: cause}
	}
	return &nf.Error{Kind: nf.Unreachable, Op: op, Subject: subject, Reason: "ssh", Err: err}
}

// document is what the script reads from its standard input.
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
	for name, value := range r.job.Material.Secrets {
		secrets[name] = string(value)
	}
	parameters := in.Parameters
	if parameters == nil {
		parameters = map[string]any{}
	}
	return json.Marshal(map[string]any{
		"action": r.job.Action, "site": in.ID, "region": in.Region, "hosts": hosts, "parameters": parameters, "secrets": secrets,
		"proxy": map[string]string{"http": in.Proxy.HTTP, "https": in.Proxy.HTTPS, "no_proxy": in.Proxy.None},
	})
}

// shellCommand is a text for sh, whatever the user's own shell is.
func shellCommand(text string) string { return "exec sh -c " + quote(text) }

// quote makes a text one word of a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// limited keeps the beginning of what is written to it.
type limited struct {
	to   *bytes.Buffer
	left int
	over bool
}

// Write never fails: who writes is not to be kept waiting.
func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.over = l.over || n < len(p)
	l.left -= n
	l.to.Write(p[:n])
	return len(p), nil
}
