package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/multicloud-k8s/k8splugin/src/declared"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// applyFlags holds the flags of apply.
type applyFlags struct {
	files     []string
	dry       bool
	prune     bool
	labels    []string
	execution executionFlags
	strict    bool
	change    changeOptions
}

// outcome is what apply has done with one declared object.
type outcome struct {
	Kind      declared.Kind `json:"kind"`
	Name      string        `json:"name"`
	Action    string        `json:"action"`
	Operation string        `json:"operation_id,omitempty"`
	Region    string        `json:"cloud_region_id,omitempty"` // of an instance that is declared with a placement
	Message   string        `json:"message,omitempty"`
}

// in says which region the server has chosen for an instance.
func (o *outcome) in(d declared.Instance, region string) {
	if d.Placement == nil || region == "" {
		return
	}
	o.Region, o.Message = region, strings.TrimPrefix(o.Message+", in region "+region, ", ")
}

// The actions of apply.
const (
	actionCreated    = "created"
	actionConfigured = "configured"
	actionUnchanged  = "unchanged"
	actionDeleted    = "deleted"
)

func applyCommand(s *session) *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Apply declared regions, packages and instances",
		Long: `Apply files that declare cloud regions, packages, VNF instances and network services:
what does not exist is created, and what differs is changed. Of an existing object, the declaration
replaces its labels, description and, for an instance, package and parameters. An
instance whose objects differ from its revision is applied again.

An instance is declared with a region, or with a placement. Then the server chooses the
region when it creates the instance, and the instance stays there.

Everything is checked before anything changes. Regions are applied first, then
packages, then instances, then network services.

With --prune, instances that --label selects and that are not declared are deleted.` + waitHelp + confirmHelp,
		Example: "  k8splugin apply -f lab.yaml --dry-run\n  k8splugin apply -f lab/ --prune --label site=lab --wait",
		Args:    noArgs,
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.files, "filename", "f", nil, "file, or folder with .yaml and .yml files; - reads standard input; can be repeated")
	flags.BoolVar(&f.dry, "dry-run", false, "show what would change, without changing anything")
	flags.BoolVar(&f.prune, "prune", false, "delete instances that are not declared; requires --label")
	flags.StringArrayVarP(&f.labels, "label", "l", nil, "label selector of the instances to prune; can be repeated")
	f.execution.define(cmd)
	f.execution.defineOnFailure(cmd, "undo")
	f.execution.defineValidate(cmd)
	defineStrict(cmd, &f.strict)
	f.change.waiting.define(cmd)
	f.change.confirm.define(cmd)
	s.standAlone(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, _ []string) error {
		switch {
		case len(f.files) == 0:
			return misused(cmd, errors.New("--filename is required"))
		case f.prune != (len(f.labels) > 0):
			return misused(cmd, errors.New("--prune and --label need each other"))
		}
		if err := cmp.Or(f.change.waiting.check(), f.execution.check()); err != nil {
			return err
		}
		set, err := s.declarations(f.files)
		if err != nil {
			return err
		}
		return s.apply(ctx, c, f, set)
	})
	return cmd
}

// declarations reads the files and folders of --filename.
func (s *session) declarations(names []string) (declared.Set, error) {
	var files []string
	for _, name := range names {
		about, err := os.Stat(name)
		switch {
		case name == "-":
			files = append(files, name)
		case err != nil:
			return declared.Set{}, fmt.Errorf("cannot read the declarations: %w", err)
		case about.IsDir():
			found, err := declarationsIn(name)
			if err != nil {
				return declared.Set{}, err
			}
			files = append(files, found...)
		default:
			files = append(files, name)
		}
	}
	set, err := declared.Read(s.in.readFile, files...)
	if found := nf.ViolationsOf(err); len(found) > 0 {
		return set, lintError{"the declarations are not valid", found}
	}
	return set, err
}

// declarationsIn returns the YAML files of a folder.
func declarationsIn(folder string) (files []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("cannot read the declarations: %w", err)
	}
	for _, e := range entries {
		if slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(e.Name())) && e.Type()&fs.ModeDir == 0 {
			files = append(files, filepath.Join(folder, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("folder %s contains no .yaml or .yml file", folder)
	}
	return files, nil
}

// apply applies declarations, and prints what it has done. It goes on with the other
// instances if one fails.
func (s *session) apply(ctx context.Context, c *client, f applyFlags, set declared.Set) error {
	a := applier{session: s, client: c, flags: f, set: set}
	err := a.all(ctx)
	if len(a.outcomes) == 0 && err != nil {
		return err
	}
	return cmp.Or(printAll(s.out, pageOf("results", a.outcomes), outcomeColumns), err)
}

func outcomeColumns(clock) []column[outcome] {
	return []column[outcome]{
		{"NAME", false, func(o outcome) string { return string(o.Kind) + "/" + o.Name }},
		{"ACTION", false, func(o outcome) string { return o.Action }},
		{"OPERATION", false, func(o outcome) string { return o.Operation }},
		{"MESSAGE", false, func(o outcome) string { return o.Message }},
	}
}
