package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/seal"
)

// keyCommands edit the file of the keys that a store is sealed with. The service
// sees the change by itself.
func keyCommands(p process) []*cobra.Command {
	edit := func(use, short string, do func(cmd *cobra.Command, file string) error) *cobra.Command {
		return &cobra.Command{
			Use: use + " FILE", Short: short, Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error { return do(cmd, args[0]) },
		}
	}
	initialize := edit("init", "Make a key file with one new key", func(_ *cobra.Command, file string) error {
		ring, err := seal.Generate()
		if err == nil {
			err = ring.Save(file)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(p.stdout, "%s holds the new key %s. Without it nothing can be read that it seals: keep a copy elsewhere.\n", file, ring.IDs()[0])
		return nil
	})
	rotate := edit("rotate", "Add a new key to the file, and seal with it from now on", func(cmd *cobra.Command, file string) error {
		add, _ := cmd.Flags().GetBool("add")
		promote, _ := cmd.Flags().GetString("promote")
		return rotateKeys(p.stdout, file, add, promote)
	})
	rotate.Long = `Adds a new key to the file and makes it the one that new records are sealed with.
The old keys stay, for what they have sealed; "k8splugin keys reseal" seals that
anew, and "k8splugin keys prune" removes the keys that seal nothing any more.

Replicas that get the file by other ways than a shared folder get it at different
times. For them: rotate --add FILE, wait until every replica has the file, and
then rotate --promote ID FILE.`
	rotate.Flags().Bool("add", false, "only add the key: it becomes the primary with --promote")
	rotate.Flags().String("promote", "", "make this key of the file the primary")
	rotate.MarkFlagsMutuallyExclusive("add", "promote")
	return []*cobra.Command{initialize, rotate, pruneCommand(p)}
}

func rotateKeys(out io.Writer, file string, add bool, promote string) error {
	ring, err := seal.Load(file)
	if err != nil {
		return err
	}
	id := promote
	switch {
	case promote != "":
		ring, err = ring.Promote(promote)
	case add:
		ring, id, err = ring.Add()
	default:
		if ring, err = ring.Rotate(); err == nil {
			id = ring.IDs()[0]
		}
	}
	if err == nil {
		err = ring.Save(file)
	}
	if err != nil {
		return err
	}
	if add {
		fmt.Fprintf(out, "%s holds the key %s as well. New records are sealed with %s as before.\n", file, id, ring.IDs()[0])
		return nil
	}
	fmt.Fprintf(out, "New records are sealed with key %s. `k8splugin keys reseal` does the same to the others.\n", id)
	return nil
}

// pruneCommand removes the keys that seal nothing. It reads the store itself:
// what a server says counts for its own keys only.
func pruneCommand(p process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "prune", Short: "Remove the keys that seal nothing any more, with the service stopped or on an outside store", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withVault(cmd, p, func(ctx context.Context, cfg Config, v *vault) error {
				status, err := v.Status(ctx)
				if err != nil {
					return err
				}
				if len(status.Missing) > 0 || status.Plain > 0 {
					return nf.E(nf.Conflict, "prune", "the keys", fmt.Errorf("%d records are not sealed, and keys %v of others are not in the file", status.Plain, status.Missing))
				}
				ring, err := seal.Load(cfg.keyFile())
				if err == nil {
					ring, err = ring.Prune(slices.Sorted(maps.Keys(status.Records))...)
				}
				if err == nil {
					err = ring.Save(cfg.keyFile())
				}
				if err == nil {
					fmt.Fprintf(p.stdout, "%s holds %s\n", cfg.keyFile(), ring)
				}
				return err
			})
		},
	}
	configFlags(cmd.Flags())
	return cmd
}

// withVault opens the store of the configuration for a command.
func withVault(cmd *cobra.Command, p process, do func(context.Context, Config, *vault) error) error {
	cfg, err := loadConfig(cmd.Flags(), p.getenv)
	if err != nil {
		return err
	}
	v, err := openRaw(cmd.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return errors.Join(do(cmd.Context(), cfg, v), v.Close())
}
