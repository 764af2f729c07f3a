package cli

import (
	"context"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

func keysCommand(s *session) *cobra.Command {
	return s.noun("keys", "Manage the keys that encrypt the store", keysStatus(s), keysReencrypt(s))
}

func keysStatus(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the keys and how many records each encrypts",
		Long:  "Show the keys and how many records each encrypts. A key that encrypts no record can be removed.",
		Args:  noArgs,
		RunE: s.run(func(ctx context.Context, c *client, _ []string) error {
			a, err := c.call(ctx, ask(api.NewGetKeysRequest(root)))
			if err != nil {
				return err
			}
			return s.out.printKeys(a)
		}),
	}
}

func keysReencrypt(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "reencrypt",
		Short: "Re-encrypt every record with the primary key",
		Args:  noArgs,
		RunE: s.run(func(ctx context.Context, c *client, _ []string) error {
			a, err := c.call(ctx, ask(api.NewReencryptStoreRequest(root, nil)))
			if err != nil {
				return err
			}
			return s.out.printKeys(a)
		}),
	}
}

func (pr *printer) printKeys(a answer) error {
	return pr.print(a, func(w io.Writer) error {
		var k wire.Keys
		if err := a.decode(&k); err != nil {
			return err
		}
		names := slices.Sorted(maps.Keys(k.Records))
		if _, listed := k.Records[k.Primary]; !listed {
			names = append(names, k.Primary)
		}
		return table(w, false, []column[string]{
			{"KEY", false, func(name string) string { return name }},
			{"PRIMARY", false, func(name string) string {
				if name == k.Primary {
					return "yes"
				}
				return ""
			}},
			{"RECORDS", false, func(name string) string { return strconv.Itoa(k.Records[name]) }},
		}, names)
	})
}
