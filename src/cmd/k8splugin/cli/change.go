package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const mergePatch = "application/merge-patch+json"

// specFlags are the flags that say what an instance is to be, and how the
// change is carried out.
type specFlags struct {
	region, namespace, name string
	description             string
	pkg                     string
	release                 string
	files                   []string
	set                     settings
	oof, network            []string
	labels                  labelsFlag
	namespaces              []string
	project                 string
	manner                  mannerFlags
}

func (f *specFlags) define(s *session, cmd *cobra.Command) {
	f.set = newSettings()
	flags := cmd.Flags()
	flags.StringVar(&f.pkg, "package", "", "csar_id of the package")
	flags.StringVar(&f.description, "description", "", "what the instance is for")
	defineValues(flags, &f.files, f.set)
	flags.StringArrayVar(&f.oof, "oof", nil, "YAML or JSON file with oof_parameters, a list of maps or one of them; may be given several times")
	flags.StringArrayVar(&f.network, "network", nil, "YAML or JSON file with network_parameters; may be given several times")
	flags.Var(&f.labels, "label", "a label; may be given several times")
	flags.StringSliceVar(&f.namespaces, "namespaces", nil, "further namespaces that objects may be in, separated by commas")
	f.manner.define(cmd)
	f.manner.defineOnFailure(cmd, "undo")
	completeFlag(cmd, "package", s.ids(packages(), true))
}

// defineValues defines the flags that give parameters.
func defineValues(flags *pflag.FlagSet, files *[]string, set settings) {
	flags.StringArrayVar(files, "values", nil, "YAML or JSON file with parameters; - reads standard input")
	flags.Var(setFlag{set, typed}, "set", "a parameter, or a.b=… inside one: 3 is a number, true a boolean, [a, b] a list, anything else text; a[0]=… of a chart is read as Helm does")
	flags.Var(setFlag{set, textJSON}, "set-string", "a parameter that is text whatever it looks like")
}

// mannerFlags are the flags that say how an operation is carried out.
type mannerFlags struct {
	onFailure, onUnreachable string
	timeout                  time.Duration
}

func (m *mannerFlags) define(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&m.timeout, "timeout", 0, "how long the whole operation may take, such as 10m")
	cmd.Flags().StringVar(&m.onUnreachable, "on-unreachable", "", "while the region cannot be reached, a running operation waits; when its time is over: fail, "+
		"or wait until the region is back (default fail). Changes are refused at once if the region cannot be reached when they are requested; removals and tests are not")
	completeFlag(cmd, "on-unreachable", fixed("fail", "wait"))
}

// defineOnFailure defines the flag of operations that can be undone.
func (m *mannerFlags) defineOnFailure(cmd *cobra.Command, otherwise string) {
	cmd.Flags().StringVar(&m.onFailure, "on-failure", "", "undo or keep what was done when the change fails (default "+otherwise+")")
	completeFlag(cmd, "on-failure", fixed("undo", "keep"))
}

func (m *mannerFlags) check() error {
	if m.onFailure != "" && m.onFailure != "undo" && m.onFailure != "keep" {
		return usagef("--on-failure is undo or keep, not %q", m.onFailure)
	}
	if m.onUnreachable != "" && m.onUnreachable != "fail" && m.onUnreachable != "wait" {
		return usagef("--on-unreachable is fail or wait, not %q", m.onUnreachable)
	}
	return nil
}

// into adds what was given to the body of a request.
func (m *mannerFlags) into(body map[string]any) error {
	if m.onFailure != "" {
		body["onFailure"] = m.onFailure
	}
	if m.onUnreachable != "" {
		body["on_unreachable"] = m.onUnreachable
	}
	if m.timeout != 0 {
		body["timeout"] = m.timeout.String()
	}
	return m.check()
}

// body is the request that the flags make: what was given, and nothing else.
func (f *specFlags) body(s *session) (map[string]any, error) {
	body := map[string]any{}
	for key, value := range map[string]string{
		"cloud_region_id": f.region, "namespace": f.namespace, "vnf_instance_name": f.name,
		"vnf_instance_description": f.description, "csar_id": f.pkg, "project": f.project, "release": f.release,
	} {
		if value != "" {
			body[key] = value
		}
	}
	if err := f.manner.into(body); err != nil {
		return nil, err
	}
	if err := f.inputs(s, body); err != nil {
		return nil, err
	}
	if len(f.labels.labels) > 0 {
		body["labels"] = f.labels.labels
	}
	if f.namespaces != nil { // an empty list takes them away
		body["namespaces"] = f.namespaces
	}
	return body, nil
}

// inputs adds the values that the flags and their files give.
func (f *specFlags) inputs(s *session, body map[string]any) error {
	parameters, err := s.parameters(f.files, f.set)
	if err != nil {
		return err
	}
	if len(parameters) > 0 {
		body["parameters"] = parameters
	}
	if len(f.set.texts) > 0 {
		body["set"] = f.set.texts
	}
	network, err := s.parameters(f.network, settings{})
	if err != nil {
		return err
	}
	if len(network) > 0 {
		body["network_parameters"] = network
	}
	oof, err := s.answers(f.oof)
	if err != nil {
		return err
	}
	if len(oof) > 0 {
		body["oof_parameters"] = oof
	}
	return nil
}

// how is how a change is carried out: how long it is waited for, and what it may
// take away.
type how struct {
	waiting
	consent
}

// waiting are the flags that say how long a command waits for its operation, and
// that for its objects.
type waiting struct {
	wait   string // ready or applied; empty: not to the end
	noWait bool
}

const waitReady, waitApplied = "ready", "applied"

func (w *waiting) define(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.wait, "wait", "", "wait until every object is ready, and show how it comes along; with --wait=applied the operation itself ends when every object is applied")
	cmd.Flags().Lookup("wait").NoOptDefVal = waitReady
	cmd.Flags().BoolVar(&w.noWait, "no-wait", false, "return when the operation is accepted")
	completeFlag(cmd, "wait", fixed(waitReady, waitApplied))
}

func (w *waiting) check() error {
	switch w.wait {
	case "true": // it was a flag without values
		w.wait = waitReady
	case "false":
		w.wait = ""
	case "", waitReady, waitApplied:
	default:
		return usagef("--wait is ready or applied, not %q", w.wait)
	}
	if w.wait == waitReady && w.noWait {
		return usagef("--wait and --no-wait exclude each other")
	}
	return nil
}

const waitHelp = `

The command returns when every object is applied; with --wait when every object
is ready, and with --no-wait at once. With --wait=applied nobody waits for the
objects to be ready, the operation neither. An interrupt ends the waiting only:
the operation goes on.`

func instanceCreate(s *session) *cobra.Command {
	var f specFlags
	var w waiting
	var dry bool
	cmd := &cobra.Command{
		Use:   "create --region REGION --package PACKAGE",
		Short: "Bring up an instance of a package",
		Long:  "Bring up an instance of a package in a namespace of a cloud region." + waitHelp,
		Args:  noArgs,
	}
	f.define(s, cmd)
	w.define(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.region, "region", "", "cloud region to bring it up in")
	flags.StringVar(&f.namespace, "namespace", "", `namespace, created when it is missing (default "default")`)
	flags.StringVar(&f.name, "name", "", "name, unique in its region and namespace")
	flags.StringVar(&f.project, "project", "", `project that it belongs to (default "default")`)
	flags.StringVar(&f.release, "release", "", "what a chart calls its release (default the instance's name, or else its id)")
	flags.BoolVar(&dry, "dry-run", false, "tell what would be done, and do nothing")
	completeFlag(cmd, "region", s.ids(regions(), true))
	cmd.RunE = s.run(func(ctx context.Context, c *client, _ []string) error {
		if f.region == "" || f.pkg == "" {
			return misused(cmd, errors.New("--region and --package are required"))
		}
		body, err := f.body(s)
		if err != nil {
			return err
		}
		r := request{method: http.MethodPost, path: at("vnf_instances")}
		if dry {
			return s.dryRun(ctx, c, r, body)
		}
		return s.change(ctx, c, r, body, how{waiting: w})
	})
	return cmd
}

// dryRun prints what a request would do.
func (s *session) dryRun(ctx context.Context, c *client, r request, body map[string]any) error {
	p, a, err := s.preview(ctx, c, r, body)
	if err != nil {
		return err
	}
	return s.print(a, func(w io.Writer) error {
		defer s.conclude(p)
		return table(w, false, changeColumns(), p.Changes)
	})
}

// conclude sums a preview up.
func (s *session) conclude(p preview) {
	fmt.Fprintln(s.Stderr, p.summary())
	if p.Confirm != "" {
		fmt.Fprintf(s.Stderr, "to confirm what is deleted: --confirm %s\n", printable(p.Confirm))
	}
}

// preview asks what a request would change.
func (s *session) preview(ctx context.Context, c *client, r request, body map[string]any) (preview, answer, error) {
	r.query = url.Values{"dry_run": {"true"}}
	var p preview
	a, err := c.send(ctx, r, mediaOf(r), body)
	if err != nil {
		return p, a, err
	}
	if err := a.decode(&p); err != nil {
		return p, a, err
	}
	for _, warning := range p.Warnings {
		s.warn(warning)
	}
	return p, a, nil
}

// submit sends a request with what it says: in a document or, where there is
// none, in the query.
func (c *client) submit(ctx context.Context, r request, body map[string]any) (answer, error) {
	if r.method != http.MethodDelete {
		return c.send(ctx, r, mediaOf(r), body)
	}
	r.query = url.Values{}
	for name, value := range body {
		r.query.Set(name, fmt.Sprint(value))
	}
	return c.call(ctx, r)
}

func mediaOf(r request) string {
	if r.method == http.MethodPatch {
		return mergePatch
	}
	return "application/json"
}

func async() map[string]string { return map[string]string{"Prefer": "respond-async"} }

// operation returns the id of the operation that an answer says was begun, or
// "".
func (a answer) operation() string {
	location := a.header.Get("Location")
	if !strings.Contains(location, "/operations/") {
		return ""
	}
	id, err := url.PathUnescape(path.Base(location))
	if err != nil {
		return ""
	}
	return id
}

// change sends a request that begins an operation, waits as long as was asked
// for, and prints the instance as it is then.
func (s *session) change(ctx context.Context, c *client, r request, body map[string]any, h how) error {
	a, op, err := s.begin(ctx, c, r, body, h)
	if err != nil {
		return err
	}
	if op.ID != "" {
		if a, err = c.get(ctx, at("vnf_instances", op.Instance), nil); err != nil {
			return err
		}
	}
	return s.printInstance(a)
}

// begin sends a request that begins an operation, waits as long as was asked
// for, and returns the answer and the operation as it is then: the zero one when
// nothing was waited for.
func (s *session) begin(ctx context.Context, c *client, r request, body map[string]any, h how) (a answer, op operation, err error) {
	if err := h.waiting.check(); err != nil {
		return a, op, err
	}
	if h.wait == waitApplied {
		body["wait"] = waitApplied
	}
	r.header = async()
	if a, err = s.ask(ctx, c, r, body, h.consent); err != nil {
		return a, op, err
	}
	id := a.operation()
	switch {
	case id == "" || h.noWait:
	case h.wait != "":
		op, err = s.follow(ctx, c, id, ended, s.progress())
	default:
		op, err = s.follow(ctx, c, id, applied, nil)
	}
	return a, op, err
}

// printInstance prints an answer that is about an instance as a row, and says
// when an operation on it goes on.
func (s *session) printInstance(a answer) error {
	var i instance
	if err := a.decode(&i); err != nil {
		return err
	}
	for _, warning := range i.Warnings {
		s.warn(warning)
	}
	if i.Operation != "" && s.output.people() {
		fmt.Fprintf(s.Stderr, "operation %s goes on\n", i.Operation)
	}
	return printOne(s, a, instanceColumns(s))
}
