package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"filippo.io/age"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/multicloud-k8s/k8splugin/src/cmd/k8splugin/cli"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/backup"
)

// backupCommands returns the commands that create, check and restore backups of any kind
// of store.
func backupCommands(p process) []*cobra.Command {
	return []*cobra.Command{createCommand(p), checkCommand(p), restoreCommand(p), identityCommand(p)}
}

// secrecyFlags defines the flags for a backup's recipient or, when reading, its
// identity.
func secrecyFlags(flags *pflag.FlagSet, reading bool) {
	flags.String("passphrase-file", "", "file with the passphrase of the backup")
	if reading {
		flags.String("identity-file", "", "file with the age identity (AGE-SECRET-KEY-1…) of the backup's recipient")
		return
	}
	flags.String("recipient", "", "age recipient (age1…) to encrypt the backup for")
	flags.String("recipients-file", "", "file with age recipients, one per line")
}

// storeFlags defines the settings of the service for a command that uses the store
// alone. Its help lists only those that say where the store is.
func storeFlags(flags *pflag.FlagSet) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	configFlags(all)
	all.VisitAll(func(f *pflag.Flag) {
		f.Hidden = !slices.Contains([]string{"config", "data", "store", "store-quota", "encryption-key-file", kmsFlag}, f.Name)
	})
	flags.AddFlagSet(all)
}

func createCommand(p process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "create FILE", Short: "Write the whole store to an encrypted file", Args: cobra.ExactArgs(1),
		Long: `Write every record of the store to a file that only its recipients can read.

The command opens the store itself: stop a service that uses the embedded
database first. With MongoDB, stop all replicas first; otherwise, the backup may
have records of different moments. With etcd, "backup download" gets a backup of
a running service.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withSecureStore(cmd, p, func(ctx context.Context, _ Config, v *secureStore) error {
				summary, err := writeBackup(ctx, cmd.Flags(), v, args[0])
				if err == nil {
					fmt.Fprintf(p.stdout, "%s contains %d records.\n", args[0], summary.Records)
				}
				return err
			})
		},
	}
	storeFlags(cmd.Flags())
	secrecyFlags(cmd.Flags(), false)
	return cmd
}

func checkCommand(p process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "check FILE", Short: "Check that a backup is complete and readable", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return readBackup(cmd.Flags(), args[0], func(r *os.File, ids []age.Identity) error {
				summary, err := backup.Check(cmd.Context(), r, ids...)
				if err == nil {
					fmt.Fprintf(p.stdout, "%s is complete: %d records.\n", args[0], summary.Records)
				}
				return err
			})
		},
	}
	secrecyFlags(cmd.Flags(), true)
	return cmd
}

func restoreCommand(p process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Restore a backup into an empty store", Args: cobra.ExactArgs(1),
		Long: `Check the whole backup, and then write its records to the store. The store must
be empty, or is emptied with --replace. It may be of another kind than the store
that the backup was created from. Stop all replicas of the service first: with an
external store, the command does not detect running ones.

The service resumes the operations that had not ended when the backup was created.
Never restore a copy for a test where it can reach the real regions.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withSecureStore(cmd, p, func(ctx context.Context, _ Config, v *secureStore) error {
				return readBackup(cmd.Flags(), args[0], func(r *os.File, ids []age.Identity) error {
					cfg := v.backup()
					cfg.Replace, _ = cmd.Flags().GetBool("replace")
					summary, err := backup.Restore(ctx, cfg, r, ids...)
					if err == nil {
						fmt.Fprintf(p.stdout, "Restored %d records.\n", summary.Records)
					}
					return err
				})
			})
		},
	}
	storeFlags(cmd.Flags())
	secrecyFlags(cmd.Flags(), true)
	cmd.Flags().Bool("replace", false, "delete all records of the store first")
	return cmd
}

func identityCommand(p process) *cobra.Command {
	return &cobra.Command{
		Use: "identity FILE", Short: "Create a key pair for backups", Args: cobra.ExactArgs(1),
		Long: "Create a key pair for backups: write the identity to FILE, and print the recipient.",
		RunE: func(_ *cobra.Command, args []string) error {
			secret, public, err := backup.NewIdentity()
			if err != nil {
				return err
			}
			if err := newSecretFile(args[0], append(secret, '\n')); err != nil {
				return fmt.Errorf("cannot save the identity: %w", err)
			}
			fmt.Fprintln(p.stdout, public)
			return nil
		},
	}
}

// writeBackup writes a backup to a temporary file, and renames it when it is
// complete.
func writeBackup(ctx context.Context, flags *pflag.FlagSet, v *secureStore, name string) (backup.Summary, error) {
	to, err := recipientsOf(flags)
	if err != nil {
		return backup.Summary{}, err
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return backup.Summary{}, fmt.Errorf("cannot write the backup: %w", err)
	}
	summary, err := backup.Write(ctx, v.backup(), f, to...)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return summary, errors.Join(err, os.Remove(f.Name()))
	}
	return summary, nil
}

// readBackup opens a backup and the secret that decrypts it.
func readBackup(flags *pflag.FlagSet, name string, do func(*os.File, []age.Identity) error) error {
	ids, err := identitiesOf(flags)
	if err != nil {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("cannot read the backup: %w", err)
	}
	return errors.Join(do(f, ids), f.Close())
}

func recipientsOf(flags *pflag.FlagSet) ([]age.Recipient, error) {
	one, _ := flags.GetString("recipient")
	file, _ := flags.GetString("recipients-file")
	passphrase, _ := flags.GetString("passphrase-file")
	switch {
	case one != "" && file == "" && passphrase == "":
		return backup.Recipients(one)
	case file != "" && one == "" && passphrase == "":
		text, err := secretFile(file)
		if err != nil {
			return nil, err
		}
		return backup.Recipients(string(text))
	case passphrase != "" && one == "" && file == "":
		text, err := secretFile(passphrase)
		if err != nil {
			return nil, err
		}
		to, err := backup.ToPassphrase(text)
		return []age.Recipient{to}, err
	}
	return nil, cli.Usage(errors.New("cannot encrypt the backup: give exactly one of --recipient, --recipients-file and --passphrase-file"))
}

func identitiesOf(flags *pflag.FlagSet) ([]age.Identity, error) {
	file, _ := flags.GetString("identity-file")
	passphrase, _ := flags.GetString("passphrase-file")
	switch {
	case file != "" && passphrase == "":
		text, err := secretFile(file)
		if err != nil {
			return nil, err
		}
		return backup.Identities(text)
	case passphrase != "" && file == "":
		text, err := secretFile(passphrase)
		if err != nil {
			return nil, err
		}
		from, err := backup.FromPassphrase(text)
		return []age.Identity{from}, err
	}
	return nil, cli.Usage(errors.New("cannot decrypt the backup: give exactly one of --identity-file and --passphrase-file"))
}

// secretFile reads a secret, without trailing line breaks, which editors add.
func secretFile(name string) (nf.Secret, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the secret: %w", err)
	}
	return bytes.TrimRight(text, "\r\n"), nil
}
