package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

const (
	jsonMedia  = "application/json"
	mergePatch = "application/merge-patch+json"
)

// specFlags holds the flags that describe an instance and how to execute the
// change.
type specFlags struct {
	wire.InstanceTarget

	description string
	pkg         string
	files       []string
	set         settings
	answers     placementAnswers
	labels      labelsFlag
	namespaces  []string
	attach      attachFlag
	volumes     volumeFlag
	drift       driftFlags
	claims      string
	inventory   inventoryFlags
	workloads   workloadFlag
	execution   executionFlags
	strict      bool
}

func (f *specFlags) define(s *session, cmd *cobra.Command) {
	f.set = newSettings()
	flags := cmd.Flags()
	flags.StringVar(&f.pkg, "package", "", "csar_id of the package")
	flags.StringVar(&f.description, "description", "", "description of the instance")
	defineValues(flags, &f.files, f.set)
	f.answers.define(flags)
	flags.Var(&f.labels, "label", "label; can be repeated")
	flags.StringSliceVar(&f.namespaces, "namespaces", nil, "additional namespaces that objects may be in, comma-separated")
	flags.Var(&f.volumes, "volume", "volume that a claim of the instance binds, as in data,claim=db-data; can be repeated")
	flags.Var(&f.workloads, "workload-cluster", "Cluster of Cluster API that becomes a cloud region, as in edge,region=edge-1,credentials=secret,ready-when=usable,server=URL,hand-over=URL; can be repeated")
	flags.Var(&f.attach, "attach", "network that a workload attaches to, as in oam,workload=router,ip=10.0.0.9/24; create=FILE has the spec of a new network; can be repeated")
	f.drift.define(cmd)
	f.inventory.define(flags)
	completeFlag(cmd, "aai-writer", fixed(string(nf.AAIService), string(nf.AAIAdapter), string(nf.AAINone)))
	flags.StringVar(&f.claims, "claims", "", "treatment of the PersistentVolumeClaims that StatefulSets create, when the instance is deleted: keep or delete (default keep)")
	completeFlag(cmd, "claims", fixed(string(nf.ClaimsKeep), string(nf.ClaimsDelete)))
	f.execution.define(cmd)
	f.execution.defineOnFailure(cmd, "undo")
	f.execution.defineValidate(cmd)
	defineStrict(cmd, &f.strict)
	completeFlag(cmd, "package", s.ids(packages(), true))
}

// defineValues defines the flags for parameters.
func defineValues(flags *pflag.FlagSet, files *[]string, set settings) {
	flags.StringArrayVarP(files, "values", "f", nil, "YAML or JSON file with parameters; - reads standard input")
	flags.Var(setFlag{set, typed}, "set", "parameter, or a.b=… for a value inside one; 3 is a number, true a boolean, [a, b] a list; for charts, a[0]=… as in Helm")
	flags.Var(setFlag{set, textJSON}, "set-string", "parameter whose value is always text")
}

// executionFlags holds the flags for how an operation is executed.
type executionFlags struct {
	onFailure, onUnreachable, validate string
	timeout                            time.Duration
}

func (m *executionFlags) define(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&m.timeout, "timeout", 0, "maximum duration of the whole operation, such as 10m")
	cmd.Flags().StringVar(&m.onUnreachable, "on-unreachable", "", "action if the region is still unreachable at the timeout: fail, or wait until it is available (default fail)")
	completeFlag(cmd, "on-unreachable", fixed("fail", "wait"))
}

// defineOnFailure defines --on-failure, for operations that can be undone.
func (m *executionFlags) defineOnFailure(cmd *cobra.Command, otherwise string) {
	cmd.Flags().StringVar(&m.onFailure, "on-failure", "", "action if the change fails: undo or keep its results (default "+otherwise+")")
	completeFlag(cmd, "on-failure", fixed("undo", "keep"))
}

// defineValidate defines --validate, for operations that apply objects.
func (m *executionFlags) defineValidate(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.validate, "validate", "", "additional check before anything changes: server, a dry run of every object by the region's API server")
	completeFlag(cmd, "validate", fixed("server"))
}

// defineStrict defines --strict, for operations that render a package with parameters.
func defineStrict(cmd *cobra.Command, strict *bool) {
	cmd.Flags().BoolVar(strict, "strict", false, "reject parameters that have no effect, instead of a warning")
}

func (m *executionFlags) check() error {
	if m.validate != "" && m.validate != "server" {
		return usagef("--validate: must be server, got %q", m.validate)
	}
	if m.onFailure != "" && m.onFailure != "undo" && m.onFailure != "keep" {
		return usagef("--on-failure: must be undo or keep, got %q", m.onFailure)
	}
	if m.onUnreachable != "" && m.onUnreachable != "fail" && m.onUnreachable != "wait" {
		return usagef("--on-unreachable: must be fail or wait, got %q", m.onUnreachable)
	}
	return nil
}

// options returns the given flags.
func (m *executionFlags) options() (wire.Execution, error) {
	out := wire.Execution{OnFailure: nf.OnFailure(m.onFailure), OnUnreachable: m.onUnreachable, Validate: m.validate}
	if m.timeout != 0 {
		out.Timeout = m.timeout.String()
	}
	return out, m.check()
}

// create returns the request for a new instance.
func (f *specFlags) create(in input) (*wire.InstanceCreate, error) {
	p, err := f.patch(in)
	if err != nil {
		return nil, err
	}
	p.InstanceEdit.Overrides, p.InstanceEdit.Labels = present(p.Overrides), present(p.Labels)
	return &wire.InstanceCreate{InstanceTarget: f.InstanceTarget, InstanceEdit: p.InstanceEdit, Execution: p.Execution, Strict: p.Strict}, nil
}

// patch returns the change of an instance with the given flags only.
func (f *specFlags) patch(in input) (*wire.InstancePatch, error) {
	out := &wire.InstancePatch{
		InstanceEdit: wire.InstanceEdit{Package: f.pkg, Description: f.description, Namespaces: f.namespaces, Volumes: f.volumes.all, Claims: nf.ClaimPolicy(f.claims), AAI: f.inventory.document(), Workloads: f.workloads.all},
		Overrides:    f.set.texts, Labels: f.labels.labels, Strict: f.strict,
	}
	if f.claims != "" && f.claims != claimsKeep && f.claims != wire.ClaimsDelete {
		return nil, usagef("--claims: must be keep or delete, got %q", f.claims)
	}
	var err error
	if out.Drift, err = f.drift.policy(); err != nil {
		return nil, err
	}
	if out.Networks, err = f.attach.read(in); err != nil {
		return nil, err
	}
	if out.Execution, err = f.execution.options(); err != nil {
		return nil, err
	}
	if out.Parameters, err = in.parameters(f.files, f.set); err != nil {
		return nil, err
	}
	return out, f.answers.read(in, &out.InstanceEdit)
}

// changeOptions holds the flags for waiting and for the confirmation of deletions.
type changeOptions struct {
	waiting waiting
	confirm confirmFlags
}

// waiting holds the flags for how long a command waits for its operation, and
// the operation for its objects.
type waiting struct {
	wait   string // ready or applied; empty: do not wait until the end
	noWait bool
}

// waitReady is the opposite of wire.WaitApplied.
const waitReady = "ready"

func (w *waiting) define(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.wait, "wait", "", "wait until every object is ready, and show progress; with applied, the operation itself ends when every object is applied")
	cmd.Flags().Lookup("wait").NoOptDefVal = waitReady
	cmd.Flags().BoolVar(&w.noWait, "no-wait", false, "return as soon as the operation is accepted")
	completeFlag(cmd, "wait", fixed(waitReady, wire.WaitApplied))
}

func (w *waiting) check() error {
	switch w.wait {
	case "true": // for compatibility: --wait was a boolean flag before
		w.wait = waitReady
	case "false":
		w.wait = ""
	case "", waitReady, wire.WaitApplied:
	default:
		return usagef("--wait: must be ready or applied, got %q", w.wait)
	}
	if w.wait == waitReady && w.noWait {
		return usagef("--wait and --no-wait are mutually exclusive")
	}
	return nil
}

const waitHelp = `

The command returns when every object is applied. With --wait it returns when
every object is ready, with --no-wait as soon as the operation is accepted. With
--wait=applied the operation itself ends when every object is applied, without
waiting until the objects are ready. An interrupt ends only the waiting; the
operation continues.`

func instanceCreate(s *session) *cobra.Command {
	var f specFlags
	var w waiting
	var place placementFlags
	var dry, adopt bool
	cmd := &cobra.Command{
		Use:     "create [NAME] --region REGION | --placement-... --package PACKAGE",
		Aliases: []string{"install"},
		Short:   "Create an instance of a package",
		Long: `Create an instance of a package in a namespace of a cloud region. With a flag that begins
with --placement, the server chooses the region; --dry-run shows which one, and why.

With --adopt, objects of the package that exist without an owner become the instance's,
and the package's content is applied to them; --dry-run shows which. If the creation is
undone, they get their former content again, and no owner.` + waitHelp,
		Example: `  k8splugin instance create fw-1 --region east --package firewall --set replicas=3
  k8splugin instance create --region east --package firewall -f values.yaml --wait
  k8splugin instance create fw-1 --region east --package firewall --adopt --dry-run`,
		Args: nameOrFlag,
	}
	f.define(s, cmd)
	w.define(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.Region, "region", "", "cloud region of the instance")
	flags.StringVarP(&f.Namespace, "namespace", "n", "", `namespace, created if missing (default: the region's, or "default")`)
	flags.StringVar(&f.Name, "name", "", "name, unique in its region and namespace")
	flags.StringVar(&f.Project, "project", "", `project of the instance (default "default")`)
	flags.StringVar(&f.Release, "release", "", "release name for a chart (default the instance's name, or its id if it has none)")
	flags.BoolVar(&adopt, "adopt", false, "adopt the objects of the package that exist without an owner")
	flags.BoolVar(&dry, "dry-run", false, "show the changes without making them")
	place.define(cmd)
	completeFlag(cmd, "region", s.ids(regions(), true))
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		placement := place.given(cmd)
		if (f.Region == "") == (placement == nil) || f.pkg == "" {
			return misused(cmd, errors.New("--package and either --region or --placement-… are required"))
		}
		f.Name = cmp.Or(strings.Join(args, ""), f.Name)
		body, err := f.create(s.in)
		if err != nil {
			return err
		}
		body.Placement, body.Adopt = placement, adopt
		r := ask(api.NewCreateVnfInstanceRequestWithBody(root, nil, jsonMedia, nil))
		if dry {
			return s.dryRun(ctx, c, r, body)
		}
		err = s.change(ctx, c, r, body, changeOptions{waiting: w})
		if adopt {
			return err
		}
		return adoptable(err)
	})
	return cmd
}

// adoptable adds to a conflict about objects how objects without an owner are adopted.
func adoptable(err error) error {
	if p, ok := errors.AsType[*problem](err); ok && p.Kind == nf.Conflict && slices.ContainsFunc(p.Errors, func(v wire.Violation) bool { return v.Object != nil }) {
		return advisedError{err, "to adopt objects that have no owner: --adopt; --adopt --dry-run shows which"}
	}
	return err
}

// nameOrFlag accepts a name as an argument, unless --name is given.
func nameOrFlag(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && cmd.Flags().Changed("name") {
		return misused(cmd, errors.New("give the name as an argument or with --name, not both"))
	}
	return cmp.Or(checkArgs(cmd, cobra.MaximumNArgs(1), args), checkNames(cmd, args))
}

// operationRequest is the body of a request that starts an operation on an
// instance.
type operationRequest interface {
	Options() *wire.Execution
}

// operation returns the id of the operation that the request started, or "".
func (a answer) operation() string {
	location := a.header.Get("Location")
	if !strings.Contains(location, "/operations/") {
		return ""
	}
	return idIn(location)
}

// idIn returns the last segment of a path, or "" if it is not a path.
func idIn(location string) string {
	id, err := url.PathUnescape(path.Base(location))
	if err != nil {
		return ""
	}
	return id
}

// change sends a request that starts an operation, waits as requested, and
// prints the resulting instance.
func (s *session) change(ctx context.Context, c *client, r request, body operationRequest, h changeOptions) error {
	a, op, err := s.begin(ctx, c, r, body, h)
	if err != nil {
		return err
	}
	if op.ID != "" {
		if a, err = c.call(ctx, ask(api.NewGetVnfInstanceRequest(root, op.Instance, nil))); err != nil {
			return err
		}
	}
	return s.out.printInstance(a)
}

// begin sends a request that starts an operation, and waits as requested. It
// returns the response and the operation's last state, which is zero if it did
// not wait.
func (s *session) begin(ctx context.Context, c *client, r request, body operationRequest, h changeOptions) (a answer, op operation, err error) {
	if err := h.waiting.check(); err != nil {
		return a, op, err
	}
	if h.waiting.wait == wire.WaitApplied {
		body.Options().Wait = wire.WaitApplied
	}
	r.respondAsync()
	if a, err = s.prompt.submit(ctx, c, r, body, h.confirm); err != nil {
		return a, op, err
	}
	id := a.operation()
	switch {
	case id == "" || h.waiting.noWait:
	case h.waiting.wait != "":
		op, err = s.watcher.follow(ctx, c, ask(api.NewFollowOperationRequest(root, id, nil)), ended, s.out.progress())
	default:
		op, err = s.watcher.follow(ctx, c, ask(api.NewFollowOperationRequest(root, id, nil)), applied, nil)
	}
	return a, op, err
}

// printInstance prints an instance as a row, and reports an operation that is
// still running on it.
func (pr *printer) printInstance(a answer) error {
	var i wire.Instance
	if err := a.decode(&i); err != nil {
		return err
	}
	pr.warn(i.Warnings...)
	if i.RunningOperation != "" && pr.format.people() {
		fmt.Fprintf(pr.stderr, "operation %s continues; to watch it: k8splugin operation watch %[1]s\n", i.RunningOperation)
	}
	return printOne(pr, a, instanceColumns)
}
