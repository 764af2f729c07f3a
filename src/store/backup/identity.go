package backup

import (
	"errors"
	"fmt"
	"strings"

	"filippo.io/age"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Recipients returns the public keys in a text, one a line ("age1…"); empty
// lines and those that begin with "#" are left out. It fails with nf.Invalid
// when there is none, or something else.
func Recipients(text string) ([]age.Recipient, error) {
	list, err := age.ParseRecipients(strings.NewReader(text))
	if err != nil {
		return nil, nf.E(nf.Invalid, "read", "the recipients", err)
	}
	return list, nil
}

// Identities returns the secret keys in a text, one a line
// ("AGE-SECRET-KEY-1…"), like Recipients. The error does not repeat them.
func Identities(text nf.Secret) ([]age.Identity, error) {
	list, err := age.ParseIdentities(strings.NewReader(string(text)))
	if err != nil {
		return nil, nf.E(nf.Invalid, "read", "the identities", errors.New("there has to be one age secret key on each line"))
	}
	return list, nil
}

// minPassphrase is the length of the shortest passphrase that is worth its
// name: a backup can be tried at leisure by whoever gets it.
const minPassphrase = 12

// ToPassphrase returns the recipient that everyone is who knows the passphrase.
// It is the only one of its backup. It fails with nf.Invalid when the
// passphrase is shorter than 12 bytes.
func ToPassphrase(passphrase nf.Secret) (age.Recipient, error) {
	if len(passphrase) < minPassphrase {
		return nil, nf.E(nf.Invalid, "use", "the passphrase", fmt.Errorf("it has %d bytes, and %d are the least", len(passphrase), minPassphrase))
	}
	to, err := age.NewScryptRecipient(string(passphrase))
	if err != nil {
		return nil, nf.E(nf.Invalid, "use", "the passphrase", err)
	}
	return to, nil
}

// FromPassphrase returns the identity of whoever knows the passphrase, or
// nf.Invalid when it is empty.
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
		return nil, "", fmt.Errorf("cannot make an identity: %w", err)
	}
	return nf.Secret(identity.String()), identity.Recipient().String(), nil
}
