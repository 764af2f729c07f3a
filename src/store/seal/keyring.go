package seal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Keyring is a set of KEKs, one of which is the primary. It is immutable: the
// methods that edit it return a new one. Its text is an unencrypted Tink keyset in
// JSON. Anyone with this text can read every store that the keyring encrypts, and
// without it these stores cannot be read. A KeyService can protect the text when it
// is stored. The id of a KEK is its keyId in the keyset.
//
// New KEKs are of the type XAES-256-GCM, which can wrap any number of data
// keys. Every other AEAD that Tink can read is accepted, too.
type Keyring struct {
	handle  *keyset.Handle
	keks    map[string]KEK // the enabled ones
	primary string
	text    nf.Secret // the Tink keyset
	origin  origin
}

// origin is what a keyring was loaded from. It is zero for a new one.
type origin struct {
	content nf.Secret // of the file
	keyID   string    // of the service's key that encrypts the content; empty: it is plaintext
}

var _ Keys = (*Keyring)(nil)

const (
	maxText = 1 << 20 // bytes of a keyring
	maxKEKs = 64
)

// Generate returns a keyring with one new KEK.
func Generate() (*Keyring, error) {
	handle, err := keyset.NewHandle(aead.XAES256GCM192BitNonceKeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("cannot generate a keyring: %w", err)
	}
	return newKeyring(handle, origin{})
}

// Parse returns the keyring for a text that Text returned or, with a service, for
// the content of a file that Save wrote. It returns nf.Invalid for every other
// text, and nf.Unreachable if the service does not respond. The error does not
// contain the text.
func Parse(ctx context.Context, text nf.Secret, service KeyService) (*Keyring, error) {
	k, err := parseFile(ctx, text, service)
	if err != nil {
		return nil, failRead("a keyring", err)
	}
	k.origin = origin{} // Save may write it to a new file
	return k, nil
}

// failRead returns the error of a keyring that cannot be read. Only the service is
// temporary.
func failRead(subject string, err error) error {
	kind := nf.Invalid
	if nf.KindOf(err) == nf.Unreachable {
		kind = nf.Unreachable
	}
	return nf.E(kind, "read", subject, err)
}

// parseFile returns the keyring in the content of a file.
func parseFile(ctx context.Context, content nf.Secret, service KeyService) (*Keyring, error) {
	text, keyID, err := decryptText(ctx, content, service)
	if err != nil {
		return nil, err
	}
	k, err := parseKeyring(text)
	if err == nil {
		k.origin = origin{content, keyID}
	}
	return k, err
}

// parseKeyring drops the causes of Tink's errors, because the input is secret.
func parseKeyring(text []byte) (*Keyring, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("it has %d bytes; the limit is %d", len(text), maxText)
	}
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(text)))
	if err != nil {
		return nil, errors.New("it is not a Tink keyset in JSON, with a primary key")
	}
	if handle.Len() > maxKEKs {
		return nil, fmt.Errorf("it has %d keys; the limit is %d", handle.Len(), maxKEKs)
	}
	return newKeyring(handle, origin{})
}

func newKeyring(handle *keyset.Handle, from origin) (*Keyring, error) {
	k := &Keyring{handle: handle, keks: map[string]KEK{}, origin: from}
	for i := range handle.Len() {
		entry, err := handle.Entry(i)
		if err != nil {
			return nil, fmt.Errorf("cannot read key %d of the keyring: %w", i+1, err)
		}
		if entry.KeyStatus() != keyset.Enabled {
			continue
		}
		alone, err := only(handle, entry.KeyID())
		if err != nil {
			return nil, err
		}
		id := name(entry.KeyID())
		k.keks[id] = kek{id: id, aead: alone}
		if entry.IsPrimary() {
			k.primary = id
		}
	}
	var text bytes.Buffer
	if err := insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&text)); err != nil {
		return nil, errors.New("cannot write the keyring as JSON")
	}
	k.text = text.Bytes()
	return k, nil
}

// only returns one key of a keyset as an AEAD.
func only(handle *keyset.Handle, id uint32) (tink.AEAD, error) {
	handle, err := edit(handle, func(m *keyset.Manager) error { return m.SetPrimary(id) })
	if err == nil {
		handle, err = without(handle, func(uint32) bool { return true })
	}
	if err == nil {
		var a tink.AEAD
		if a, err = aead.New(handle); err == nil {
			return a, nil
		}
	}
	return nil, fmt.Errorf("key %d is not one for authenticated encryption (AEAD)", id)
}

// without returns the keyset without the picked keys. It never removes the
// primary.
func without(handle *keyset.Handle, pick func(id uint32) bool) (*keyset.Handle, error) {
	return edit(handle, func(m *keyset.Manager) error {
		for i := range handle.Len() {
			entry, err := handle.Entry(i)
			if err != nil {
				return err
			}
			if entry.IsPrimary() || !pick(entry.KeyID()) {
				continue
			}
			if err := m.Delete(entry.KeyID()); err != nil {
				return err
			}
		}
		return nil
	})
}

func edit(handle *keyset.Handle, do func(*keyset.Manager) error) (*keyset.Handle, error) {
	m := keyset.NewManagerFromHandle(handle)
	if err := do(m); err != nil {
		return nil, err
	}
	return m.Handle()
}

func name(id uint32) string { return strconv.FormatUint(uint64(id), 10) }

// Primary implements Keys.
func (k *Keyring) Primary(context.Context) (KEK, error) { return k.keks[k.primary], nil }

// Find implements Keys. It looks only into the keyring.
func (k *Keyring) Find(_ context.Context, id string) (KEK, error) {
	if found, ok := k.keks[id]; ok {
		return found, nil
	}
	return nil, nf.E(nf.NotFound, "find", "encryption key "+strconv.Quote(id), nil)
}

// IDs returns the ids of all KEKs, the primary first and the others sorted.
func (k Keyring) IDs() []string {
	ids := []string{k.primary}
	for id := range k.keks {
		if id != k.primary {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids[1:])
	return ids
}

// Text returns the unencrypted KEKs as a Tink keyset, for Parse.
func (k *Keyring) Text() nf.Secret { return slices.Clone(k.text) }

// EncryptedBy returns the id of the service's key that encrypts what the keyring
// was loaded from, or "".
func (k *Keyring) EncryptedBy() string { return k.origin.keyID }

// Rotate returns the keyring with a new KEK as its primary. It combines Add and
// Promote, for keyrings whose change reaches all replicas at the same time.
func (k *Keyring) Rotate() (*Keyring, error) {
	added, id, err := k.Add()
	if err != nil {
		return nil, err
	}
	return added.Promote(id)
}

// Add returns the keyring with a new KEK that is not the primary, and its id.
// Call Promote once every replica has it.
func (k *Keyring) Add() (*Keyring, string, error) {
	if k.handle.Len() >= maxKEKs {
		return nil, "", nf.E(nf.TooLarge, "add", "an encryption key", fmt.Errorf("the file has the maximum of %d keys; prune the unused ones", maxKEKs))
	}
	var added uint32
	handle, err := edit(k.handle, func(m *keyset.Manager) (err error) {
		added, err = m.Add(aead.XAES256GCM192BitNonceKeyTemplate())
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("cannot add an encryption key: %w", err)
	}
	next, err := newKeyring(handle, k.origin)
	return next, name(added), err
}

// Promote returns the keyring with another primary, or nf.NotFound.
func (k *Keyring) Promote(id string) (*Keyring, error) {
	if _, ok := k.keks[id]; !ok {
		return nil, nf.E(nf.NotFound, "promote", "encryption key "+strconv.Quote(id), nil)
	}
	handle, err := edit(k.handle, func(m *keyset.Manager) error {
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return err
		}
		return m.SetPrimary(uint32(n))
	})
	if err != nil {
		return nil, fmt.Errorf("cannot promote encryption key %s: %w", id, err)
	}
	return newKeyring(handle, k.origin)
}

// Prune returns the keyring with only the primary and the KEKs to keep. Values
// that the others have encrypted can never be read again: use Store.Status to
// find the KEKs that encrypt nothing. Unknown ids are ignored.
func (k *Keyring) Prune(keep ...string) (*Keyring, error) {
	handle, err := without(k.handle, func(id uint32) bool { return !slices.Contains(keep, name(id)) })
	if err != nil {
		return nil, fmt.Errorf("cannot prune encryption keys: %w", err)
	}
	return newKeyring(handle, k.origin)
}

// String returns the ids of the KEKs, without the keys.
func (k Keyring) String() string { return "encryption keys " + strings.Join(k.IDs(), ", ") }

// Format prints the text of String for every verb, because fmt would print the
// fields.
func (k Keyring) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(k.String())) }

// LogValue logs the text of String.
func (k Keyring) LogValue() slog.Value { return slog.StringValue(k.String()) }

// kek is one key of a keyring.
type kek struct {
	id   string
	aead tink.AEAD
}

var _ KEK = kek{}

// ID implements KEK.
func (k kek) ID() string { return k.id }

// Wrap implements KEK.
func (k kek) Wrap(_ context.Context, dek, ad []byte) ([]byte, error) { return k.aead.Encrypt(dek, ad) }

// Unwrap implements KEK.
func (k kek) Unwrap(_ context.Context, wrapped, ad []byte) ([]byte, error) {
	return k.aead.Decrypt(wrapped, ad)
}
