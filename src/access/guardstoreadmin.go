package access

import (
	"context"
	"io"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// StoreKeeper encrypts the store and backs it up.
type StoreKeeper interface {
	KeyStatus(ctx context.Context) (nf.KeyStatus, error)
	// Reencrypt encrypts every record with the primary key.
	Reencrypt(ctx context.Context) (nf.KeyStatus, error)
	Backup(ctx context.Context, recipient string, w io.Writer) error
}

// StoreAdmin gives access to a StoreKeeper with the permissions of the identity
// in the context. Every method requires store:admin.
type StoreAdmin struct {
	guard  *guard
	keeper StoreKeeper
}

// NewStoreAdmin returns the guarded StoreAdmin of a keeper.
func NewStoreAdmin(guarded *Guarded, keeper StoreKeeper) StoreAdmin {
	return StoreAdmin{guarded.guard, keeper}
}

// KeyStatus returns the state of the keys.
func (s StoreAdmin) KeyStatus(ctx context.Context) (nf.KeyStatus, error) {
	if err := s.guard.may(ctx, nf.AdministerStore, nf.Scope{}); err != nil {
		return nf.KeyStatus{}, err
	}
	return s.keeper.KeyStatus(ctx)
}

// Reencrypt encrypts every record with the primary key, and returns the resulting
// state of the keys.
func (s StoreAdmin) Reencrypt(ctx context.Context) (nf.KeyStatus, error) {
	if err := s.guard.may(ctx, nf.AdministerStore, nf.Scope{}); err != nil {
		return nf.KeyStatus{}, err
	}
	return s.keeper.Reencrypt(ctx)
}

// Backup writes a backup, encrypted to the recipient.
func (s StoreAdmin) Backup(ctx context.Context, recipient string, w io.Writer) error {
	if err := s.guard.may(ctx, nf.AdministerStore, nf.Scope{}); err != nil {
		return err
	}
	return s.keeper.Backup(ctx, recipient, w)
}
