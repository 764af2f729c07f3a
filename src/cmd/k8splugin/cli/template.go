package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// templateFlags hold what a package is rendered with.
type templateFlags struct {
	spec    specFlags
	secrets bool
}

func packageTemplate(s *session) *cobra.Command {
	var f templateFlags
	cmd := &cobra.Command{
		Use:   "template DIR|FILE|ID",
		Short: "Print the objects that would be applied",
		Long: `Print the objects of a package as they would be applied: a YAML document for each, in
order, with its stage, file and line. Hooks come last.

With --region, ID is a package on the server, and a dry run renders it for that
region. Without --region, the command renders the package itself, as for a region
with Helm's default capabilities: the lookup function finds nothing, and the
variables vnf_id, cloud_region_id and cloud_owner have their own names as values.
A folder or a file needs no server.

Secrets are masked, unless --show-secrets is given.`,
		Example: `  k8splugin package template ./firewall --set replicas=3
  k8splugin package template firewall --region east -n edge -f values.yaml`,
		Args:              oneFile,
		ValidArgsFunction: s.ids(packages(), false),
	}
	f.spec.set = newSettings()
	flags := cmd.Flags()
	defineValues(flags, &f.spec.files, f.spec.set)
	flags.StringArrayVar(&f.spec.answers.oof, "oof", nil, "YAML or JSON file with oof_parameters; can be repeated")
	flags.StringArrayVar(&f.spec.answers.network, "network", nil, "YAML or JSON file with network_parameters; can be repeated")
	flags.StringVar(&f.spec.Region, "region", "", "cloud region to render a package of the server for")
	flags.StringVarP(&f.spec.Namespace, "namespace", "n", "", `namespace (default: the region's, or "default")`)
	flags.StringVar(&f.spec.Name, "name", "", "name of the instance")
	flags.StringVar(&f.spec.Project, "project", "", `project of the instance (default "default")`)
	flags.StringVar(&f.spec.Release, "release", "", "release name for a chart (default the instance's name)")
	flags.BoolVar(&f.secrets, "show-secrets", false, "print secrets; without --region only")
	completeFlag(cmd, "region", s.ids(regions(), true))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return s.out.inFormat(printTemplate(cmd.Context(), s, args[0], f))
	}
	return cmd
}

// printTemplate prints the objects of a package on the server or in a file or folder.
func printTemplate(ctx context.Context, s *session, what string, f templateFlags) error {
	if f.spec.Region != "" {
		if f.secrets {
			return usagef("--show-secrets and --region are mutually exclusive")
		}
		return templateFor(ctx, s, what, f.spec)
	}
	archive, err := packageArchive(ctx, s, what)
	if err != nil {
		return err
	}
	body, err := f.spec.create(s.in)
	if err != nil {
		return err
	}
	name := cmp.Or(body.Name, "vnf-name")
	found, err := s.render(ctx, archive, nf.InstantiateRequest{
		Namespace: cmp.Or(body.Namespace, "default"), Name: name,
		Spec: nf.Spec{Release: cmp.Or(body.Release, name), Inputs: nf.Inputs{
			Parameters: body.Parameters, OOF: body.OOFParameters, Network: body.NetworkParameters, Overrides: body.Overrides,
		}},
	}, f.secrets)
	if violations := nf.ViolationsOf(err); len(violations) > 0 {
		return lintError{"cannot render package " + what, violations}
	}
	if err != nil {
		return err
	}
	shown := wire.PreviewOf(found).WithObjects(found.Manifests)
	return s.out.printObjects(answer{body: jsonOf(map[string]any{"objects": shown.Objects, "warnings": shown.Warnings})}, shown)
}

// packageArchive returns the archive of a folder or a file, or else of a package on the
// server.
func packageArchive(ctx context.Context, s *session, what string) ([]byte, error) {
	if _, err := os.Stat(what); err == nil || strings.Contains(what, "/") {
		return archiveOf(what)
	}
	c, err := s.connection.client(ctx)
	if err != nil {
		return nil, err
	}
	c.warnInsecure(s.out)
	a, err := c.call(ctx, ask(api.NewGetPackageContentRequest(root, what, nil)))
	return a.body, err
}

// templateFor prints the objects of a package as a dry run renders it for a region.
func templateFor(ctx context.Context, s *session, id string, f specFlags) error {
	if strings.Contains(id, "/") {
		return usagef("--region requires the id of a package on the server, got %q", id)
	}
	f.pkg = id
	body, err := f.create(s.in)
	if err != nil {
		return err
	}
	c, err := s.connection.client(ctx)
	if err != nil {
		return err
	}
	c.warnInsecure(s.out)
	r := ask(api.NewCreateVnfInstanceRequestWithBody(root, nil, jsonMedia, nil))
	r.query = url.Values{"dry_run": {"true"}, "objects": {"true"}}
	a, err := c.send(ctx, r, body)
	if err != nil {
		return err
	}
	var p wire.Preview
	if err := a.decode(&p); err != nil {
		return err
	}
	return s.out.printObjects(a, p)
}

// printObjects prints objects as YAML documents.
func (pr *printer) printObjects(a answer, p wire.Preview) error {
	pr.warn(p.Warnings...)
	return pr.print(a, func(w io.Writer) error {
		var out bytes.Buffer
		for _, m := range p.Objects {
			text, err := yaml.Marshal(m.Object)
			if err != nil {
				return fmt.Errorf("cannot print an object: %w", err)
			}
			fmt.Fprintf(&out, "---\n# %s\n%s", flat(origin(m)), text)
		}
		_, err := w.Write(out.Bytes())
		return err
	})
}

// origin returns "web.yaml:3, stage 2/2 deployment", or "hook.yaml:1, hook pre-install".
func origin(m wire.Manifest) string {
	text := m.File
	if m.Line > 0 {
		text += ":" + strconv.Itoa(m.Line)
	}
	if m.Stage != "" {
		return text + ", stage " + m.Stage
	}
	events := make([]string, len(m.Events))
	for i, event := range m.Events {
		events[i] = string(event)
	}
	return text + ", hook " + strings.Join(events, ",")
}
