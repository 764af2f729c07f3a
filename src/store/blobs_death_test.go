package store_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// TestBlobsDeath has the process die at every write, before and after it is
// carried out, while a blob comes and while it goes: what is left is found, and
// what others keep is not touched.
func TestBlobsDeath(t *testing.T) {
	acts := map[string]func(t *testing.T, blobs store.Blobs) error{
		"Put": func(t *testing.T, blobs store.Blobs) error {
			_, _, err := blobs.Put(t.Context(), "mortal", bytes.NewReader(content(2*chunk)), math.MaxInt64)
			return err
		},
		"Keep": func(t *testing.T, blobs store.Blobs) error {
			s, err := blobs.Stage(t.Context(), bytes.NewReader(content(2*chunk)), math.MaxInt64)
			if err != nil {
				return err
			}
			defer s.Discard(t.Context())
			return s.Keep(t.Context(), "mortal")
		},
		"Discard": func(t *testing.T, blobs store.Blobs) error {
			s, err := blobs.Stage(t.Context(), bytes.NewReader(content(2*chunk)), math.MaxInt64)
			if err == nil {
				s.Discard(t.Context())
			}
			return err
		},
		"Release": func(t *testing.T, blobs store.Blobs) error {
			return blobs.Release(t.Context(), "mortal", digestOf(content(2*chunk)))
		},
	}
	for name, act := range acts {
		for _, carriedOut := range []bool{false, true} {
			for n := 1; ; n++ {
				kv := memory.New()
				blobs := store.NewBlobs(kv)
				other := put(t, blobs, "other", 3*chunk)
				want := keysOf(t, kv, "")
				if name == "Release" {
					put(t, blobs, "mortal", 2*chunk)
				}
				mortal := &deaths{at: n, carriedOut: carriedOut}
				_ = act(t, store.NewBlobs(storetest.Failing{KV: kv, Fail: mortal.before, Lose: mortal.after})) // whatever it says, it is dead
				left, err := blobs.Unfinished(t.Context())
				must(t, err)
				for range 2 { // finishing twice is finishing once
					for id := range left {
						must(t, blobs.Finish(t.Context(), id))
					}
				}
				must(t, blobs.Release(t.Context(), "mortal", digestOf(content(2*chunk))))
				if diff := cmp.Diff(want, keysOf(t, kv, "")); diff != "" {
					t.Fatalf("%s, dead at write %d (carried out: %t) (-want +got):\n%s", name, n, carriedOut, diff)
				}
				_, err = blobs.ReadAll(t.Context(), other)
				must(t, err)
				if mortal.writes < n {
					if n < 4 {
						t.Fatalf("%s has %d writes only", name, n-1)
					}
					break
				}
			}
		}
	}
}

// deaths kills a process at its nth write.
type deaths struct {
	at, writes int
	carriedOut bool
}

func (d *deaths) before(method, key string) error {
	if method == "Put" || method == "Delete" {
		d.writes++
	}
	if d.writes > d.at || d.writes == d.at && !d.carriedOut {
		return nf.E(nf.Unreachable, "write", key, nil)
	}
	return nil
}

func (d *deaths) after(method, key string) error {
	if d.writes >= d.at && (method == "Put" || method == "Delete") {
		return nf.E(nf.Unreachable, "write", key, nil)
	}
	return nil
}
