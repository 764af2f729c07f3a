package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

func packageCommand(s *session) *cobra.Command {
	return s.noun("package", "Upload and manage packages",
		packageCreate(s), packagePush(s), packageList(s), packageShow(s), packageEnable(s), packageDisable(s), packagePull(s), packageLint(s), packageTemplate(s), packageTranslate(s),
		s.deleteCommand("Delete packages that no instance uses", packages()))
}

func packagePush(s *session) *cobra.Command {
	var id, project string
	cmd := &cobra.Command{
		Use:     "push DIR|FILE",
		Aliases: []string{"upload"},
		Short:   "Upload a package and print its csar_id",
		Long: `Upload a package: a zip or tar.gz, a chart (.tgz), or a folder with a
metadata.yaml or a Chart.yaml.

The command checks a folder as "package lint" does, and packs it. The same files
always produce the same archive. Files whose names begin with a dot are omitted,
and so are the files that a chart's .helmignore lists.

Without --id, the csar_id of a folder is the name that its metadata.yaml or
Chart.yaml declares, and a package with that id must not exist. An archive gets a
random id.`,
		Example: `  k8splugin package push ./firewall
  k8splugin package push firewall.zip --id firewall`,
		Args: oneFile,
	}
	cmd.Flags().StringVar(&id, "id", "", "csar_id of the new package, or of the package whose content is replaced")
	cmd.Flags().StringVar(&project, "project", "", `project of the package (default "default")`)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		content, err := s.content(args[0])
		if err != nil {
			return err
		}
		defer content.Close()
		if packed, ok := content.(packedFolder); ok && id == "" && packed.declared != "" {
			if id, err = c.unused(ctx, packed.declared); err != nil {
				return err
			}
		}
		a, err := c.upload(ctx, id, project, content)
		if err != nil {
			return err
		}
		return s.out.printPackageID(a)
	})
	return cmd
}

// unused returns an error if a package has the id.
func (c *client) unused(ctx context.Context, id string) (string, error) {
	_, err := c.call(ctx, ask(api.NewGetPackageRequest(root, id)))
	switch {
	case err == nil:
		return "", &exitError{exitConflict, fmt.Errorf("package %s exists; to replace its content, give --id %[1]s; for another package, give another id", id)}
	case ExitCode(err) != exitNotFound:
		return "", err
	}
	return id, nil
}

// printPackageID prints the id of an uploaded package.
func (pr *printer) printPackageID(a answer) error {
	var p wire.Package
	if err := a.decode(&p); err != nil {
		return err
	}
	pr.warn(p.Warnings...)
	return pr.print(a, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, printable(p.ID))
		return err
	})
}

// content opens the content to upload: a file as it is, or a folder, checked
// and packed.
func (s *session) content(name string) (source, error) {
	about, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the package: %w", err)
	}
	if !about.IsDir() {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("cannot read the package: %w", err)
		}
		return f, nil
	}
	archive, err := pack(name)
	if err != nil {
		return nil, err
	}
	declared, _, err := s.lint(archive)
	if found := nf.ViolationsOf(err); len(found) > 0 {
		return nil, lintError{"package " + name + " is not valid", found}
	}
	if err != nil {
		return nil, err
	}
	return packedFolder{bytes.NewReader(archive), declared}, nil
}

// source is content to upload. It can be read again.
type source interface {
	io.ReadCloser
	io.Seeker
}

// packedFolder is the archive of a folder, in memory.
type packedFolder struct {
	io.ReadSeeker

	declared string // the name that the package declares
}

func (packedFolder) Close() error { return nil }

// lintError is the error of a folder that lint rejects. Report prints a line for
// each violation.
type lintError struct {
	text  string
	found nf.Violations
}

func (e lintError) Error() string { return e.text }
func (e lintError) Unwrap() error { return e.found }

// upload streams a package to the server.
func (c *client) upload(ctx context.Context, id, project string, content io.ReadSeeker) (answer, error) {
	head := make([]byte, 2)
	n, _ := io.ReadFull(content, head) // the server rejects a file that is too short
	media, _ := mediaType(head[:n])
	var body io.Reader = content
	if _, err := content.Seek(0, io.SeekStart); err != nil { // a pipe can be sent only once
		body = io.MultiReader(bytes.NewReader(head[:n]), content)
	}
	r := ask(api.NewCreatePackageRequestWithBody(root, nil, media, nil))
	if id != "" {
		r = ask(api.NewPutPackageRequestWithBody(root, id, nil, media, nil))
	}
	if r.body = body; project != "" {
		r.query.Set("project", project)
	}
	return c.call(ctx, r)
}

func packageLint(s *session) *cobra.Command {
	f := specFlags{set: newSettings()}
	var strict bool
	cmd := &cobra.Command{
		Use:   "lint DIR|FILE",
		Short: "Check a package without a server",
		Long: `Check a package as an upload does, but without a server.

A chart is also rendered, with its default values and those of --values and --set. If
a template requires a value that is missing, the command prints a warning, and does not
check the objects. Other packages are rendered if values are given.

The command prints one line for each error, "file:line: message", and for each
warning, "warning: message". The exit code is 1 if there is an error, or with --strict a
warning.`,
		Example: "  k8splugin package lint ./firewall\n  k8splugin package lint ./chart -f values.yaml --strict",
		Args:    oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			archive, err := archiveOf(args[0])
			if err != nil {
				return err
			}
			body, err := f.create(s.in)
			if err != nil {
				return err
			}
			warnings, err := s.check(cmd.Context(), archive, nf.Inputs{Parameters: body.Parameters, Overrides: body.Overrides})
			violations := nf.ViolationsOf(err)
			if err != nil && len(violations) == 0 {
				return err
			}
			if err := s.out.printFindings(warnings, violations); err != nil {
				return err
			}
			if len(violations) > 0 || strict && len(warnings) > 0 {
				return errSilent
			}
			return nil
		},
	}
	defineValues(cmd.Flags(), &f.files, f.set)
	cmd.Flags().BoolVar(&strict, "strict", false, "fail if there are warnings")
	return cmd
}

// printFindings prints lint's results.
func (pr *printer) printFindings(warnings []string, violations nf.Violations) error {
	body, err := json.Marshal(map[string]any{
		"warnings": append([]string{}, warnings...),
		"errors":   append([]wire.Violation{}, wire.ViolationsOf(violations)...),
	})
	if err != nil {
		return fmt.Errorf("cannot print the findings: %w", err)
	}
	return pr.print(answer{body: body}, func(w io.Writer) error {
		for _, warning := range warnings {
			fmt.Fprintf(w, "warning: %s\n", printable(warning))
		}
		for _, v := range violations {
			fmt.Fprintln(w, printable(v.String()))
		}
		return nil
	})
}

// archiveOf returns a package's archive: a packed folder, or a file as it is.
func archiveOf(name string) ([]byte, error) {
	about, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the package: %w", err)
	}
	if about.IsDir() {
		return pack(name)
	}
	archive, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the package: %w", err)
	}
	return archive, nil
}

func packageList(s *session) *cobra.Command {
	cmd, q := listCommand(s, "List packages", packages(), packageColumns)
	q.project(cmd)
	q.pages(cmd)
	return cmd
}

func packageColumns(now clock) []column[wire.Package] {
	return []column[wire.Package]{
		{"ID", false, func(p wire.Package) string { return p.ID }},
		{"NAME", false, func(p wire.Package) string { return p.Name }},
		{"VERSION", false, func(p wire.Package) string { return p.Version }},
		{"STATE", false, packageState},
		{"SIZE", false, packageSize},
		{"AGE", false, func(p wire.Package) string { return now.age(p.Updated) }},
		{"PROJECT", true, func(p wire.Package) string { return p.Project }},
		{"KIND", true, func(p wire.Package) string { return p.Kind }},
		{"DIGEST", true, func(p wire.Package) string { return p.Digest }},
		{"DESCRIPTION", true, func(p wire.Package) string { return p.Description }},
	}
}

// packageSize returns the size of a package's archive, or "" if it has none.
func packageSize(p wire.Package) string {
	if p.State == nf.PackageCreated {
		return ""
	}
	return size(p.Size)
}

func packageShow(s *session) *cobra.Command {
	return s.showCommand("show ID", "Show a package, its variables and its files", packages(), s.out.describePackage)
}

func (pr *printer) describePackage(w io.Writer, a answer) error {
	var p wire.Package
	if err := a.decode(&p); err != nil {
		return err
	}
	list := []field{
		{"ID", p.ID}, {"Name", p.Name}, {"Version", p.Version}, {"Description", p.Description},
		{"Project", p.Project}, {"State", packageState(p)}, {"Kind", p.Kind}, {"Source", p.Source}, {"Deleted in SDC", pr.clock.stamp(p.Withdrawn)}, {"Size", packageSize(p)}, {"Digest", p.Digest},
		{"Used by", usersOf(p.VNFInstances, p.More)},
		{"Created", pr.clock.stamp(p.Created)}, {"Updated", pr.clock.stamp(p.Updated)},
	}
	if len(p.UserData) > 0 {
		list = append(list, field{"User data", string(jsonOf(p.UserData))})
	}
	for _, warning := range p.Warnings {
		list = append(list, field{"Warning", warning})
	}
	if err := printFields(w, list); err != nil {
		return err
	}
	if err := section(w, true, p.Variables, variableColumns()); err != nil {
		return err
	}
	if len(p.Files) > 0 {
		fmt.Fprintln(w, "\nFILES")
	}
	for _, name := range p.Files {
		fmt.Fprintln(w, oneLine(name))
	}
	return nil
}

func variableColumns() []column[wire.Variable] {
	return []column[wire.Variable]{
		{"VARIABLE", false, func(v wire.Variable) string { return v.Name }},
		{"TYPE", false, func(v wire.Variable) string { return v.Type }},
		{"DEFAULT", false, func(v wire.Variable) string {
			switch {
			case v.Required:
				return "(required)"
			case v.Default == nil:
				return ""
			}
			return string(jsonOf(v.Default))
		}},
		{"DESCRIPTION", false, func(v wire.Variable) string {
			if v.Sensitive {
				return strings.TrimSpace(v.Description + " (sensitive)")
			}
			return v.Description
		}},
	}
}

func packagePull(s *session) *cobra.Command {
	var to string
	var chart chartFlags
	cmd := &cobra.Command{
		Use:   "pull ID|URL",
		Short: "Download a package, or fetch a chart to the server",
		Long: `Download a package's archive.

With the URL of a chart, the server fetches the chart, stores it as a package and
prints the csar_id of that package. The URL is oci://host/path/name, the URL of a
chart repository with --name, or the URL of an archive. The server's operator
must have allowed the host.`,
		Example: `  k8splugin package pull firewall --output firewall.zip
  k8splugin package pull oci://registry.example.com/charts/web --version ^1.2 --id web`,
		Args:              oneName,
		ValidArgsFunction: s.ids(packages(), false),
	}
	chart.define(cmd)
	// Here -o is a file, as in curl and helm.
	cmd.Flags().StringVarP(&to, "output", "o", "", "output file; - writes to standard output (default ID.zip or ID.tar.gz)")
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		if strings.Contains(args[0], "://") {
			return s.fetch(ctx, c, args[0], chart, to)
		}
		if chart != (chartFlags{}) {
			return usagef("%q is not a URL: with a csar_id only --output is allowed", args[0])
		}
		res, err := c.open(ctx, ask(api.NewGetPackageContentRequest(root, args[0], nil)))
		if err != nil {
			return err
		}
		defer res.Body.Close()
		body := bufio.NewReader(res.Body)
		head, _ := body.Peek(2) // the first read returns the error again
		if to == "" {
			_, extension := mediaType(head)
			to = filepath.Base(args[0]) + extension
		}
		return s.out.save(ctx, c, body, to)
	})
	return cmd
}

// save writes downloaded content. It leaves no incomplete file behind.
func (pr *printer) save(ctx context.Context, c *client, body io.Reader, to string) error {
	if to == "-" {
		if _, err := io.Copy(pr.stdout, body); err != nil {
			return c.lost(ctx, err)
		}
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(to), ".pull-*")
	if err != nil {
		return fmt.Errorf("cannot write the package: %w", err)
	}
	_, err = io.Copy(f, body)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), to)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("cannot download the package: %w", err), os.Remove(f.Name()))
	}
	_, err = fmt.Fprintln(pr.stdout, to)
	return err
}
