package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// trouble is one thing that is wrong.
type trouble struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Where   string `json:"where,omitempty"`
	Problem string `json:"problem"`
}

// check is one search for trouble.
type check func(ctx context.Context, c *client) ([]trouble, error)

func statusCommand(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what is wrong right now",
		Long: `Show regions that are unreachable or whose credentials expire, instances that have
failed or are unhealthy, operations that wait or are overdue, sites that have failed,
and notifications that were not delivered.

The exit code is 0 if nothing is wrong, and 1 otherwise. What you may not see is
omitted.`,
		Args: noArgs,
	}
	s.standAlone(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, _ []string) error {
		var found []trouble
		for _, look := range []check{s.regionTrouble, s.instanceTrouble, s.operationTrouble, s.siteTrouble, s.deadLetterTrouble} {
			some, err := look(ctx, c)
			if err != nil && ExitCode(err) != exitNotAllowed {
				return err
			}
			found = append(found, some...)
		}
		return s.out.printTrouble(found)
	})
	return cmd
}

// printTrouble prints what is wrong. It returns errSilent if anything is.
func (pr *printer) printTrouble(found []trouble) error {
	if len(found) == 0 && pr.format.people() {
		_, err := fmt.Fprintln(pr.stdout, "nothing is wrong")
		return err
	}
	err := printAll(pr, pageOf("problems", found), func(clock) []column[trouble] {
		return []column[trouble]{
			{"NAME", false, func(t trouble) string { return t.Kind + "/" + t.Name }},
			{"WHERE", false, func(t trouble) string { return t.Where }},
			{"PROBLEM", false, func(t trouble) string { return t.Problem }},
		}
	})
	if err == nil && len(found) > 0 {
		return errSilent
	}
	return err
}

// listAll reads and decodes a collection.
func listAll[T any](ctx context.Context, c *client, from catalogue, query url.Values) ([]T, error) {
	p, err := c.list(ctx, from, query)
	if err != nil {
		return nil, err
	}
	return decodeAll[T](p)
}

func (s *session) regionTrouble(ctx context.Context, c *client) (out []trouble, err error) {
	all, err := listAll[wire.Region](ctx, c, regions(), nil)
	for _, r := range all {
		if state := stateOf(r); state.Condition == nf.RegionUnreachable || state.Condition == nf.RegionExpiring {
			problem := string(state.Condition)
			if since := s.out.clock.age(state.Since); since != "" {
				problem += " for " + since
			}
			if expires := credentialOf(r).Expires; state.Condition == nf.RegionExpiring && !expires.IsZero() {
				problem = "its credential expires " + s.out.clock.until(expires)
			}
			if state.Message != "" {
				problem += ": " + state.Message
			}
			out = append(out, trouble{Kind: "region", Name: r.ID, Problem: problem})
		}
	}
	return out, err
}

func (s *session) instanceTrouble(ctx context.Context, c *client) (out []trouble, err error) {
	seen := map[string]bool{}
	for _, query := range []url.Values{{"state": {string(nf.Broken)}}, {"health": {string(nf.Unhealthy)}}} {
		all, err := listAll[wire.Instance](ctx, c, instances(), query)
		if err != nil {
			return out, err
		}
		for _, i := range all {
			if seen[i.ID] {
				continue
			}
			seen[i.ID] = true
			problem := string(i.State)
			if i.State != nf.Broken {
				problem = string(i.Health)
			}
			if why := cmp.Or(i.Message, i.HealthMessage); why != "" {
				problem += ": " + why
			}
			out = append(out, trouble{Kind: "instance", Name: cmp.Or(i.Name, i.ID), Where: i.Region + "/" + i.Namespace, Problem: problem})
		}
	}
	return out, nil
}

func (s *session) operationTrouble(ctx context.Context, c *client) (out []trouble, err error) {
	all, err := listAll[operation](ctx, c, operations(), url.Values{"state": {string(nf.Running)}})
	for _, op := range all {
		problem := ""
		switch now := s.out.clock(); {
		case op.Waiting != nil:
			problem = op.waiting()
		case !op.Deadline.IsZero() && now.After(op.Deadline):
			problem = "overdue for " + short(now.Sub(op.Deadline))
		default:
			continue
		}
		out = append(out, trouble{Kind: "operation", Name: op.ID, Where: op.Region + "/" + op.Namespace, Problem: string(op.Verb) + " " + op.object() + ": " + problem})
	}
	return out, err
}

func (s *session) siteTrouble(ctx context.Context, c *client) (out []trouble, err error) {
	all, err := listAll[wire.Site](ctx, c, sites(), url.Values{"state": {string(nf.SiteFailed)}})
	for _, one := range all {
		out = append(out, trouble{Kind: "site", Name: one.ID, Problem: string(one.State)})
	}
	return out, err
}

func (s *session) deadLetterTrouble(ctx context.Context, c *client) (out []trouble, err error) {
	all, err := listAll[wire.DeadLetter](ctx, c, deadLetters(), nil)
	for _, l := range all {
		out = append(out, trouble{Kind: "notification", Name: l.ID, Problem: fmt.Sprintf("not delivered after %d attempts: %s", l.Attempts, lastResult(l))})
	}
	return out, err
}
