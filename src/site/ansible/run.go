package ansible

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/site"
)

// Config configures a runner. Kud is required.
type Config struct {
	Kud     string         // folder of the collection
	Program string         // default: ansible-playbook, found by PATH
	Dir     string         // parent of the run folders; default: the system's temporary folder
	Path    string         // PATH of the run; default: that of a Debian system
	Vars    map[string]any // the operator's variables; parameters of users override them
	Logger  *slog.Logger   // default: discard
}

// Runner runs the playbooks of kud.
type Runner struct{ cfg Config }

var _ site.Runner = (*Runner)(nil)

// New returns a runner. It does not check whether Ansible is installed; Run
// does.
func New(cfg Config) (*Runner, error) {
	if cfg.Kud == "" {
		return nil, errors.New("cannot run playbooks: Kud is required")
	}
	var err error
	if cfg.Kud, err = filepath.Abs(cfg.Kud); err != nil {
		return nil, fmt.Errorf("cannot find the collection: %w", err)
	}
	if cfg.Program == "" {
		cfg.Program = "ansible-playbook"
	}
	if cfg.Path == "" {
		cfg.Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
	if cfg.Dir == "" {
		cfg.Dir = os.TempDir()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Runner{cfg: cfg}
	r.sweep()
	return r, nil
}

// playbook is a playbook to run, with its arguments in addition to the
// inventory and the variables.
type playbook struct {
	path string
	args []string
}

// playbooks returns the playbooks of a job, in order.
func (r *Runner) playbooks(job site.Job, f *folder) []playbook {
	named := func(name string, args ...string) playbook {
		return playbook{filepath.Join(r.cfg.Kud, "playbooks", name), args}
	}
	var out []playbook
	switch job.Action {
	case site.Build:
		out = append(out, named("site.yml"))
		if prove, said := job.Site.Parameters["kud_verify"].(bool); prove || !said {
			out = append(out, named("verify.yml"))
		}
	case site.Shrink:
		if len(job.Dead) > 0 {
			out = append(out, playbook{path: f.path("forget.yml")})
		}
		alive := slices.DeleteFunc(slices.Clone(job.Targets), func(name string) bool { return slices.Contains(job.Dead, name) })
		if len(alive) > 0 {
			out = append(out, named("remove.yml", "--limit", strings.Join(alive, ",")))
		}
	case site.Reset:
		out = append(out, named("remove.yml"))
	case site.Run: // of the script driver only
	}
	return out
}

// Run implements site.Runner.
func (r *Runner) Run(ctx context.Context, job site.Job) iter.Seq2[site.Event, error] {
	return func(yield func(site.Event, error) bool) {
		a := attempt{r: r, job: job, yield: yield}
		if err := a.execute(ctx); err != nil && !a.stopped {
			yield(site.Event{}, err)
		}
	}
}

// attempt is one run of a job.
type attempt struct {
	r       *Runner
	job     site.Job
	yield   func(site.Event, error) bool
	stopped bool // the loop over the events was left
	failed  []site.Event
}

func (a *attempt) execute(ctx context.Context) (err error) {
	program, err := a.r.program()
	if err != nil {
		return err
	}
	a.r.sweep()
	f, err := newFolder(a.r.cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.remove()) }()
	if err := f.fill(a.job); err != nil {
		return err
	}
	keys, err := newAgent(f.path("agent"), a.job.Secrets)
	if err != nil {
		return err
	}
	defer keys.close()
	vars, err := a.r.variables(a.job, f)
	if err != nil {
		return err
	}
	defer f.hangUp(ctx, a.r.cfg.Path)
	for i, book := range a.r.playbooks(a.job, f) {
		pipe, err := f.pipe(i)
		if err != nil {
			return err
		}
		args := slices.Concat([]string{"-i", f.path("inventory.json"), "-e", "@" + pipe}, book.args, []string{book.path})
		p := process{program: program, args: args, dir: f.dir, pipe: pipe, env: a.environment(f, keys)}
		if err := a.play(ctx, p, vars); err != nil || a.stopped {
			return err
		}
	}
	if a.job.Action != site.Build {
		return nil
	}
	return a.leave(f)
}

// play runs one playbook.
func (a *attempt) play(ctx context.Context, p process, vars []byte) error {
	end, err := p.run(ctx, vars, a.line)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case a.stopped || err != nil:
		return err
	case end != nil:
		return a.why(end)
	}
	return nil
}

// leave yields the kubeconfig that the run has produced. Its absence is left to
// the caller to judge.
func (a *attempt) leave(f *folder) error {
	kubeconfig, err := os.ReadFile(f.path("kubeconfig"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the results of the run: %w", err)
	}
	a.tell(site.Event{Kubeconfig: kubeconfig})
	return nil
}

// program returns the path of ansible-playbook. It returns nf.Unsupported if
// the playbooks or Ansible are missing.
func (r *Runner) program() (string, error) {
	if dir := filepath.Join(r.cfg.Kud, "playbooks"); !exists(dir) {
		return "", &nf.Error{Kind: nf.Unsupported, Op: "run", Subject: "playbooks", Reason: nf.ReasonKud, Err: fmt.Errorf("folder %s contains none", dir)}
	}
	program, err := exec.LookPath(r.cfg.Program)
	if err != nil {
		return "", &nf.Error{Kind: nf.Unsupported, Op: "run", Subject: "playbooks", Reason: nf.ReasonAnsible, Err: fmt.Errorf("found no Ansible installation: %w", err)}
	}
	if program, err = filepath.Abs(program); err != nil {
		return "", fmt.Errorf("cannot find Ansible: %w", err)
	}
	return program, nil
}

// environment returns the run's complete environment. Nothing is inherited from
// this process.
func (a *attempt) environment(f *folder, keys *keyring) []string {
	env := []string{
		"PATH=" + a.r.cfg.Path, "HOME=" + f.dir, "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TMPDIR=" + f.dir,
		"ANSIBLE_HOME=" + f.path("home"), "ANSIBLE_LOCAL_TEMP=" + f.path("home"), "ANSIBLE_RETRY_FILES_ENABLED=false",
		"ANSIBLE_COLLECTIONS_PATH=" + f.path("collections") + ":/usr/share/ansible/collections",
		"ANSIBLE_CALLBACK_PLUGINS=" + f.path("plugins"), "ANSIBLE_STDOUT_CALLBACK=k8splugin", "ANSIBLE_CALLBACKS_ENABLED=",
		"ANSIBLE_NOCOLOR=1", "ANSIBLE_HOST_KEY_CHECKING=true", "ANSIBLE_SSH_CONTROL_PATH_DIR=" + f.path("cp"),
		"ANSIBLE_SSH_ARGS=" + strings.Join([]string{
			"-F none", "-o ControlMaster=auto", "-o ControlPersist=60s", "-o ServerAliveInterval=15", "-o ServerAliveCountMax=4",
			"-o StrictHostKeyChecking=yes", "-o UpdateHostKeys=no", "-o UserKnownHostsFile=" + f.path("known_hosts"), "-o GlobalKnownHostsFile=none",
		}, " "),
		"K8SPLUGIN_LEASH=1",
	}
	if cfg := filepath.Join(a.r.cfg.Kud, "ansible.cfg"); exists(cfg) {
		env = append(env, "ANSIBLE_CONFIG="+cfg)
	}
	if keys != nil {
		env = append(env, "SSH_AUTH_SOCK="+keys.path)
	}
	return env
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// line handles a line of the run's output. It returns false if the loop has
// stopped.
func (a *attempt) line(text string) bool {
	e, ok := parseEvent(text)
	if !ok {
		return true // other lines are ignored
	}
	if e.Kind == nf.EventFailed || e.Kind == nf.EventUnreachable {
		a.failed = append(a.failed, e)
	}
	return a.tell(e)
}

func (a *attempt) tell(e site.Event) bool {
	if !a.stopped && !a.yield(e, nil) {
		a.stopped = true
	}
	return !a.stopped
}

// why returns the error of a run that did not succeed: its first failure, or
// else the program's last output.
func (a *attempt) why(end error) error {
	if len(a.failed) == 0 {
		return &nf.Error{Kind: nf.Failed, Op: "run", Subject: "the playbook", Reason: nf.ReasonAnsible, Err: end}
	}
	// An unreachable host explains failed tasks, not the other way round.
	e := a.failed[0]
	for _, other := range a.failed {
		if other.Kind == nf.EventUnreachable {
			e = other
			break
		}
	}
	if e.Kind == nf.EventUnreachable {
		return &nf.Error{Kind: nf.Unreachable, Op: "connect to", Subject: "host " + e.Host, Reason: nf.ReasonHost, Err: fmt.Errorf("task %q: %s", e.Task, e.Message)}
	}
	return &nf.Error{Kind: nf.Failed, Op: "run", Subject: fmt.Sprintf("task %q on host %s", e.Task, e.Host), Reason: nf.ReasonTask, Err: errors.New(e.Message)}
}
