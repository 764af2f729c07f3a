package backup_test

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/backup"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

func TestIdentities(t *testing.T) {
	from := filled(t)
	secretA, publicA, err := backup.NewIdentity()
	must(t, err)
	secretB, publicB, err := backup.NewIdentity()
	must(t, err)
	to, err := backup.Recipients("# who may restore\n\n" + publicA + "\n" + publicB + "\n")
	must(t, err)
	var out bytes.Buffer
	_, err = backup.Write(t.Context(), from.config(), &out, to...)
	must(t, err)
	for _, text := range []nf.Secret{secretA, secretB} {
		identities, err := backup.Identities(text)
		must(t, err)
		if _, err := backup.Check(t.Context(), bytes.NewReader(out.Bytes()), identities...); err != nil {
			t.Errorf("one of two recipients cannot read it: %v", err)
		}
	}
	stranger, err := age.GenerateX25519Identity()
	must(t, err)
	wantRefused(t, "it is for others", out.Bytes(), nf.Forbidden, stranger)
	wantRefused(t, "nobody is not somebody", out.Bytes(), nf.Invalid)
	passphrase, err := backup.FromPassphrase(nf.Secret("correct horse battery"))
	must(t, err)
	wantRefused(t, "it has no passphrase", out.Bytes(), nf.Forbidden, passphrase)
}

func TestPassphrase(t *testing.T) {
	const phrase = "correct horse battery"
	from := newSite(t, memory.New())
	must(t, from.start(t))
	to, err := backup.ToPassphrase(nf.Secret(phrase))
	must(t, err)
	to.(*age.ScryptRecipient).SetWorkFactor(4) // the tests' time is worth more than this secret
	var out bytes.Buffer
	_, err = backup.Write(t.Context(), from.config(), &out, to)
	must(t, err)
	right, err := backup.FromPassphrase(nf.Secret(phrase))
	must(t, err)
	if _, err := backup.Check(t.Context(), bytes.NewReader(out.Bytes()), right); err != nil {
		t.Errorf("the passphrase does not open it: %v", err)
	}
	wrong, err := backup.FromPassphrase(nf.Secret(phrase + "!"))
	must(t, err)
	wantRefused(t, "another passphrase", out.Bytes(), nf.Forbidden, wrong)
	other, err := age.GenerateX25519Identity()
	must(t, err)
	_, err = backup.Write(t.Context(), from.config(), io.Discard, to, other.Recipient())
	wantKind(t, "a passphrase goes alone", err, nf.Invalid)
	_, err = backup.ToPassphrase(nf.Secret(phrase[:11]))
	wantKind(t, "a short passphrase is guessed", err, nf.Invalid)
	_, err = backup.FromPassphrase(nil)
	wantKind(t, "nothing is no passphrase", err, nf.Invalid)
}

func TestParseRefuses(t *testing.T) {
	_, err := backup.Recipients("# nobody\n")
	wantKind(t, "a backup that nobody can read", err, nf.Invalid)
	_, err = backup.Recipients("someone@example.org")
	wantKind(t, "somebody that age does not know", err, nf.Invalid)
	key, _, err := backup.NewIdentity()
	must(t, err)
	for _, text := range []nf.Secret{nil, key[:len(key)-1], append(slices.Clone(key), "\nAGE-SECRET-KEY-1"...)} {
		_, err := backup.Identities(text)
		wantKind(t, "half a key", err, nf.Invalid)
		if err != nil && strings.Contains(err.Error(), string(key[16:30])) {
			t.Errorf("the error tells the key: %v", err)
		}
	}
	_, err = backup.Recipients(string(key))
	wantKind(t, "a secret key is not for recipients", err, nf.Invalid)
	if err != nil && strings.Contains(err.Error(), string(key[16:30])) {
		t.Errorf("the error tells the key: %v", err)
	}
}
