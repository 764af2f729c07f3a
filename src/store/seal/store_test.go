package seal_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/seal"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.RunLimit(t, store.MaxValue, func(t *testing.T) store.KV { return seal.New(memory.New(), generate(t)) })
}

// TestNothingInClear keeps records and blobs, and looks for them underneath.
func TestNothingInClear(t *testing.T) {
	const secret = "the kubeconfig of region east"
	raw := memory.New()
	kv := seal.New(raw, generate(t))
	regions := store.NewTable[nf.Region](kv, "regions/", "cloud region")
	must(t, regions.Insert(t.Context(), "east", nf.Region{ID: "east", Access: nf.Access{Kubeconfig: nf.Secret(secret)}}))
	content := bytes.Repeat([]byte(secret+","), 20_000) // of several chunks
	digest, _, err := store.NewBlobs(kv).Put(t.Context(), "user", bytes.NewReader(content), 1<<30)
	must(t, err)

	for _, e := range entries(t, raw) {
		for _, needle := range []string{secret, hex.EncodeToString([]byte(secret)), "kubeconfig", "user", "{"} {
			// One byte is anywhere by chance; what is searched for as JSON is its beginning.
			if needle == "{" && e.Value[0] != '{' {
				continue
			}
			if bytes.Contains(e.Value, []byte(needle)) {
				t.Errorf("%q is in clear in %q", needle, e.Key)
			}
		}
	}
	region, err := regions.Get(t.Context(), "east")
	must(t, err)
	got, err := store.NewBlobs(kv).ReadAll(t.Context(), digest)
	must(t, err)
	if string(region.Access.Kubeconfig) != secret || !bytes.Equal(got, content) {
		t.Errorf("what was put is not what is read: a kubeconfig of %d bytes and a blob of %d", len(region.Access.Kubeconfig), len(got))
	}
}

// TestSealedOnce has the same value stored twice: the stored values do not show that it is the same.
func TestSealedOnce(t *testing.T) {
	raw := memory.New()
	kv := seal.New(raw, generate(t))
	put(t, kv, "a", "value")
	first := rawValue(t, raw, "a")
	put(t, kv, "a", "value")
	if bytes.Contains(rawValue(t, raw, "a"), first[20:]) {
		t.Error("the same value is sealed the same way twice")
	}
}

func TestTampered(t *testing.T) {
	raw, keys := memory.New(), generate(t)
	kv := seal.New(raw, keys)
	put(t, kv, "record", "the content")
	good := rawValue(t, raw, "record")
	for i := range good {
		for _, bit := range []byte{0x01, 0x80} {
			bad := bytes.Clone(good)
			bad[i] ^= bit
			wantUnopened(t, fmt.Sprintf("byte %d is another", i), raw, kv, bad)
		}
	}
	for n := range good {
		wantUnopened(t, fmt.Sprintf("it is cut after %d bytes", n), raw, kv, good[:n])
	}
	wantUnopened(t, "it has a byte more", raw, kv, append(bytes.Clone(good), 0))
	must(t, rawPut(t, raw, "record", good))
	if got := get(t, kv, "record"); got != "the content" {
		t.Errorf("what was not changed is %q", got)
	}
}

// wantUnopened has a bad value under the key "record". One that names another
// KEK is not known to be bad.
func wantUnopened(t *testing.T, reason string, raw store.KV, kv *seal.Store, bad []byte) {
	t.Helper()
	must(t, rawPut(t, raw, "record", bad))
	_, err := kv.Get(t.Context(), "record")
	elsewhere := nf.KindOf(err) == nf.Unreachable && nf.ReasonOf(err) == nf.ReasonKey
	if err == nil || nf.KindOf(err) != nf.Internal && !elsewhere {
		t.Errorf("%s: the error is %v (%s), want one of kind %s", reason, err, nf.KindOf(err), nf.Internal)
	}
	if err != nil && (strings.Contains(err.Error(), "content") || !strings.Contains(err.Error(), `"record"`)) {
		t.Errorf("%s: the error names the record and nothing that is in it: %v", reason, err)
	}
}

func TestRefused(t *testing.T) {
	keys := generate(t)
	header := func(version byte, id string) string {
		return "\xb5k8seal" + string([]byte{version, byte(len(id))}) + id
	}
	cases := map[string]struct {
		reason string
		value  string
		kind   nf.Kind
		text   string
	}{
		"Plain":     {"a record of a former release is not read", `{"id":"east"}`, nf.Internal, "not encrypted"},
		"Empty":     {"nothing is not a sealed value", "", nf.Internal, "not encrypted"},
		"Magic":     {"a mark alone is not a seal", "\xb5k8seal", nf.Internal, "truncated"},
		"Version":   {"a form of later releases is told from damage", header(3, "1"), nf.Internal, "format version 3"},
		"NoID":      {"a KEK has a name", header(1, ""), nf.Internal, "has 0"},
		"BadID":     {"a KEK has a name that can be shown", header(1, "a\nb"), nf.Internal, "printable"},
		"Unknown":   {"a KEK may come later", header(1, "4711") + "\x00\x00\x00\x01xx", nf.Unreachable, `"4711"`},
		"NoWrapped": {"a data key has a length", header(1, keys.IDs()[0]) + "\x00\x00\x00\x00", nf.Internal, "decryption failed"},
		"Long":      {"a data key is not longer than the value", header(1, keys.IDs()[0]) + "\xff\xff\xff\xffx", nf.Internal, "decryption failed"},
		"NoCipher":  {"a data key is not everything", header(1, keys.IDs()[0]) + "\x00\x00\x00\x01x", nf.Internal, "decryption failed"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			raw := memory.New()
			must(t, rawPut(t, raw, "a", []byte(c.value)))
			kv := seal.New(raw, keys)
			_, err := kv.Get(t.Context(), "a")
			wantKind(t, c.reason, err, c.kind)
			if err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: the error is %q, want %q in it", c.reason, err, c.text)
			}
			wantKind(t, c.reason, listError(t, kv), c.kind)
		})
	}
}

// TestMoved copies what is stored under one key to another.
func TestMoved(t *testing.T) {
	keys := generate(t)
	rapid.Check(t, func(rt *rapid.T) {
		raw := memory.New()
		kv := seal.New(raw, keys)
		from := rapid.StringMatching(`[a-z/]{1,8}`).Draw(rt, "from")
		to := rapid.StringMatching(`[a-z/]{1,8}`).Filter(func(s string) bool { return s != from }).Draw(rt, "to")
		value := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(rt, "value")
		if _, err := kv.Put(t.Context(), from, value, store.Any); err != nil {
			rt.Fatal(err)
		}
		e, err := raw.Get(t.Context(), from)
		if err != nil {
			rt.Fatal(err)
		}
		if _, err := raw.Put(t.Context(), to, e.Value, store.Any); err != nil {
			rt.Fatal(err)
		}
		if got, err := kv.Get(t.Context(), from); err != nil || !bytes.Equal(got.Value, value) {
			rt.Errorf("where it was put it is %q, error %v", got.Value, err)
		}
		if _, err := kv.Get(t.Context(), to); err == nil || nf.KindOf(err) != nf.Internal {
			rt.Errorf("under another key the error is %v, want one of kind internal", err)
		}
	})
}

func TestWrongKeyring(t *testing.T) {
	raw := memory.New()
	put(t, seal.New(raw, generate(t)), "a", "value")
	stranger := seal.New(raw, generate(t))
	_, err := stranger.Get(t.Context(), "a")
	wantKind(t, "another keyring does not have the key", err, nf.Unreachable)
	if nf.ReasonOf(err) != nf.ReasonKey {
		t.Errorf("the reason is %q, want key", nf.ReasonOf(err))
	}
	must(t, stranger.Delete(t.Context(), "a", store.Any))
}

func TestReserved(t *testing.T) {
	raw := memory.New()
	kv := seal.New(raw, generate(t))
	must(t, rawPut(t, raw, "meta/schema", []byte(`{"version":2}`)))
	put(t, kv, "metadata", "is no more reserved than others")
	_, err := kv.Get(t.Context(), "meta/schema")
	wantKind(t, "what is in clear is not ours", err, nf.Invalid)
	_, err = kv.Put(t.Context(), "meta/schema", nil, store.Any)
	wantKind(t, "what is in clear is not ours", err, nf.Invalid)
	wantKind(t, "what is in clear is not ours", kv.Delete(t.Context(), "meta/schema", store.Any), nf.Invalid)
	for _, prefix := range []string{"", "meta", "meta/"} {
		for e, err := range kv.List(t.Context(), prefix, "") {
			if err != nil || e.Key != "metadata" {
				t.Errorf("the list of %q has %q, error %v", prefix, e.Key, err)
			}
		}
	}
}

// golden is what 0.1.0 wrote, and compressed is what later releases write. All must read
// both.
const (
	goldenKey     = "regions/east"
	goldenPlain   = `{"id":"east"}`
	goldenKeyring = `{"primaryKeyId":1063413403,"key":[{"keyData":{"typeUrl":"type.googleapis.com/google.crypto.tink.XAesGcmKey",` +
		`"value":"EgIIDBog3/PjLJpKLh8dB50n5fMjBryZFSa8xRLISldIFFvx/+s=","keyMaterialType":"SYMMETRIC"},` +
		`"status":"ENABLED","keyId":1063413403,"outputPrefixType":"TINK"}]}`
	goldenValue = "b56b387365616c010a313036333431333430330000004f013f62669b06d46a30117b032482a5897cf282480807652e453e" +
		"cb1b9f5a69fac889644b2534e414ba0f4907dceae2b8d89c80d17ba95c064eeab2d6c9deda6021ff20546c368fad321055c87822" +
		"ea9c41df7a95cf069932d214dca1addcecd773cc64603dfef7ab08e99abe84a6cc66787c3e1b6cc62cd4"
	compressedPlain = `{"subject":{"kind":"vnf_instance","id":"7f3a"},"operation":"01a2","scope":{"project":"default","region":"east"}}`
	compressedValue = "b56b387365616c020a313036333431333430330000004f013f62669b3a0de35b98f2d6430184eb281da229094184bb709d51a825" +
		"e4a7794a8383fe3e12dad35fcb1dc9056957e7fbe11f21e663ec480f4968bf40631052065b6969e7b687982a8019dc1840b6ab2b" +
		"f575a00a11271280c5afacc8aa35b0bcc23040613c7c0d1a79b83c25859a0303551c6a4c2f43a6861fb2bda5d1b1e5e318da0b02" +
		"570240cf1e9b6b48df689aa388"
)

func TestGolden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	must(t, os.WriteFile(path, []byte(goldenKeyring), 0o600))
	keys, err := seal.Load(t.Context(), path, nil)
	must(t, err)
	for plain, value := range map[string]string{goldenPlain: goldenValue, compressedPlain: compressedValue} {
		stored, err := hex.DecodeString(value)
		must(t, err)
		raw := memory.New()
		must(t, rawPut(t, raw, goldenKey, stored))
		if got := get(t, seal.New(raw, keys), goldenKey); got != plain {
			t.Errorf("the stored value is read as %q, want %q", got, plain)
		}
	}
}

func generate(t testing.TB) *seal.Keyring {
	t.Helper()
	k, err := seal.Generate()
	must(t, err)
	return k
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKind(t testing.TB, reason string, err error, kind nf.Kind) {
	t.Helper()
	if err == nil || nf.KindOf(err) != kind {
		t.Errorf("%s: the error is %v (%s), want one of kind %s", reason, err, nf.KindOf(err), kind)
	}
}

func put(t testing.TB, kv store.KV, key, value string) {
	t.Helper()
	_, err := kv.Put(t.Context(), key, []byte(value), store.Any)
	must(t, err)
}

func get(t testing.TB, kv store.KV, key string) string {
	t.Helper()
	e, err := kv.Get(t.Context(), key)
	must(t, err)
	return string(e.Value)
}

func rawPut(t testing.TB, raw store.KV, key string, value []byte) error {
	t.Helper()
	_, err := raw.Put(t.Context(), key, value, store.Any)
	return err
}

func rawValue(t testing.TB, raw store.KV, key string) []byte {
	t.Helper()
	e, err := raw.Get(t.Context(), key)
	must(t, err)
	return e.Value
}

func entries(t testing.TB, kv store.KV) []store.Entry {
	t.Helper()
	var out []store.Entry
	for e, err := range kv.List(t.Context(), "", "") {
		must(t, err)
		out = append(out, e)
	}
	if len(out) == 0 {
		t.Fatal("the store is empty")
	}
	return out
}

func listError(t testing.TB, kv store.KV) error {
	t.Helper()
	for _, err := range kv.List(t.Context(), "", "") {
		if err != nil {
			return err
		}
	}
	return nil
}

func wantIDs(t testing.TB, reason string, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", reason, diff)
	}
}
