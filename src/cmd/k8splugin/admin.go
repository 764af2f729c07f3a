package main

import (
	"cmp"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/bcrypt"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/audit"
	"github.com/multicloud-k8s/k8splugin/src/cmd/k8splugin/cli"
)

// passwordCost is the bcrypt cost of passwords: about 0.25 s per comparison.
const passwordCost = 12

// accessCommand groups the commands that help to write access.yaml.
func accessCommand(p process) *cobra.Command {
	root := &cobra.Command{Use: "access", Short: "Write and check access rules", Args: cobra.NoArgs}
	root.AddCommand(
		&cobra.Command{
			Use: "check FILE", Short: "Check an access.yaml as the service reads it", Args: cobra.ExactArgs(1),
			RunE: func(_ *cobra.Command, args []string) error {
				rules, err := access.New(access.Config{File: args[0]})
				if err == nil {
					_, err = access.NewAuthorizer(rules)
				}
				if err != nil {
					return cli.Listed("cannot use the access rules", err)
				}
				fmt.Fprintf(p.stdout, "%s is valid.\n", args[0])
				return nil
			},
		},
		&cobra.Command{
			Use: "token FILE", Short: "Create a service token", Args: cobra.ExactArgs(1),
			Long: "Create a service token in FILE, and print its SHA-256 for access.yaml.",
			RunE: func(_ *cobra.Command, args []string) error {
				token, sum := access.NewToken()
				if err := newSecretFile(args[0], []byte(token+"\n")); err != nil {
					return fmt.Errorf("cannot save the token: %w", err)
				}
				fmt.Fprintln(p.stdout, sum)
				return nil
			},
		},
		&cobra.Command{
			Use: "hash FILE", Short: "Print the bcrypt hash of a password", Args: cobra.ExactArgs(1),
			Long: "Print the bcrypt hash of the password in FILE, for access.yaml.",
			RunE: func(_ *cobra.Command, args []string) error {
				password, err := secretFile(args[0])
				if err != nil {
					return err
				}
				hash, err := bcrypt.GenerateFromPassword(password, passwordCost)
				if err != nil {
					return fmt.Errorf("cannot hash the password: %w", err)
				}
				fmt.Fprintln(p.stdout, string(hash))
				return nil
			},
		},
	)
	return root
}

// verifyCommand verifies audit files.
func verifyCommand(p process) *cobra.Command {
	var known []string
	cmd := &cobra.Command{
		Use: "verify FILE...", Short: "Verify audit files", Args: cobra.MinimumNArgs(1),
		Long: `Check whether lines of audit files were changed, inserted or removed. Name the
files in the order in which they were written. The command reports each line that
does not continue the line before it. Lines removed from the end can be detected
only with hashes that are known from elsewhere: from the service's log, or from
the store.`,
		RunE: func(_ *cobra.Command, args []string) error {
			var all []io.Reader
			for _, name := range args {
				f, err := os.Open(name)
				if err != nil {
					return fmt.Errorf("cannot read the audit file: %w", err)
				}
				defer func() { _ = f.Close() }() // only read from
				all = append(all, f)
			}
			report, err := audit.Verify(io.MultiReader(all...), known...)
			if err != nil {
				return err
			}
			fmt.Fprintf(p.stdout, "%d entries, %d torn lines; from %s to %s\n", report.Entries, report.Torn, cmp.Or(report.First, "the beginning of the log"), report.Last)
			return nil
		},
	}
	cmd.Flags().StringSliceVar(&known, "expected-hash", nil, "hash that one of the lines must have")
	return cmd
}

// newSecretFile creates a file that only this user can read. It fails if the
// file exists.
func newSecretFile(name string, content []byte) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(content); err != nil {
		_ = f.Close() // the first error counts
		return err
	}
	return f.Close()
}
