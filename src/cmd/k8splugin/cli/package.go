package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func packageCommand(s *session) *cobra.Command {
	return s.noun("package", "Upload and look after packages",
		packagePush(s), packageList(s), packageShow(s), packagePull(s), packageLint(s),
		s.removal("Remove packages that no instance uses", packages()))
}

func packagePush(s *session) *cobra.Command {
	var id, project string
	cmd := &cobra.Command{
		Use:     "push DIR|FILE",
		Aliases: []string{"upload"},
		Short:   "Upload a package and print its csar_id",
		Long: `Upload a package: a zip or tar.gz, a chart (.tgz), or a folder with a
metadata.yaml or a Chart.yaml.

A folder is checked as by "package lint" and packed; two uploads of the same
files are the same bytes. Names that begin with a dot are left out, and what the
.helmignore of a chart names.`,
		Args: oneFile,
	}
	cmd.Flags().StringVar(&id, "id", "", "csar_id to give it, or to replace the content of")
	cmd.Flags().StringVar(&project, "project", "", `project that it belongs to (default "default")`)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		content, err := s.content(args[0])
		if err != nil {
			return err
		}
		defer content.Close()
		a, err := c.upload(ctx, id, project, content)
		if err != nil {
			return err
		}
		return s.printKept(a)
	})
	return cmd
}

// printKept prints the id of a package that the server has kept.
func (s *session) printKept(a answer) error {
	var p pkg
	if err := a.decode(&p); err != nil {
		return err
	}
	for _, w := range p.Warnings {
		s.warn(w)
	}
	return s.print(a, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, printable(p.ID))
		return err
	})
}

// content opens what is to be uploaded: a file as it is, or a folder checked
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
	if _, err := s.Lint(archive); err != nil {
		return nil, unfit(name, err)
	}
	return inMemory{bytes.NewReader(archive)}, nil
}

// source is what is uploaded: it can be read again.
type source interface {
	io.ReadCloser
	io.Seeker
}

// inMemory is a source that needs no closing.
type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }

// unfit makes the complaints of a check the error of a command.
func unfit(name string, err error) error {
	violations := nf.ViolationsOf(err)
	if len(violations) == 0 {
		return err
	}
	return &problem{Kind: nf.KindOf(err), Detail: "the package " + name + " is not fit to upload", Errors: violations}
}

// upload streams a package to the server.
func (c *client) upload(ctx context.Context, id, project string, content io.ReadSeeker) (answer, error) {
	head := make([]byte, 2)
	n, _ := io.ReadFull(content, head) // a shorter file is the server's to refuse
	media, _ := mediaType(head[:n])
	var body io.Reader = content
	if _, err := content.Seek(0, io.SeekStart); err != nil { // a pipe can be sent once
		body = io.MultiReader(bytes.NewReader(head[:n]), content)
	}
	r := request{
		method: http.MethodPost, path: at("packages"), query: url.Values{}, body: body,
		header: map[string]string{"Content-Type": media},
	}
	if project != "" {
		r.query.Set("project", project)
	}
	if id != "" {
		r.method, r.path = http.MethodPut, at("packages", id)
	}
	return c.call(ctx, r)
}

func packageLint(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "lint DIR|FILE",
		Short: "Check a package as an upload would, without a server",
		Long: `Check a package as an upload would, without a server.

Prints a line "file:line: message" for everything that is wrong or odd; the exit
code is 1 when something is wrong.`,
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			archive, err := archiveOf(args[0])
			if err != nil {
				return err
			}
			warnings, err := s.Lint(archive)
			violations := nf.ViolationsOf(err)
			if err != nil && len(violations) == 0 {
				return err
			}
			if err := s.printFindings(warnings, violations); err != nil {
				return err
			}
			if len(violations) > 0 {
				return errSilent
			}
			return nil
		},
	}
}

// printFindings prints what lint has found.
func (s *session) printFindings(warnings []string, violations nf.Violations) error {
	body, err := json.Marshal(map[string]any{
		"warnings": append([]string{}, warnings...),
		"errors":   append(nf.Violations{}, violations...),
	})
	if err != nil {
		return fmt.Errorf("cannot print the findings: %w", err)
	}
	return s.print(answer{body: body}, func(w io.Writer) error {
		for _, warning := range warnings {
			fmt.Fprintf(w, "warning: %s\n", printable(warning))
		}
		for _, v := range violations {
			fmt.Fprintln(w, printable(v.String()))
		}
		return nil
	})
}

// archiveOf returns a package's archive: a folder packed, or a file as it is.
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
	var q filters
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the packages",
		Args:  noArgs,
		RunE: s.run(func(ctx context.Context, c *client, _ []string) error {
			p, err := c.list(ctx, at("packages"), "packages", q.values())
			if err != nil {
				return err
			}
			return printAll(s, p, packageColumns(s))
		}),
	}
	q.project(cmd)
	q.pages(cmd)
	return cmd
}

func packageColumns(s *session) []column[pkg] {
	return []column[pkg]{
		{"ID", false, func(p pkg) string { return p.ID }},
		{"NAME", false, func(p pkg) string { return p.Name }},
		{"VERSION", false, func(p pkg) string { return p.Version }},
		{"SIZE", false, func(p pkg) string { return size(p.Size) }},
		{"AGE", false, func(p pkg) string { return s.age(p.Updated) }},
		{"PROJECT", true, func(p pkg) string { return p.Project }},
		{"KIND", true, func(p pkg) string { return p.Kind }},
		{"DIGEST", true, func(p pkg) string { return p.Digest }},
		{"DESCRIPTION", true, func(p pkg) string { return p.Description }},
	}
}

func packageShow(s *session) *cobra.Command {
	return &cobra.Command{
		Use:               "show ID",
		Short:             "Show a package, its variables and its files",
		Args:              oneName,
		ValidArgsFunction: s.ids(packages(), false),
		RunE: s.run(func(ctx context.Context, c *client, args []string) error {
			a, err := c.get(ctx, at("packages", args[0]), nil)
			if err != nil {
				return err
			}
			return s.print(a, func(w io.Writer) error { return s.describePackage(w, a) })
		}),
	}
}

func (s *session) describePackage(w io.Writer, a answer) error {
	var p pkg
	if err := a.decode(&p); err != nil {
		return err
	}
	list := []field{
		{"ID", p.ID}, {"Name", p.Name}, {"Version", p.Version}, {"Description", p.Description},
		{"Project", p.Project}, {"Kind", p.Kind}, {"Source", p.Source}, {"Size", size(p.Size)}, {"Digest", p.Digest},
		{"Used by", usersOf(p.Users, p.MoreUsers)},
		{"Created", s.stamp(p.Created)}, {"Updated", s.stamp(p.Updated)},
	}
	for _, warning := range p.Warnings {
		list = append(list, field{"Warning", warning})
	}
	if err := printFields(w, list); err != nil {
		return err
	}
	if len(p.Variables) > 0 {
		fmt.Fprintln(w)
		if err := table(w, true, variableColumns(), p.Variables); err != nil {
			return err
		}
	}
	if len(p.Files) > 0 {
		fmt.Fprintln(w, "\nFILES")
	}
	for _, name := range p.Files {
		fmt.Fprintln(w, oneLine(name))
	}
	return nil
}

func variableColumns() []column[variable] {
	return []column[variable]{
		{"VARIABLE", false, func(v variable) string { return v.Name }},
		{"TYPE", false, func(v variable) string { return v.Type }},
		{"DEFAULT", false, func(v variable) string {
			if v.Required {
				return "(required)"
			}
			return string(v.Default)
		}},
		{"DESCRIPTION", false, func(v variable) string {
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
		Short: "Download a package's archive, or have the server fetch a chart",
		Long: `Download a package's archive.

With the URL of a chart (oci://host/path/name, that of a chart repository with
--name, or that of an archive) the server fetches it from there and keeps it as
a package, whose csar_id is printed. Its operator must have allowed the host.`,
		Args:              oneName,
		ValidArgsFunction: s.ids(packages(), false),
	}
	chart.define(cmd)
	// Here -o is a file, as it is for curl and helm.
	cmd.Flags().StringVarP(&to, "output", "o", "", "file to write; - is standard output (default ID.zip or ID.tar.gz)")
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		if strings.Contains(args[0], "://") {
			return s.fetch(ctx, c, args[0], chart, to)
		}
		if chart != (chartFlags{}) {
			return usagef("%q is no URL: only --output is of use with a csar_id", args[0])
		}
		res, err := c.open(ctx, request{method: http.MethodGet, path: at("packages", args[0], "content")})
		if err != nil {
			return err
		}
		defer res.Body.Close()
		body := bufio.NewReader(res.Body)
		head, _ := body.Peek(2) // an error comes again with the first read
		if to == "" {
			_, extension := mediaType(head)
			to = filepath.Base(args[0]) + extension
		}
		return s.save(ctx, c, body, to)
	})
	return cmd
}

// save writes what was downloaded, and leaves no file behind that holds a part
// of it only.
func (s *session) save(ctx context.Context, c *client, body io.Reader, to string) error {
	if to == "-" {
		if _, err := io.Copy(s.Stdout, body); err != nil {
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
	_, err = fmt.Fprintln(s.Stdout, to)
	return err
}
