package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// versions are the versions of the client and, if it was asked, of the server.
type versions struct {
	Client wire.Version  `json:"client"`
	Server *wire.Version `json:"server,omitempty"`
}

func versionCommand(s *session) *cobra.Command {
	var alone bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of the client and the server",
		Long: `Show the versions of the client and the server. If the server cannot be reached, the
command prints the version of the client, and fails.`,
		Example: "  k8splugin version --client",
		Args:    noArgs,
	}
	s.standAlone(cmd)
	cmd.Flags().BoolVar(&alone, "client", false, "show the version of the client only, without a server")
	asked := s.run(func(ctx context.Context, c *client, _ []string) error {
		v, failed := versions{Client: wire.Version{Version: s.version}}, error(nil)
		if v.Server, failed = c.version(ctx); failed != nil && !s.out.format.people() {
			return failed
		}
		if err := s.out.printVersions(v); err != nil {
			return err
		}
		return failed
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if alone {
			return s.out.inFormat(s.out.printVersions(versions{Client: wire.Version{Version: s.version}}))
		}
		return asked(cmd, args)
	}
	return cmd
}

// version returns the server's version. Servers up to 0.1.0 do not report it.
func (c *client) version(ctx context.Context) (*wire.Version, error) {
	a, err := c.call(ctx, ask(api.NewGetVersionRequest(root)))
	switch {
	case ExitCode(err) == exitNotFound:
		return &wire.Version{Version: "unknown: 0.1.0 or earlier"}, nil
	case err != nil:
		return nil, err
	}
	v := &wire.Version{}
	return v, a.decode(v)
}

func (pr *printer) printVersions(v versions) error {
	return pr.print(answer{body: jsonOf(v)}, func(w io.Writer) error {
		list := []field{{"Client", v.Client.Version}}
		if v.Server != nil {
			list = append(list, field{"Server", v.Server.Version})
		}
		return printFields(w, list)
	})
}
