package cli

import (
	"context"
	"io"
	"net/url"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// idsOf returns the ids of the instances with the ids or names. Its error names each
// that does not exist.
func idsOf(ctx context.Context, s *session, c *client, names []string) ([]string, error) {
	var failed multiError
	var ids []string
	for _, name := range names {
		i, _, err := s.find(ctx, c, name)
		if err != nil {
			failed = append(failed, err)
		}
		ids = append(ids, i.ID)
	}
	return ids, failed.orNil()
}

// previewDelete prints the objects that the deletion of instances would delete, and
// those that would stay.
func previewDelete(ctx context.Context, s *session, c *client, names []string, query url.Values) error {
	ids, err := idsOf(ctx, s, c, names)
	if err != nil {
		return err
	}
	query.Set("dry_run", "true")
	all := preview{wire.Preview{Changes: []wire.Change{}, Warnings: []string{}}}
	for _, id := range ids {
		r := ask(api.NewDeleteVnfInstanceRequest(root, id, nil))
		r.query = query
		a, err := c.call(ctx, r)
		if err != nil {
			return err
		}
		var p wire.Preview
		if err := a.decode(&p); err != nil {
			return err
		}
		all.Changes, all.Warnings = append(all.Changes, p.Changes...), append(all.Warnings, p.Warnings...)
	}
	s.out.warn(all.Warnings...)
	return s.out.print(answer{body: jsonOf(all)}, func(w io.Writer) error {
		defer s.out.printSummary(all)
		return table(w, false, changeColumns(), all.Changes)
	})
}
