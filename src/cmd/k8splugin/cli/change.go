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
)

const mergePatch = "application/merge-patch+json"

// specFlags are the flags that say what an instance is to be, and how the
// change is carried out.
type specFlags struct {
	region, namespace, name string
	description             string
	pkg                     string
	files                   []string
	set                     values
	labels                  labelsFlag
	onFailure               string
	timeout                 time.Duration
}

func (f *specFlags) define(s *session, cmd *cobra.Command) {
	f.set = values{}
	flags := cmd.Flags()
	flags.StringVar(&f.pkg, "package", "", "csar_id of the package")
	flags.StringVar(&f.description, "description", "", "what the instance is for")
	flags.StringArrayVar(&f.files, "values", nil, "YAML or JSON file with parameters; - reads standard input")
	flags.Var(setFlag{f.set, typed}, "set", "a parameter: 3 is a number, true a boolean, [a, b] a list, anything else text")
	flags.Var(setFlag{f.set, textJSON}, "set-string", "a parameter that is text whatever it looks like")
	flags.Var(&f.labels, "label", "a label; may be given several times")
	flags.StringVar(&f.onFailure, "on-failure", "", "undo or keep what was done when the change fails (default undo)")
	flags.DurationVar(&f.timeout, "timeout", 0, "how long the whole operation may take, such as 10m")
	completeFlag(cmd, "package", s.ids(packages(), true))
	completeFlag(cmd, "on-failure", fixed("undo", "keep"))
}

// body is the request that the flags make: what was given, and nothing else.
func (f *specFlags) body(s *session) (map[string]any, error) {
	body := map[string]any{}
	for key, value := range map[string]string{
		"cloud_region_id": f.region, "namespace": f.namespace, "vnf_instance_name": f.name,
		"vnf_instance_description": f.description, "csar_id": f.pkg, "onFailure": f.onFailure,
	} {
		if value != "" {
			body[key] = value
		}
	}
	if f.onFailure != "" && f.onFailure != "undo" && f.onFailure != "keep" {
		return nil, usagef("--on-failure is undo or keep, not %q", f.onFailure)
	}
	if f.timeout != 0 {
		body["timeout"] = f.timeout.String()
	}
	parameters, err := s.parameters(f.files, f.set)
	if err != nil {
		return nil, err
	}
	if len(parameters) > 0 {
		body["parameters"] = parameters
	}
	if len(f.labels.labels) > 0 {
		body["labels"] = f.labels.labels
	}
	return body, nil
}

// waiting are the flags that say how long a command waits for its operation.
type waiting struct{ wait, noWait bool }

func (w *waiting) define(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&w.wait, "wait", false, "wait until every object is ready, and show how it comes along")
	cmd.Flags().BoolVar(&w.noWait, "no-wait", false, "return when the operation is accepted")
}

func (w waiting) check() error {
	if w.wait && w.noWait {
		return usagef("--wait and --no-wait exclude each other")
	}
	return nil
}

const waitHelp = `

The command returns when every object is applied; with --wait when every object
is ready, and with --no-wait at once. An interrupt ends the waiting only: the
operation goes on.`

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
		return s.change(ctx, c, r, body, w)
	})
	return cmd
}

// dryRun prints what a creation would do.
func (s *session) dryRun(ctx context.Context, c *client, r request, body map[string]any) error {
	p, a, err := s.preview(ctx, c, r, body)
	if err != nil {
		return err
	}
	return s.print(a, func(w io.Writer) error {
		defer fmt.Fprintln(s.Stderr, p.summary())
		return table(w, false, changeColumns(), p.Changes)
	})
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
func (s *session) change(ctx context.Context, c *client, r request, body map[string]any, w waiting) error {
	if err := w.check(); err != nil {
		return err
	}
	r.header = async()
	a, err := c.send(ctx, r, mediaOf(r), body)
	if err != nil {
		return err
	}
	id := a.operation()
	if id == "" || w.noWait {
		return s.printInstance(a)
	}
	var op operation
	if w.wait {
		op, err = s.follow(ctx, c, id, ended, s.progress())
	} else {
		op, err = s.follow(ctx, c, id, applied, nil)
	}
	if err != nil {
		return err
	}
	if a, err = c.get(ctx, at("vnf_instances", op.Instance), nil); err != nil {
		return err
	}
	return s.printInstance(a)
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
