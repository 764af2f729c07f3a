package backup

import (
	"errors"
	"fmt"
	"strings"

	"filippo.io/age"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Recipients returns the public keys in a text, one per line ("age1…"). It
// ignores empty lines and those that begin with "#". It returns nf.Invalid if
// there is no key, or any other line.
func Recipients(text string) ([]age.Recipient, error) {
	list, err := age.ParseRecipients(strings.NewReader(text))
	if err != nil {
		return nil, nf.E(nf.Invalid, "read", "the recipients", errors.New("it must have one age public key per line"))
	}
	return list, nil
}

// Identities returns the secret keys in a text, one per line
// ("AGE-SECRET-KEY-1…"), like Recipients. The error does not contain them.
func Identities(text nf.Secret) ([]age.Identity, error) {
	list, err := age.ParseIdentities(strings.NewReader(string(text)))
	if err != nil {
		return nil, nf.E(nf.Invalid, "read", "the identities", errors.New("it must have one age secret key per line"))
	}
	return list, nil
}

// minPassphrase is the minimum length of a passphrase in bytes: a backup that
// leaks can be attacked offline.
const minPassphrase = 12

// ToPassphrase returns the recipient for a passphrase. It must be the only
// recipient of its backup. It returns nf.Invalid if the passphrase is shorter
// than 12 bytes.
func ToPassphrase(passphrase nf.Secret) (age.Recipient, error) {
	if len(passphrase) < minPassphrase {
		return nil, nf.E(nf.Invalid, "use", "the passphrase", fmt.Errorf("it has %d bytes, but needs at least %d", len(passphrase), minPassphrase))
	}
	to, err := age.NewScryptRecipient(string(passphrase))
	if err != nil {
		return nil, nf.E(nf.Invalid, "use", "the passphrase", err)
	}
	return to, nil
}

// FromPassphrase returns the identity for a passphrase, or nf.Invalid if it is
// empty.
func FromPassphrase(passphrase nf.Secret) (age.Identity, error) {
	from, err := age.NewScryptIdentity(string(passphrase))
	if err != nil {
		return nil, nf.E(nf.Invalid, "use", "the passphrase", err)
	}
	return from, nil
}

// NewIdentity returns a new secret key and its public key, in the forms that
// Identities and Recipients read.
func NewIdentity() (secret nf.Secret, public string, err error) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, "", fmt.Errorf("cannot create an identity: %w", err)
	}
	return nf.Secret(identity.String()), identity.Recipient().String(), nil
}
