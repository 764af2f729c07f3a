package seal

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	aeadsubtle "github.com/tink-crypto/tink-go/v2/aead/subtle"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// KeyService encrypts data keys with a key that it does not give away. An error
// of kind nf.Unreachable with the reason nf.ReasonKMS means that it does not
// respond, or that it is not healthy. Any other error means that it rejects the
// request. No error contains a data key. Implementations are safe for concurrent
// use.
type KeyService interface {
	// Wrap encrypts a data key of 32 bytes with the present key of the service.
	Wrap(ctx context.Context, dek []byte) (WrappedKey, error)

	// Unwrap returns the data key in what Wrap has returned.
	Unwrap(ctx context.Context, wrapped WrappedKey) ([]byte, error)
}

// WrappedKey is a data key that a KeyService has encrypted. It is not secret.
type WrappedKey struct {
	KeyID       string // of the service's key
	Ciphertext  []byte
	Annotations map[string][]byte // what the service needs in addition
}

// The errors of a text that is not in the expected form. Load, Follow and Parse
// return them in an error of the kind nf.Invalid.
var (
	ErrPlaintext = errors.New("it is not encrypted, although a key management service is configured")
	ErrEncrypted = errors.New("a key management service encrypts it, and none is configured")
)

// envelope is the stored form of a keyring that a KeyService protects. Keyring is
// its text, encrypted with AES-256-GCM under the data key: 12 bytes of nonce, the
// ciphertext, 16 bytes of tag. The associated data is that of associated.
type envelope struct {
	Format      string            `json:"format"`
	Version     int               `json:"version"`
	KeyID       string            `json:"key_id"`
	WrappedKey  []byte            `json:"wrapped_key"`
	Annotations map[string][]byte `json:"annotations,omitempty"`
	Keyring     []byte            `json:"keyring"`
}

const (
	envelopeFormat  = "k8splugin-encrypted-keyring"
	envelopeVersion = 1
	dekSize         = 32
	maxFile         = 2 << 20 // bytes of a key file: an encrypted keyring is a third longer
)

// encryptText returns the envelope of a keyring's text. The data key is new, so it
// encrypts one text only. The service must be able to unwrap it: otherwise, the
// keyring would be lost.
func encryptText(ctx context.Context, text []byte, service KeyService) ([]byte, error) {
	dek := make([]byte, dekSize)
	_, _ = rand.Read(dek) // never fails
	wrapped, err := service.Wrap(ctx, dek)
	if err != nil {
		return nil, err
	}
	again, err := service.Unwrap(ctx, wrapped)
	if err != nil {
		return nil, err
	}
	if subtle.ConstantTimeCompare(dek, again) != 1 {
		return nil, errors.New("the key management service returns another data key than it has encrypted")
	}
	cipher, err := aeadsubtle.NewAESGCM(dek)
	if err != nil {
		return nil, fmt.Errorf("cannot use a data key: %w", err)
	}
	sealed, err := cipher.Encrypt(text, associated(wrapped))
	if err != nil {
		return nil, fmt.Errorf("cannot encrypt the keyring: %w", err)
	}
	out, err := json.MarshalIndent(envelope{
		Format: envelopeFormat, Version: envelopeVersion, Keyring: sealed,
		KeyID: wrapped.KeyID, WrappedKey: wrapped.Ciphertext, Annotations: wrapped.Annotations,
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("cannot write the encrypted keyring: %w", err)
	}
	return append(out, '\n'), nil
}

// decryptText returns the text of a keyring, and the id of the service's key that
// encrypts it. Without a service, the text must be plaintext, and the id is empty.
func decryptText(ctx context.Context, content nf.Secret, service KeyService) (text nf.Secret, keyID string, err error) {
	version, is := isEnvelope(content)
	switch {
	case is && service == nil:
		return nil, "", ErrEncrypted
	case is && version != envelopeVersion:
		return nil, "", fmt.Errorf("it is encrypted in format version %d, but this release supports version %d", version, envelopeVersion)
	case is:
		return openEnvelope(ctx, content, service)
	case service == nil:
		return content, "", nil
	}
	if _, err := parseKeyring(content); err != nil {
		return nil, "", errors.New("it is not an encrypted keyring")
	}
	return nil, "", ErrPlaintext
}

// isEnvelope reports whether a text is an envelope, of any version.
func isEnvelope(content []byte) (version int, is bool) {
	var head struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	err := json.Unmarshal(content, &head)
	return head.Version, err == nil && head.Format == envelopeFormat
}

func openEnvelope(ctx context.Context, content []byte, service KeyService) (nf.Secret, string, error) {
	var e envelope
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return nil, "", fmt.Errorf("it is damaged: %w", err)
	}
	wrapped := WrappedKey{KeyID: e.KeyID, Ciphertext: e.WrappedKey, Annotations: e.Annotations}
	dek, err := service.Unwrap(ctx, wrapped)
	if err != nil {
		return nil, "", err
	}
	if len(dek) != dekSize {
		return nil, "", fmt.Errorf("the key management service returns a data key of %d bytes instead of %d", len(dek), dekSize)
	}
	cipher, err := aeadsubtle.NewAESGCM(dek)
	if err != nil {
		return nil, "", fmt.Errorf("cannot use its data key: %w", err)
	}
	text, err := cipher.Decrypt(e.Keyring, associated(wrapped))
	if err != nil {
		return nil, "", errors.New("decryption failed: it was changed, or the key management service returns another data key")
	}
	return text, e.KeyID, nil
}

// associated returns the associated data of a keyring's encryption: the format and
// every part of the envelope, each with its length. So no part can be replaced.
func associated(w WrappedKey) []byte {
	var out []byte
	add := func(part []byte) {
		out = binary.BigEndian.AppendUint32(out, uint32(len(part)))
		out = append(out, part...)
	}
	add([]byte(envelopeFormat))
	add([]byte{envelopeVersion})
	add([]byte(w.KeyID))
	add(w.Ciphertext)
	for _, key := range slices.Sorted(maps.Keys(w.Annotations)) {
		add([]byte(key))
		add(w.Annotations[key])
	}
	return out
}
