package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
)

// dryRun prints what a request would change.
func (s *session) dryRun(ctx context.Context, c *client, r request, body any) error {
	p, a, err := s.preview(ctx, c, r, body)
	if err != nil {
		return err
	}
	return s.out.print(a, func(w io.Writer) error {
		defer s.out.printSummary(p)
		return cmp.Or(table(w, false, changeColumns(), p.Changes), s.out.printPlacement(w, p.Placement))
	})
}

// printSummary prints the summary of a preview.
func (pr *printer) printSummary(p preview) {
	fmt.Fprintln(pr.stderr, p.summary())
	if p.Confirm != "" {
		fmt.Fprintf(pr.stderr, "to confirm the deletions: --confirm %s\n", printable(p.Confirm))
	}
}

// preview requests a dry run of a change.
func (s *session) preview(ctx context.Context, c *client, r request, body any) (preview, answer, error) {
	r.query = url.Values{"dry_run": {"true"}}
	var p preview
	a, err := c.submit(ctx, r, body)
	if err != nil {
		return p, a, err
	}
	if err := a.decode(&p); err != nil {
		return p, a, err
	}
	s.out.warn(p.Warnings...)
	return p, a, nil
}

// submit sends a request with its arguments: as a document, or in the query for
// methods without a body.
func (c *client) submit(ctx context.Context, r request, body any) (answer, error) {
	if r.method != http.MethodDelete {
		return c.send(ctx, r, body)
	}
	query := queryOf(body)
	maps.Copy(query, r.query)
	r.query = query
	return c.call(ctx, r)
}

// queryOf returns the fields of a document as query parameters.
func queryOf(document any) url.Values {
	var fields map[string]any
	_ = unmarshal(jsonOf(document), &fields) // what was encoded can be decoded
	out := url.Values{}
	for name, value := range fields {
		out.Set(name, fmt.Sprint(value))
	}
	return out
}
