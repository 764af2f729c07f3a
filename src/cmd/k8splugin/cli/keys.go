package cli

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
)

// keyStatus is what the store is sealed with.
type keyStatus struct {
	Primary string         `json:"primary"`
	Records map[string]int `json:"records"`
}

func keysCommand(s *session) *cobra.Command {
	return s.noun("keys", "Look after the keys that the store is sealed with", keysStatus(s), keysReseal(s))
}

func keysStatus(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show which keys there are, and how many records each seals",
		Long:  "Show which keys there are, and how many records each seals. One that seals none can be taken away.",
		Args:  noArgs,
		RunE: s.run(func(ctx context.Context, c *client, _ []string) error {
			a, err := c.get(ctx, at("keys"), nil)
			if err != nil {
				return err
			}
			return s.printKeys(a)
		}),
	}
}

func keysReseal(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "reseal",
		Short: "Seal every record with the primary key",
		Args:  noArgs,
		RunE: s.run(func(ctx context.Context, c *client, _ []string) error {
			a, err := c.call(ctx, request{method: http.MethodPost, path: at("keys", "reseal")})
			if err != nil {
				return err
			}
			return s.printKeys(a)
		}),
	}
}

func (s *session) printKeys(a answer) error {
	return s.print(a, func(w io.Writer) error {
		var k keyStatus
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
