package istio

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"testing"
)

// FuzzAccept has istiod return any chain.
func FuzzAccept(f *testing.F) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"", "x", "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"} {
		f.Add(seed, seed, seed)
	}
	f.Fuzz(func(t *testing.T, leaf, between, roots string) {
		if c, err := accept([]string{leaf, between, roots}, nil, key); err == nil {
			t.Errorf("a certificate for %s is accepted, although nothing was signed for the key", c.id)
		}
	})
}
