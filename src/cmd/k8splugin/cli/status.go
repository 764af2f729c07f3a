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
failed or are unhealthy, operations that wait or are overdue, occurrences that wait for
a decision, networks, volumes, network services and sites that have failed, and
notifications that were not delivered.

The exit code is 0 if nothing is wrong, and 1 otherwise. What you may not see is
omitted.`,
		Args: noArgs,
	}
	s.standAlone(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, _ []string) error {
		var found []trouble
		for _, look := range []check{
			s.regionTrouble, s.instanceTrouble, s.operationTrouble, occurrenceTrouble, failures(networkKind().all, networkTrouble), failures(volumeKind().all, volumeTrouble),
			failures(services(), serviceTrouble), failures(sites(), siteTrouble), s.deadLetterTrouble,
		} {
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
			out = append(out, trouble{Kind: "region", Name: r.ID, Problem: failure(problem, state.Message)})
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
			out = append(out, trouble{
				Kind: "instance", Name: cmp.Or(i.Name, i.ID), Where: i.Region + "/" + i.Namespace, Problem: failure(problem, cmp.Or(i.Message, i.HealthMessage)),
			})
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

// occurrenceTrouble finds the occurrences that are to be retried, rolled back or failed.
func occurrenceTrouble(ctx context.Context, c *client) (out []trouble, err error) {
	all, err := listAll[occurrence](ctx, c, occurrences(), url.Values{"filter": {equals("operationState", string(nf.OccurrenceFailedTemp))}})
	for _, o := range all {
		out = append(out, trouble{Kind: "occurrence", Name: o.ID, Problem: fmt.Sprintf("%s of VNF %s is %s", o.Operation, o.VNF, o.State)})
	}
	return out, err
}

// failures returns the check that finds the failed ones of a kind.
func failures[T any](from catalogue, as func(T) trouble) check {
	return func(ctx context.Context, c *client) (out []trouble, err error) {
		all, err := listAll[T](ctx, c, from, url.Values{"state": {"failed"}})
		for _, one := range all {
			out = append(out, as(one))
		}
		return out, err
	}
}

func networkTrouble(n wire.Network) trouble {
	return trouble{Kind: "network", Name: n.ID, Where: n.Region, Problem: failure(string(n.State), n.Message)}
}

func volumeTrouble(v wire.Volume) trouble {
	return trouble{Kind: "volume", Name: v.ID, Where: v.Region, Problem: failure(string(v.State), v.Message)}
}

func serviceTrouble(v wire.Service) trouble {
	return trouble{Kind: "service", Name: v.ID, Problem: failure(string(v.State), v.Message)}
}

func siteTrouble(v wire.Site) trouble {
	return trouble{Kind: "site", Name: v.ID, Problem: string(v.State)}
}

// failure describes a state with its reason, if that is known.
func failure(state, why string) string {
	if why == "" {
		return state
	}
	return state + ": " + why
}

func (s *session) deadLetterTrouble(ctx context.Context, c *client) (out []trouble, err error) {
	all, err := listAll[wire.DeadLetter](ctx, c, deadLetters(), nil)
	for _, l := range all {
		out = append(out, trouble{Kind: "notification", Name: l.ID, Problem: fmt.Sprintf("not delivered after %d attempts: %s", l.Attempts, lastResult(l))})
	}
	return out, err
}
