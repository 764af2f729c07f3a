package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/bcrypt"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/audit"
)

// passwordCost is what a guess at a password costs: a quarter of a second.
const passwordCost = 12

// accessCommand helps to write access.yaml.
func accessCommand(p process) *cobra.Command {
	root := &cobra.Command{Use: "access", Short: "Write and check the rules of who may do what", Args: cobra.NoArgs}
	root.AddCommand(
		&cobra.Command{
			Use: "check FILE", Short: "Read an access.yaml as the service does", Args: cobra.ExactArgs(1),
			RunE: func(_ *cobra.Command, args []string) error {
				rules, err := access.New(access.Config{File: args[0]})
				if err == nil {
					_, err = access.NewAuthorizer(rules)
				}
				if err == nil {
					fmt.Fprintf(p.stdout, "%s can be used.\n", args[0])
				}
				return err
			},
		},
		&cobra.Command{
			Use: "token FILE", Short: "Make a service token: it goes into the file, its SHA-256 for access.yaml is printed", Args: cobra.ExactArgs(1),
			RunE: func(_ *cobra.Command, args []string) error {
				token, sum := access.NewToken()
				if err := newSecretFile(args[0], []byte(token+"\n")); err != nil {
					return fmt.Errorf("cannot keep the token: %w", err)
				}
				fmt.Fprintln(p.stdout, sum)
				return nil
			},
		},
		&cobra.Command{
			Use: "hash FILE", Short: "Print the bcrypt hash of the password in a file, for access.yaml", Args: cobra.ExactArgs(1),
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

// verifyCommand reads audit files.
func verifyCommand(p process) *cobra.Command {
	var known []string
	cmd := &cobra.Command{
		Use: "verify FILE...", Short: "See whether lines of audit files were changed, put in or taken out", Args: cobra.MinimumNArgs(1),
		Long: `Reads audit files, one after the other as they were written, and says which lines
do not continue the line before. An end that was cut off can be told only from
hashes that are known otherwise: from the service's log, or from the store.`,
		RunE: func(_ *cobra.Command, args []string) error {
			var all []io.Reader
			for _, name := range args {
				f, err := os.Open(name)
				if err != nil {
					return fmt.Errorf("cannot read the audit file: %w", err)
				}
				defer func() { _ = f.Close() }() // it was only read
				all = append(all, f)
			}
			report, err := audit.Verify(io.MultiReader(all...), known...)
			if err != nil {
				return err
			}
			fmt.Fprintf(p.stdout, "%d entries, %d torn lines; from %s to %s\n", report.Entries, report.Torn, report.First, report.Last)
			return nil
		},
	}
	cmd.Flags().StringSliceVar(&known, "known", nil, "hash that must be that of a line")
	return cmd
}

// newSecretFile writes a file that is not there yet, for this user only.
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
