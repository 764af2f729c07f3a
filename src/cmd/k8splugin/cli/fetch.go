package cli

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"
)

// chartFlags say which chart the server is to fetch, and as what it is kept.
type chartFlags struct {
	name, version, digest string
	username              string
	passwordStdin         bool
	id, project           string
}

func (f *chartFlags) define(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "of a URL: the chart's name in the repository")
	flags.StringVar(&f.version, "version", "", "of a URL: a version, or a range such as ^1.2 (default the highest release)")
	flags.StringVar(&f.digest, "digest", "", "of a URL: the SHA-256 that the chart must have")
	flags.StringVar(&f.username, "username", "", "of a URL: name that the server logs in there with")
	flags.BoolVar(&f.passwordStdin, "password-stdin", false, "of a URL: read the password from standard input; without --username, a token")
	flags.StringVar(&f.id, "id", "", "of a URL: csar_id to give it, or to replace the content of")
	flags.StringVar(&f.project, "project", "", `of a URL: project that it belongs to (default "default")`)
}

// fetch has the server fetch a chart, and prints the csar_id.
func (s *session) fetch(ctx context.Context, c *client, from string, f chartFlags, to string) error {
	if to != "" {
		return usagef("--output is for a csar_id: what the server fetches stays there")
	}
	if f.username != "" && !f.passwordStdin {
		return usagef("--username takes --password-stdin")
	}
	chart := map[string]any{"url": from}
	for name, value := range map[string]string{"name": f.name, "version": f.version, "digest": f.digest, "username": f.username} {
		if value != "" {
			chart[name] = value
		}
	}
	if f.passwordStdin {
		password, err := s.secret("-")
		if err != nil {
			return err
		}
		chart["password"] = password
	}
	body := map[string]any{"chart": chart}
	if f.project != "" {
		body["project"] = f.project
	}
	r := request{method: http.MethodPost, path: at("packages")}
	if f.id != "" {
		r.method, r.path = http.MethodPut, at("packages", f.id)
	}
	a, err := c.send(ctx, r, "application/json", body)
	if err != nil {
		return err
	}
	return s.printKept(a)
}
