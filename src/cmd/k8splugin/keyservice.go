package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/multicloud-k8s/k8splugin/src/cmd/k8splugin/cli"
	"github.com/multicloud-k8s/k8splugin/src/store/kms"
	"github.com/multicloud-k8s/k8splugin/src/store/seal"
)

const (
	kmsFlag  = "encryption-kms"
	kmsUsage = "UNIX socket of a plugin for Kubernetes' key management (KMS v2), such as unix:///run/kms/socket, that encrypts the key file; if empty, the file is plaintext"
)

// keyService returns the service that encrypts the key file, or nil.
func keyService(endpoint string) (seal.KeyService, error) {
	if endpoint == "" {
		return nil, nil
	}
	return kms.New(kms.Config{Endpoint: endpoint})
}

// keyEndpoint returns the endpoint for a command that edits a key file: that of the flag or
// the environment. These commands read no configuration file.
func keyEndpoint(cmd *cobra.Command, p process) string {
	if flag := cmd.Flags().Lookup(kmsFlag); flag.Changed {
		return flag.Value.String()
	}
	return p.getenv(envPrefix + strings.ToUpper(strings.ReplaceAll(kmsFlag, "-", "_")))
}

// adviseKMS adds to the error of a key file what to do about it.
func adviseKMS(err error, file, endpoint string) error {
	switch {
	case errors.Is(err, seal.ErrPlaintext):
		return fmt.Errorf("%w: encrypt it with `k8splugin keys encrypt %s --%s %s`", err, file, kmsFlag, endpoint)
	case errors.Is(err, seal.ErrEncrypted):
		return fmt.Errorf("%w: set --%s to the socket of its plugin", err, kmsFlag)
	}
	return err
}

// keyFile is a key file that a command edits.
type keyFile struct {
	path     string
	endpoint string // of the service that encrypts it; empty: it is plaintext
	service  seal.KeyService
}

func (f keyFile) load(ctx context.Context) (*seal.Keyring, error) {
	ring, err := seal.Load(ctx, f.path, f.service)
	return ring, adviseKMS(err, f.path, f.endpoint)
}

func (f keyFile) save(ctx context.Context, ring *seal.Keyring) error {
	return ring.Save(ctx, f.path, f.service)
}

// encryptKeys encrypts a plaintext key file, or one that an earlier key of the service
// encrypts.
func encryptKeys(ctx context.Context, out io.Writer, file keyFile) error {
	if file.service == nil {
		return cli.Usage(fmt.Errorf("cannot encrypt %s: --%s is missing", file.path, kmsFlag))
	}
	client, err := kms.New(kms.Config{Endpoint: file.endpoint})
	if err != nil {
		return err
	}
	ring, err := seal.Load(ctx, file.path, client)
	if errors.Is(err, seal.ErrPlaintext) {
		ring, err = seal.Load(ctx, file.path, nil)
	}
	if err != nil {
		return err
	}
	before := ring.EncryptedBy()
	current, err := client.KeyID(ctx)
	if err != nil {
		return err
	}
	if before == current {
		fmt.Fprintf(out, "%s is already encrypted with key %q of the key management service.\n", file.path, current)
		return nil
	}
	if err := file.save(ctx, ring); err != nil {
		return err
	}
	if ring, err = file.load(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s is now encrypted with key %q of the key management service.\n", file.path, ring.EncryptedBy())
	if before == "" {
		fmt.Fprintln(out, "Delete the copies of the plaintext. Start the service with the same --"+kmsFlag+".")
	}
	return nil
}

// decryptKeys writes a key file as plaintext.
func decryptKeys(ctx context.Context, out io.Writer, file keyFile) error {
	ring, err := file.load(ctx)
	if err != nil {
		return err
	}
	if ring.EncryptedBy() == "" {
		return fmt.Errorf("cannot decrypt %s: it is not encrypted", file.path)
	}
	if err := ring.Save(ctx, file.path, nil); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s is now plaintext: everyone who can read it can read the store. Start the service without --%s.\n", file.path, kmsFlag)
	return nil
}
