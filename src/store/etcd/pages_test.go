package etcd

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"
)

// makeTree returns a bbolt file, and what is in it, with small and large values,
// buckets in their parent's page, and pages that were freed.
func makeTree(t testing.TB) (content []byte, want []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: true, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(5, 5))
	for round := range 3 {
		if err := db.Update(func(tx *bolt.Tx) error {
			for name, records := range map[string]int{"many": 600, "few": 3, "none": 0} {
				b, err := tx.CreateBucketIfNotExists([]byte(name))
				if err != nil {
					return err
				}
				for i := range records {
					value := bytes.Repeat([]byte{byte(i)}, random.IntN(40))
					if name == "many" && i%100 == round {
						value = bytes.Repeat([]byte{byte(i)}, 20_000)
					}
					if err := b.Put(fmt.Appendf(nil, "key %06d", i*(1+round)), value); err != nil {
						return err
					}
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			return b.ForEach(func(k, v []byte) error {
				want = append(want, fmt.Sprintf("%s: %s=%x", name, k, v))
				return nil
			})
		})
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if content, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return content, want
}

// TestWalkTree reads the same from a file as bbolt does.
func TestWalkTree(t *testing.T) {
	content, want := makeTree(t)
	var got []string
	err := walkTree(bytes.NewReader(content), int64(len(content)), func(bucket string, key, value []byte) error {
		got = append(got, fmt.Sprintf("%s: %s=%x", bucket, key, value))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) < 600 {
		t.Errorf("%d records (-bbolt +got):\n%s", len(got), diff)
	}
}

// FuzzWalkTree damages a file in two places. Whatever they are, the walk ends, and
// what it takes for whole bbolt can use.
func FuzzWalkTree(f *testing.F) {
	content, _ := makeTree(f)
	for at := uint32(0); at < 64<<10; at += 509 {
		f.Add(at, uint32(1<<(at%32)), at*7, uint32(0))
	}
	f.Fuzz(func(t *testing.T, at1, bits1, at2, bits2 uint32) {
		damaged := bytes.Clone(content)
		for at, bits := range map[uint32]uint32{at1: bits1, at2: bits2} {
			for i := range uint32(4) {
				damaged[(at+i)%uint32(len(damaged))] ^= byte(bits >> (8 * i))
			}
		}
		if walkTree(bytes.NewReader(damaged), int64(len(damaged)), func(string, []byte, []byte) error { return nil }) != nil {
			return
		}
		path := filepath.Join(t.TempDir(), "db")
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: true})
		if err != nil {
			t.Fatalf("bbolt does not open it: %v", err)
		}
		if err := db.Update(func(tx *bolt.Tx) error {
			return tx.ForEach(func(_ []byte, b *bolt.Bucket) error {
				if err := b.ForEach(func([]byte, []byte) error { return nil }); err != nil {
					return err
				}
				return b.Put([]byte("key"), []byte("value"))
			})
		}); err != nil {
			t.Errorf("bbolt cannot use it: %v", err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
}
