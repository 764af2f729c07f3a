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

// Keyring is a set of KEKs, one of which is the primary. It never changes: the
// methods that edit it return another. It is kept as a Tink keyset in JSON, not
// encrypted: whoever has the text can read every store that it seals, and
// whoever loses it can read none. The id of a KEK is its keyId there.
//
// New KEKs are of the kind XAES-256-GCM, which wraps any number of data keys;
// every other AEAD that Tink reads is accepted, too.
type Keyring struct {
	handle  *keyset.Handle
	keks    map[string]KEK // the enabled ones
	primary string
	text    nf.Secret // as it is kept
	origin  nf.Secret // what the file said that it comes from; nil: it comes from none
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
	return newKeyring(handle, nil)
}

// Parse returns the keyring that a text says, as Text returned it; nf.Invalid
// when it says none. The error does not repeat the text.
func Parse(text nf.Secret) (*Keyring, error) {
	k, err := parseKeyring(text)
	if err != nil {
		return nil, nf.E(nf.Invalid, "read", "a keyring", err)
	}
	return k, nil
}

// parseKeyring drops the causes of Tink's errors: what was read is a secret.
func parseKeyring(text []byte) (*Keyring, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("it has %d bytes, and %d is the limit", len(text), maxText)
	}
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(text)))
	if err != nil {
		return nil, errors.New("it is not a Tink keyset in JSON, with a primary key")
	}
	if handle.Len() > maxKEKs {
		return nil, fmt.Errorf("it has %d keys, and %d is the limit", handle.Len(), maxKEKs)
	}
	return newKeyring(handle, nil)
}

func newKeyring(handle *keyset.Handle, origin nf.Secret) (*Keyring, error) {
	k := &Keyring{handle: handle, keks: map[string]KEK{}, origin: origin}
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

// only returns one key of a keyset as what it encrypts with.
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

// without returns the keyset without the keys that are picked. The primary
// stays.
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

// Find implements Keys. There is nowhere else to look.
func (k *Keyring) Find(_ context.Context, id string) (KEK, error) {
	if found, ok := k.keks[id]; ok {
		return found, nil
	}
	return nil, nf.E(nf.NotFound, "find", "sealing key "+strconv.Quote(id), nil)
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

// Text returns what Parse reads: the KEKs, in clear.
func (k *Keyring) Text() nf.Secret { return slices.Clone(k.text) }

// Rotate returns the keyring with a new KEK as its primary: it is Add and
// Promote at once, for keyrings that all replicas see change at the same time.
func (k *Keyring) Rotate() (*Keyring, error) {
	added, id, err := k.Add()
	if err != nil {
		return nil, err
	}
	return added.Promote(id)
}

// Add returns the keyring with a new KEK that is not the primary yet, and its
// id. Once every replica has it, Promote makes it so.
func (k *Keyring) Add() (*Keyring, string, error) {
	if k.handle.Len() >= maxKEKs {
		return nil, "", nf.E(nf.TooLarge, "add", "a sealing key", fmt.Errorf("there are %d: prune those that are not used", maxKEKs))
	}
	var added uint32
	handle, err := edit(k.handle, func(m *keyset.Manager) (err error) {
		added, err = m.Add(aead.XAES256GCM192BitNonceKeyTemplate())
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("cannot add a sealing key: %w", err)
	}
	next, err := newKeyring(handle, k.origin)
	return next, name(added), err
}

// Promote returns the keyring with another primary, or nf.NotFound.
func (k *Keyring) Promote(id string) (*Keyring, error) {
	if _, ok := k.keks[id]; !ok {
		return nil, nf.E(nf.NotFound, "promote", "sealing key "+strconv.Quote(id), nil)
	}
	handle, err := edit(k.handle, func(m *keyset.Manager) error {
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return err
		}
		return m.SetPrimary(uint32(n))
	})
	if err != nil {
		return nil, fmt.Errorf("cannot promote sealing key %s: %w", id, err)
	}
	return newKeyring(handle, k.origin)
}

// Prune returns the keyring with the primary and the KEKs to keep, and without
// all others. What those have sealed can never be read again: ask Store.Status
// first which have sealed nothing. An id that is not there is nothing to keep.
func (k *Keyring) Prune(keep ...string) (*Keyring, error) {
	handle, err := without(k.handle, func(id uint32) bool { return !slices.Contains(keep, name(id)) })
	if err != nil {
		return nil, fmt.Errorf("cannot prune sealing keys: %w", err)
	}
	return newKeyring(handle, k.origin)
}

// String says which KEKs there are, and no more.
func (k Keyring) String() string { return "sealing keys " + strings.Join(k.IDs(), ", ") }

// Format prints what String says, for every verb: fmt would go into the fields.
func (k Keyring) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(k.String())) }

// LogValue logs what String says.
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
