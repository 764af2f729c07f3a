package seal

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"testing"
)

// TestDictionary fails if the dictionary changes: stored values could no longer be read.
func TestDictionary(t *testing.T) {
	sum := sha256.Sum256(dictionary)
	if got, want := hex.EncodeToString(sum[:]), "8739705395b26d3973fa3330ff4792a2eaab4b2a9285930a3b07bc9058d53034"; got != want {
		t.Errorf("the dictionary has the digest %s, want %s", got, want)
	}
}

func TestCompressor(t *testing.T) {
	noise := make([]byte, 256<<10)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		value  []byte
		most   int // bytes
	}{
		"Empty":  {"a value may be empty", nil, 1},
		"Short":  {"a value that does not get shorter stays as it is", []byte("x"), 2},
		"Record": {"the dictionary has the names of the fields", []byte(`{"operation":"01a2","subject":{"kind":"vnf_instance","id":"7f3a"},"project":"default","region":"east"}`), 50},
		"Noise":  {"an archive is compressed already", noise, len(noise) + 1},
		"Text":   {"a large plan repeats itself", bytes.Repeat([]byte(`{"apiVersion":"v1","kind":"ConfigMap"},`), 20_000), 2 << 10},
	}
	c := newCompressor()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			packed := c.pack(tc.value)
			got, err := c.unpack(packed)
			if err != nil || !bytes.Equal(got, tc.value) || len(packed) > tc.most {
				t.Errorf("%s: %d bytes became %d, want at most %d; then %d are read: %v", tc.reason, len(tc.value), len(packed), tc.most, len(got), err)
			}
		})
	}
}

// FuzzUnpack reads content that only a holder of the key can have written. It is refused, or
// has at most the size of a value.
func FuzzUnpack(f *testing.F) {
	c := newCompressor()
	f.Add([]byte(nil))
	f.Add([]byte{asIs})
	f.Add([]byte{zipped})
	f.Add([]byte{2, 'x'})
	f.Add(c.pack(bytes.Repeat([]byte("x"), 1<<20)))
	f.Add(c.pack(bytes.Repeat([]byte("x"), 2<<20))) // larger than a value
	f.Fuzz(func(t *testing.T, content []byte) {
		value, err := c.unpack(content)
		if err == nil && len(value) > max(1<<20, len(content)) {
			t.Errorf("%d bytes became %d", len(content), len(value))
		}
	})
}
