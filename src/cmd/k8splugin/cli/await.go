package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// The conditions of wait, except state=STATE.
const (
	forReady   = "ready"
	forDeleted = "deleted"
)

func instanceWait(s *session) *cobra.Command {
	var until string
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "wait ID|NAME",
		Short: "Wait until an instance meets a condition",
		Long: `Wait until an instance is ready and healthy, or meets another condition: deleted, or
state=STATE. The command fails at once if the instance has failed and no operation
can change that.`,
		Example:           "  k8splugin instance wait fw-1 --for ready --timeout 2m",
		Args:              oneName,
		ValidArgsFunction: s.ids(instances(), false),
	}
	cmd.Flags().StringVar(&until, "for", forReady, "condition: ready, deleted, or state=STATE")
	cmd.Flags().DurationVar(&limit, "timeout", 5*time.Minute, "maximum time to wait")
	completeFlag(cmd, "for", fixed(forReady, forDeleted, "state=failed", "state=ready"))
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		state, named := strings.CutPrefix(until, "state=")
		if !named && !slices.Contains([]string{forReady, forDeleted}, until) {
			return usagef("--for: must be ready, deleted or state=STATE, got %q", until)
		}
		i, a, err := s.find(ctx, c, args[0])
		if until == forDeleted && ExitCode(err) == exitNotFound {
			return nil
		}
		if err != nil {
			return err
		}
		return s.await(ctx, c, i, a, waitFor{until, state, limit})
	})
	return cmd
}

// waitFor is a condition and the maximum time to wait for it.
type waitFor struct {
	until string
	state string // of state=STATE
	limit time.Duration
}

// met reports whether an instance that exists meets the condition. It returns an error
// if the instance cannot meet it any more.
func (w waitFor) met(i wire.Instance) (bool, error) {
	switch {
	case w.until == forDeleted:
		return false, nil
	case w.until != forReady:
		return string(i.State) == w.state, nil
	case i.State == nf.Broken && i.RunningOperation == "":
		return false, fmt.Errorf("instance %s has failed: %s", i.ID, i.Message)
	}
	return i.State == nf.Ready && i.Healthy != nil && *i.Healthy, nil
}

// await reads an instance until it meets a condition. It has been read already.
func (s *session) await(ctx context.Context, c *client, last wire.Instance, a answer, w waitFor) error {
	limited, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	for {
		met, err := w.met(last)
		if err != nil {
			return err
		}
		if met {
			return printOne(s.out, a, instanceColumns)
		}
		if !pause(limited, s.interval) {
			break
		}
		a, err = c.call(limited, ask(api.NewGetVnfInstanceRequest(root, last.ID, nil)))
		if limited.Err() != nil {
			break
		}
		if w.until == forDeleted && ExitCode(err) == exitNotFound {
			return nil
		}
		now := wire.Instance{}
		if err == nil {
			err = a.decode(&now)
		}
		if err != nil {
			return err
		}
		last = now
	}
	if ctx.Err() != nil {
		return &exitError{exitInterrupted, fmt.Errorf("interrupted; instance %s is %s", last.ID, last.State)}
	}
	return &exitError{exitTimeout, fmt.Errorf("timed out after %s: instance %s is %s, and its health is %s", w.limit, last.ID, last.State, oneLine(string(last.Health)))}
}

// watchList lists again at intervals and prints the rows that are new or have changed,
// until it is interrupted.
func watchList[T any](ctx context.Context, s *session, list func(context.Context) (page, error), columns func(clock) []column[T], seen page) error {
	rows := map[string]string{}
	remember := func(p page) (page, error) {
		items, err := decodeAll[T](p)
		changed := page{key: p.key, changed: true}
		next := map[string]string{}
		for i, item := range items {
			name := columns(s.out.clock)[0].cell(item)
			next[name] = string(p.items[i])
			if rows[name] != next[name] {
				changed.items = append(changed.items, p.items[i])
			}
		}
		for name := range rows {
			if _, ok := next[name]; !ok {
				fmt.Fprintf(s.out.stderr, "%s is deleted\n", printable(name))
			}
		}
		rows = next
		return changed, err
	}
	if _, err := remember(seen); err != nil {
		return err
	}
	s.out.noHeaders = true
	for pause(ctx, s.interval) {
		p, err := list(ctx)
		if err == nil {
			p, err = remember(p)
		}
		if err == nil && len(p.items) > 0 {
			err = printAll(s.out, p, columns)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return &exitError{exitInterrupted, errSilent}
}
