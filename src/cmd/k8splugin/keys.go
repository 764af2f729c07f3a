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

	"github.com/multicloud-k8s/k8splugin/src/cmd/k8splugin/cli"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/seal"
)

// keyCommands returns the commands that edit the file with the store's
// encryption keys. A running service notices the change.
func keyCommands(p process) []*cobra.Command {
	edit := func(use, short string, do func(cmd *cobra.Command, file keyFile) error) *cobra.Command {
		cmd := &cobra.Command{
			Use: use + " FILE", Short: short, Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				endpoint := keyEndpoint(cmd, p)
				service, err := keyService(endpoint)
				if err != nil {
					return cli.Usage(fmt.Errorf("cannot use --%s: %w", kmsFlag, err))
				}
				return do(cmd, keyFile{args[0], endpoint, service})
			},
		}
		cmd.Flags().String(kmsFlag, "", kmsUsage)
		return cmd
	}
	initialize := edit("init", "Create a key file with one new key", func(cmd *cobra.Command, file keyFile) error {
		ring, err := seal.Generate()
		if err == nil {
			err = file.save(cmd.Context(), ring)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(p.stdout, "%s contains the new key %s. Records that it encrypts cannot be read without it: keep a copy elsewhere.\n", file.path, ring.IDs()[0])
		return nil
	})
	rotate := edit("rotate", "Add a new key and make it the primary key", func(cmd *cobra.Command, file keyFile) error {
		add, _ := cmd.Flags().GetBool("add")
		promote, _ := cmd.Flags().GetString("promote")
		return rotateKeys(cmd.Context(), p.stdout, file, add, promote)
	})
	rotate.Long = `Add a new key to the file and make it the primary key, which encrypts new records.
The old keys stay, for the records that they encrypted. "k8splugin keys reencrypt"
re-encrypts those records with the primary key, and "k8splugin keys prune" removes
the keys that no longer encrypt any record.

Replicas that do not get the file from a shared folder get it at different times.
For them: rotate --add FILE, wait until every replica has the file, and then
rotate --promote ID FILE.`
	rotate.Flags().Bool("add", false, "only add the key; --promote makes it the primary key later")
	rotate.Flags().String("promote", "", "id of a key in the file to make the primary key")
	rotate.MarkFlagsMutuallyExclusive("add", "promote")
	encrypt := edit("encrypt", "Encrypt a key file with a key management service", func(cmd *cobra.Command, file keyFile) error {
		return encryptKeys(cmd.Context(), p.stdout, file)
	})
	encrypt.Long = `Encrypt a plaintext key file with a key management service. If the file is
encrypted already, and the service has a newer key, encrypt it with that key.`
	decrypt := edit("decrypt", "Decrypt a key file that a key management service encrypts", func(cmd *cobra.Command, file keyFile) error {
		return decryptKeys(cmd.Context(), p.stdout, file)
	})
	return []*cobra.Command{initialize, rotate, encrypt, decrypt, pruneCommand(p)}
}

func rotateKeys(ctx context.Context, out io.Writer, file keyFile, add bool, promote string) error {
	ring, err := file.load(ctx)
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
		err = file.save(ctx, ring)
	}
	if err != nil {
		return err
	}
	if add {
		fmt.Fprintf(out, "%s now also contains the key %s. New records are still encrypted with key %s.\n", file.path, id, ring.IDs()[0])
		return nil
	}
	fmt.Fprintf(out, "New records are encrypted with key %s. `k8splugin keys reencrypt` re-encrypts the others.\n", id)
	return nil
}

// pruneCommand returns the command that removes unused keys. It reads the store
// itself, because a server reports only on the keys that it has.
func pruneCommand(p process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "prune", Short: "Remove the keys that encrypt no record", Args: cobra.NoArgs,
		Long: `Remove the keys that encrypt no record from the key file.

The command opens the store itself: stop a service that uses the embedded
database first.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withSecureStore(cmd, p, func(ctx context.Context, cfg Config, v *secureStore) error {
				status, err := v.encrypted.Status(ctx)
				if err != nil {
					return err
				}
				if len(status.Missing) > 0 || status.Plain > 0 {
					return nf.E(nf.Conflict, "prune", "the keys", fmt.Errorf("%d records are not encrypted, and the file lacks the keys %v of other records", status.Plain, status.Missing))
				}
				file := keyFile{path: cfg.keyFile(), endpoint: cfg.KMS}
				if file.service, err = keyService(cfg.KMS); err != nil {
					return err
				}
				ring, err := file.load(ctx)
				if err == nil {
					ring, err = ring.Prune(slices.Sorted(maps.Keys(status.Records))...)
				}
				if err == nil {
					err = file.save(ctx, ring)
				}
				if err == nil {
					fmt.Fprintf(p.stdout, "%s contains %s\n", cfg.keyFile(), ring)
				}
				return err
			})
		},
	}
	storeFlags(cmd.Flags())
	return cmd
}

// withSecureStore opens the configured store for a command.
func withSecureStore(cmd *cobra.Command, p process, do func(context.Context, Config, *secureStore) error) error {
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
