package seal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/kms"
	kmsv2 "github.com/multicloud-k8s/k8splugin/src/store/kms"
	"github.com/multicloud-k8s/k8splugin/src/store/kms/kmstest"
	"github.com/multicloud-k8s/k8splugin/src/store/seal"
)

// protector returns a client of a service.
func protector(t *testing.T, s kmstest.Service) *kmsv2.Client {
	t.Helper()
	c, err := kmsv2.New(kmsv2.Config{Endpoint: s.Endpoint, Timeout: time.Minute})
	must(t, err)
	return c
}

func TestEncryptedFile(t *testing.T) {
	s, others := kmstest.Start(t), kmstest.Start(t)
	service := protector(t, s)
	dir := t.TempDir()
	path, plain, garbage := filepath.Join(dir, "keys"), filepath.Join(dir, "plain"), filepath.Join(dir, "garbage")
	ring := generate(t)
	must(t, ring.Save(t.Context(), path, service))
	must(t, ring.Save(t.Context(), plain, nil))
	must(t, os.WriteFile(garbage, []byte("x"), 0o600))

	content, err := os.ReadFile(path)
	must(t, err)
	for _, secret := range []string{`"keyData"`, "XAesGcmKey", ring.IDs()[0]} {
		if bytes.Contains(content, []byte(secret)) {
			t.Errorf("the file contains %s: %s", secret, content)
		}
	}
	loaded, err := seal.Load(t.Context(), path, service)
	must(t, err)
	wantIDs(t, "what was saved is loaded", ring.IDs(), loaded.IDs())
	first, err := service.KeyID(t.Context())
	must(t, err)
	if loaded.EncryptedBy() != first || ring.EncryptedBy() != "" {
		t.Errorf("the file is encrypted by %q, a new keyring by %q, and the service's key is %q", loaded.EncryptedBy(), ring.EncryptedBy(), first)
	}
	parsed, err := seal.Parse(t.Context(), content, service)
	must(t, err)
	wantIDs(t, "the environment can have the content of the file", ring.IDs(), parsed.IDs())

	second := s.Plugin.Rotate()
	rotated, err := loaded.Rotate()
	must(t, err)
	must(t, rotated.Save(t.Context(), path, service))
	s.Plugin.Lose()
	loaded, err = seal.Load(t.Context(), path, service)
	must(t, err)
	wantIDs(t, "a new key is in the file", rotated.IDs(), loaded.IDs())
	if loaded.EncryptedBy() != second {
		t.Errorf("the file is encrypted by %q, and the service's key is %q", loaded.EncryptedBy(), second)
	}
	content, err = os.ReadFile(path)
	must(t, err)

	cases := map[string]struct {
		reason  string
		path    string
		service seal.KeyService
		kind    nf.Kind
		is      error
		says    string
	}{
		"Unknown":   {"the service is not configured", path, nil, nf.Invalid, seal.ErrEncrypted, path},
		"Plaintext": {"a file is not plaintext by mistake", plain, service, nf.Invalid, seal.ErrPlaintext, plain},
		"Garbage":   {"this file is no keyring at all", garbage, service, nf.Invalid, nil, "not an encrypted keyring"},
		"Missing":   {"there is no file", filepath.Join(dir, "none"), service, nf.NotFound, nil, "none"},
		"Other":     {"another service has other keys", path, protector(t, others), nf.Invalid, nil, second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, loadErr := seal.Load(t.Context(), c.path, c.service)
			_, followErr := seal.Follow(t.Context(), c.path, c.service, nil)
			for _, err := range []error{loadErr, followErr} {
				wantKind(t, c.reason, err, c.kind)
				if c.is != nil && !errors.Is(err, c.is) || err != nil && !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s: the error is %v, want %v and %q", c.reason, err, c.is, c.says)
				}
			}
		})
	}
	s.Stop()
	_, err = seal.Load(t.Context(), path, service)
	wantKind(t, "the service is down", err, nf.Unreachable)
	wantKind(t, "the service is down", loaded.Save(t.Context(), path, service), nf.Unreachable)
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, content) {
		t.Errorf("a save that failed has changed the file: %v", err)
	}
}

// TestEnvelopeTampered changes each part of an encrypted keyring.
func TestEnvelopeTampered(t *testing.T) {
	s := kmstest.Start(t)
	service := protector(t, s)
	dir := t.TempDir()
	content := func(name string) []byte {
		path := filepath.Join(dir, name)
		must(t, generate(t).Save(t.Context(), path, service))
		content, err := os.ReadFile(path)
		must(t, err)
		return content
	}
	good, other := content("good"), content("other")
	fields := func(content []byte) (out map[string]any) {
		must(t, json.Unmarshal(content, &out))
		return out
	}
	cases := map[string]struct {
		reason string
		edit   func(e, other map[string]any)
		says   string
	}{
		"Keyring":    {"the keyring of another file", func(e, other map[string]any) { e["keyring"] = other["keyring"] }, "decryption failed"},
		"NoKeyring":  {"no keyring", func(e, _ map[string]any) { delete(e, "keyring") }, "decryption failed"},
		"WrappedKey": {"the data key of another file", func(e, other map[string]any) { e["wrapped_key"] = other["wrapped_key"] }, "failed to decrypt"},
		"DataKey": {"all of another data key", func(e, other map[string]any) {
			e["wrapped_key"], e["annotations"] = other["wrapped_key"], other["annotations"]
		}, "decryption failed"},
		"NoWrappedKey": {"no data key", func(e, _ map[string]any) { delete(e, "wrapped_key") }, "ciphertext"},
		"KeyID":        {"a key that the service does not have", func(e, _ map[string]any) { e["key_id"] = "x" }, `there is no key \"x\"`},
		"NoKeyID":      {"no key", func(e, _ map[string]any) { delete(e, "key_id") }, "id of the key"},
		"Annotations":  {"the annotations of another data key", func(e, other map[string]any) { e["annotations"] = other["annotations"] }, "failed to decrypt"},
		"Version":      {"a form of a later release", func(e, _ map[string]any) { e["version"] = 2 }, "format version 2"},
		"Field":        {"a field of a later release", func(e, _ map[string]any) { e["more"] = 1 }, "unknown field"},
		"Type":         {"text instead of base64", func(e, _ map[string]any) { e["keyring"] = "*" }, "base64"},
		"Format":       {"another document", func(e, _ map[string]any) { e["format"] = "x" }, "not an encrypted keyring"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := fields(good)
			c.edit(e, fields(other))
			text, err := json.Marshal(e)
			must(t, err)
			_, err = seal.Parse(t.Context(), text, service)
			wantKind(t, c.reason, err, nf.Invalid)
			if err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: the error is %v, want %q", c.reason, err, c.says)
			}
		})
	}
	for _, text := range [][]byte{good[:len(good)/2], append(bytes.Clone(good), "{}"...)} {
		_, err := seal.Parse(t.Context(), text, service)
		wantKind(t, "half a file, or more than one", err, nf.Invalid)
	}
	compact, err := json.Marshal(fields(good))
	must(t, err)
	if _, err := seal.Parse(t.Context(), compact, service); err != nil {
		t.Errorf("white space is not a part of the keyring: %v", err)
	}
}

// TestSaveChecksService does not replace a file by one that cannot be decrypted.
func TestSaveChecksService(t *testing.T) {
	cases := map[string]struct {
		reason string
		fault  simulator.Fault
		says   string
	}{
		"Other": {"the service returns another data key", simulator.Fault{Method: "Decrypt", Decrypt: func([]byte) []byte { return make([]byte, 32) }}, "another data key"},
		"Short": {"the service returns a part of the data key", simulator.Fault{Method: "Decrypt", Decrypt: func(dek []byte) []byte { return dek[:16] }}, "another data key"},
		"None":  {"the service may only encrypt", simulator.Fault{Method: "Decrypt", Code: codes.PermissionDenied}, "PermissionDenied"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := kmstest.Start(t)
			service, path := protector(t, s), filepath.Join(t.TempDir(), "keys")
			ring := generate(t)
			must(t, ring.Save(t.Context(), path, nil))
			loaded, err := seal.Load(t.Context(), path, nil)
			must(t, err)
			s.Plugin.Fail(c.fault, 0)
			err = loaded.Save(t.Context(), path, service)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: the error is %v, want %q", c.reason, err, c.says)
			}
			if content, err := os.ReadFile(path); err != nil || !bytes.Equal(content, ring.Text()) {
				t.Errorf("%s: the file has changed, %v", c.reason, err)
			}
			must(t, loaded.Save(t.Context(), path, service))
			s.Plugin.Fail(simulator.Fault{Method: "Decrypt", Decrypt: func(dek []byte) []byte { return dek[:16] }}, 0)
			_, err = seal.Load(t.Context(), path, service)
			wantKind(t, "a data key has one size", err, nf.Invalid)
		})
	}
}

// fixed is a service with one data key, for stored texts.
type fixed struct{}

func (fixed) Wrap(context.Context, []byte) (seal.WrappedKey, error) {
	return seal.WrappedKey{}, errors.New("it only decrypts")
}

func (fixed) Unwrap(_ context.Context, w seal.WrappedKey) ([]byte, error) {
	if w.KeyID != "projects/a/keys/1" || string(w.Ciphertext) != "wrapped" {
		return nil, errors.New("it has no such data key")
	}
	return []byte("0123456789abcdef0123456789abcdef"), nil
}

// goldenEnvelope is goldenKeyring as this release writes it.
const goldenEnvelope = `{
  "format": "k8splugin-encrypted-keyring",
  "version": 1,
  "key_id": "projects/a/keys/1",
  "wrapped_key": "d3JhcHBlZA==",
  "annotations": {
    "a.example": "bm90ZQ==",
    "z.a.example": ""
  },
  "keyring": "` +
	"Y2Rx1e+DFgZRwd6uZnScQkUkvVXJwlAi/OJjMXhZNGfRsdy6WlB1EbX20hsH5fX3ylq6DBpuzwsMq+0+6y+bsacaPNHPgov9Fe43D/1nU" +
	"J40oeH5pJhSAcb+v/sUkn81Cp656mvMeF2CsXjTLzkilnZ3unKYHPlu4sQa4fqKbuLHo0UMTIwykgGCoFVbRW4/ei+5SM0DUT0ixnBjcs" +
	"+KdHQEmkvz/cwcQjoeV9GXkjoSGelr+BNaQUwu8iI1ee7MlLJNPSxu9sfzhUW2mjuwJlvye7h8zOg3nebuN8PG3TZtT0wfAYs0kRT2/+D" +
	"42HVQwOPmfAkL5odVZ1v8BGwbYnriehgnTrqBO6fxPVzRhhgTT92C4p3ipvcHkQOtHAFAyriYpGvGntM=" +
	`"
}
`

func TestGoldenEnvelope(t *testing.T) {
	k, err := seal.Parse(t.Context(), nf.Secret(goldenEnvelope), fixed{})
	must(t, err)
	wantIDs(t, "later releases read what this one writes", []string{"1063413403"}, k.IDs())
}

// FuzzParseEncrypted reads whatever is said to be an encrypted keyring: only the one
// that was encrypted is accepted.
func FuzzParseEncrypted(f *testing.F) {
	golden, err := seal.Parse(f.Context(), nf.Secret(goldenKeyring), nil)
	must(f, err)
	f.Add("")
	f.Add(goldenKeyring)
	f.Add(goldenEnvelope)
	f.Add(strings.Replace(goldenEnvelope, "a.example", "b.example", 1))
	f.Add(`{"format":"k8splugin-encrypted-keyring","version":1}`)
	f.Add(`{"format":"k8splugin-encrypted-keyring","version":1,"key_id":"projects/a/keys/1","wrapped_key":"d3JhcHBlZA==","annotations":{"":null},"keyring":""}`)
	f.Fuzz(func(t *testing.T, text string) {
		k, err := seal.Parse(t.Context(), nf.Secret(text), fixed{})
		if err != nil {
			if nf.KindOf(err) != nf.Invalid {
				t.Errorf("the error is %v (%s)", err, nf.KindOf(err))
			}
			return
		}
		if !bytes.Equal(k.Text(), golden.Text()) {
			t.Errorf("%q is accepted as %v", text, k)
		}
	})
}
