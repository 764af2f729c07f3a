package access

import (
	"context"
	"io"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// VaultKeeper encrypts the store and backs it up.
type VaultKeeper interface {
	KeyStatus(ctx context.Context) (nf.KeyStatus, error)
	// Reencrypt encrypts every record with the primary key.
	Reencrypt(ctx context.Context) (nf.KeyStatus, error)
	Backup(ctx context.Context, recipient string, w io.Writer) error
}

// Vault gives access to a VaultKeeper with the permissions of the identity in
// the context. Every method requires store:admin.
type Vault struct {
	guard  *guard
	keeper VaultKeeper
}

// NewVault returns the guarded vault of a keeper.
func NewVault(guarded *Guarded, keeper VaultKeeper) Vault { return Vault{guarded.guard, keeper} }

// KeyStatus returns the state of the keys.
func (v Vault) KeyStatus(ctx context.Context) (nf.KeyStatus, error) {
	if err := v.guard.may(ctx, nf.AdministerStore, nf.Scope{}); err != nil {
		return nf.KeyStatus{}, err
	}
	return v.keeper.KeyStatus(ctx)
}

// Reseal encrypts every record with the primary key, and returns the resulting
// state of the keys.
func (v Vault) Reseal(ctx context.Context) (nf.KeyStatus, error) {
	if err := v.guard.may(ctx, nf.AdministerStore, nf.Scope{}); err != nil {
		return nf.KeyStatus{}, err
	}
	return v.keeper.Reencrypt(ctx)
}

// Backup writes a backup, encrypted to the recipient.
func (v Vault) Backup(ctx context.Context, recipient string, w io.Writer) error {
	if err := v.guard.may(ctx, nf.AdministerStore, nf.Scope{}); err != nil {
		return err
	}
	return v.keeper.Backup(ctx, recipient, w)
}
