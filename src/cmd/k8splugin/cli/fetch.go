package cli

import (
	"context"

	"github.com/spf13/cobra"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// chartFlags holds the flags for the chart that the server fetches.
type chartFlags struct {
	wire.Chart

	passwordStdin bool
	id, project   string
}

func (f *chartFlags) define(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.Name, "name", "", "with a URL: name of the chart in the repository")
	flags.StringVar(&f.Version, "version", "", "with a URL: version of the chart, or a range such as ^1.2 (default the highest release)")
	flags.StringVar(&f.Digest, "digest", "", "with a URL: required SHA-256 of the chart")
	flags.StringVar(&f.Username, "username", "", "with a URL: user name that the server logs in with")
	flags.BoolVar(&f.passwordStdin, "password-stdin", false, "with a URL: read the password, or without --username a token, from standard input")
	flags.StringVar(&f.id, "id", "", "with a URL: csar_id of the new package, or of the package whose content is replaced")
	flags.StringVar(&f.project, "project", "", `with a URL: project of the package (default "default")`)
}

// fetch makes the server fetch a chart, and prints the csar_id.
func (s *session) fetch(ctx context.Context, c *client, from string, f chartFlags, to string) error {
	if to != "" {
		return usagef("--output requires a csar_id: a chart that the server fetches stays on the server")
	}
	if f.Username != "" && !f.passwordStdin {
		return usagef("--username requires --password-stdin")
	}
	f.URL = from
	if f.passwordStdin {
		var err error
		if f.Password, err = s.in.secret("-"); err != nil {
			return err
		}
	}
	r := ask(api.NewCreatePackageRequestWithBody(root, nil, jsonMedia, nil))
	if f.id != "" {
		r = ask(api.NewPutPackageRequestWithBody(root, f.id, nil, jsonMedia, nil))
	}
	a, err := c.send(ctx, r, wire.PackageCreate{Project: f.project, Chart: &f.Chart})
	if err != nil {
		return err
	}
	return s.out.printPackageID(a)
}
