package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"filippo.io/age"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/multicloud-k8s/k8splugin/src/cmd/k8splugin/cli"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/backup"
)

// backupCommand takes and restores backups of the store, whatever its kind.
func backupCommand(p process) *cobra.Command {
	root := &cobra.Command{Use: "backup", Short: "Take, check and restore encrypted backups of the store", Args: cobra.NoArgs}
	root.AddCommand(createCommand(p), checkCommand(p), restoreCommand(p), identityCommand(p))
	return root
}

// secrecyFlags say for whom, or by whom, a backup is encrypted.
func secrecyFlags(flags *pflag.FlagSet, reading bool) {
	flags.String("passphrase-file", "", "file with the passphrase of the backup")
	if reading {
		flags.String("identity-file", "", "file with the age identity (AGE-SECRET-KEY-1…) that the backup is for")
		return
	}
	flags.String("recipient", "", "age recipient (age1…) that the backup is for")
	flags.String("recipients-file", "", "file of such recipients, one a line")
}

func createCommand(p process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "create FILE", Short: "Write all of the store into an encrypted file", Args: cobra.ExactArgs(1),
		Long: `Writes every record of the store into a file that only its recipients can read.

It opens the store itself: the embedded database must not be in use by a running
service then. Of a running service, POST /v1/backup takes one.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withVault(cmd, p, func(ctx context.Context, _ Config, v *vault) error {
				summary, err := writeBackup(ctx, cmd.Flags(), v, args[0])
				if err == nil {
					fmt.Fprintf(p.stdout, "%s holds %d records.\n", args[0], summary.Records)
				}
				return err
			})
		},
	}
	configFlags(cmd.Flags())
	secrecyFlags(cmd.Flags(), false)
	return cmd
}

func checkCommand(p process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "check FILE", Short: "See whether a backup is whole and can be read", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return readBackup(cmd.Flags(), args[0], func(r *os.File, ids []age.Identity) error {
				summary, err := backup.Check(cmd.Context(), r, ids...)
				if err == nil {
					fmt.Fprintf(p.stdout, "%s is whole: %d records.\n", args[0], summary.Records)
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
		Use: "restore FILE", Short: "Fill an empty store from a backup, whatever kinds the two stores are of", Args: cobra.ExactArgs(1),
		Long: `Checks the whole backup, and then writes its records into the store, which must
be empty or is emptied with --replace. The service must not run.

The service takes up the operations that had not ended when the backup was taken:
never restore a copy, for trial, where it reaches the real regions.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withVault(cmd, p, func(ctx context.Context, _ Config, v *vault) error {
				return readBackup(cmd.Flags(), args[0], func(r *os.File, ids []age.Identity) error {
					cfg := v.backup()
					cfg.Replace, _ = cmd.Flags().GetBool("replace")
					summary, err := backup.Restore(ctx, cfg, r, ids...)
					if err == nil {
						fmt.Fprintf(p.stdout, "%d records were restored.\n", summary.Records)
					}
					return err
				})
			})
		},
	}
	configFlags(cmd.Flags())
	secrecyFlags(cmd.Flags(), true)
	cmd.Flags().Bool("replace", false, "remove what is in the store first")
	return cmd
}

func identityCommand(p process) *cobra.Command {
	return &cobra.Command{
		Use: "identity FILE", Short: "Make a key pair for backups: the identity goes into the file, the recipient is printed", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			secret, public, err := backup.NewIdentity()
			if err != nil {
				return err
			}
			if err := newSecretFile(args[0], append(secret, '\n')); err != nil {
				return fmt.Errorf("cannot keep the identity: %w", err)
			}
			fmt.Fprintln(p.stdout, public)
			return nil
		},
	}
}

// writeBackup writes a backup beside its place, and puts it there when it is
// whole.
func writeBackup(ctx context.Context, flags *pflag.FlagSet, v *vault, name string) (backup.Summary, error) {
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

// readBackup opens a backup and the secret that it is read with.
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
	return nil, cli.Usage(errors.New("for whom is the backup? give one of --recipient, --recipients-file and --passphrase-file"))
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
	return nil, cli.Usage(errors.New("who reads the backup? give one of --identity-file and --passphrase-file"))
}

// secretFile reads a secret, without the line break that editors put at its end.
func secretFile(name string) (nf.Secret, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the secret: %w", err)
	}
	return bytes.TrimRight(text, "\r\n"), nil
}
