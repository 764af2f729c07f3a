package seal_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/seal"
)

// FuzzOpen reads whatever is stored: only what was sealed opens.
func FuzzOpen(f *testing.F) {
	good, err := hex.DecodeString(goldenValue)
	must(f, err)
	compressed, err := hex.DecodeString(compressedValue)
	must(f, err)
	keys, err := seal.Parse(f.Context(), nf.Secret(goldenKeyring), nil)
	must(f, err)
	f.Add([]byte(nil))
	f.Add([]byte(goldenPlain))
	f.Add(good)
	f.Add(good[:20])
	f.Add(compressed)
	f.Add([]byte("\xb5k8seal\x01\x011\x00\x00\x00\x01x"))
	f.Add([]byte("\xb5k8seal\x03"))
	f.Fuzz(func(t *testing.T, value []byte) {
		raw := memory.New()
		if len(value) > 1<<20 {
			return
		}
		must(t, rawPut(t, raw, goldenKey, value))
		kv := seal.New(raw, keys)
		_, err := kv.Get(t.Context(), goldenKey)
		if err == nil != (bytes.Equal(value, good) || bytes.Equal(value, compressed)) {
			t.Errorf("%x: the error is %v", value, err)
		}
		if err != nil && nf.KindOf(err) != nf.Internal && nf.ReasonOf(err) != nf.ReasonKey {
			t.Errorf("%x: the error is %v (%s)", value, err, nf.KindOf(err))
		}
		status, err := kv.Status(t.Context())
		must(t, err)
		counted := status.Plain
		for _, n := range status.Records {
			counted += n
		}
		if counted != 1 {
			t.Errorf("%x: %d records are counted, want 1: %+v", value, counted, status)
		}
	})
}

// FuzzParse reads whatever is said to be a keyring: it is refused, or it seals
// and opens, and its text says the same.
func FuzzParse(f *testing.F) {
	f.Add("")
	f.Add(goldenKeyring)
	f.Add(strings.Replace(goldenKeyring, "TINK", "RAW", 1))
	f.Add(strings.Replace(goldenKeyring, "ENABLED", "DISABLED", 1))
	f.Add(strings.Replace(goldenKeyring, "XAesGcmKey", "AesGcmKey", 1))
	f.Add(`{"primaryKeyId":1,"key":[]}`)
	f.Add(`{"key":[{"keyId":0,"keyData":{}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		k, err := seal.Parse(t.Context(), nf.Secret(text), nil)
		if err != nil {
			if nf.KindOf(err) != nf.Invalid {
				t.Errorf("the error is %v (%s)", err, nf.KindOf(err))
			}
			return
		}
		again, err := seal.Parse(t.Context(), k.Text(), nil)
		must(t, err)
		wantIDs(t, "the text says the same", k.IDs(), again.IDs())
		raw := memory.New()
		put(t, seal.New(raw, k), "a", "value")
		if got := get(t, seal.New(raw, again), "a"); got != "value" {
			t.Errorf("what it sealed is %q", got)
		}
	})
}
