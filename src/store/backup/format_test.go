package backup_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/backup"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// TestReadableByHand finds a record with nothing but age and lines of JSON.
func TestReadableByHand(t *testing.T) {
	stream, identity := write(t, filled(t))
	plain, err := age.Decrypt(bytes.NewReader(stream), identity)
	must(t, err)
	text, err := io.ReadAll(plain)
	must(t, err)
	lines := strings.Split(string(text), "\n")
	if want := `{"format":"k8splugin-backup","version":1,"schema":2,"created":"2026-01-02T03:04:05Z"}`; lines[0] != want {
		t.Errorf("the first line is %s, want %s", lines[0], want)
	}
	if want := `{"key":"claims/1","value":"e30="}`; !slices.Contains(lines, want) {
		t.Errorf("no line is %s", want)
	}
}

// TestGolden reads what the first release with backups wrote.
func TestGolden(t *testing.T) {
	identities, err := backup.Identities(nf.Secret(goldenIdentity))
	must(t, err)
	stream, err := base64.StdEncoding.DecodeString(golden)
	must(t, err)
	to := newSite(t, memory.New())
	_, err = backup.Restore(t.Context(), to.config(), bytes.NewReader(stream), identities...)
	must(t, err)
	if diff := cmp.Diff(map[string]string{"regions/east": `{"id":"east"}`}, records(t, to.sealed())); diff != "" {
		t.Errorf("what the first release wrote (-want +got):\n%s", diff)
	}
}

// TestCut cuts a backup at many places: it is refused, and nothing is written.
func TestCut(t *testing.T) {
	stream, identity := write(t, filled(t))
	places := []int{0, 1, 20, 100, 150, 200, 250, len(stream) - 17, len(stream) - 16, len(stream) - 1}
	for chunk := 1; chunk < len(stream)/65536; chunk++ { // age's own chunks end here
		places = append(places, chunk*65552, chunk*65552+300, chunk*65536)
	}
	for _, n := range places {
		wantRefused(t, fmt.Sprintf("cut after %d of %d bytes", n, len(stream)), stream[:n], nf.Invalid, identity)
	}
	wantRefused(t, "a byte is too much", append(bytes.Clone(stream), 0), nf.Invalid, identity)
	wantRefused(t, "twice is not once", slices.Concat(stream, stream), nf.Invalid, identity)
}

// TestDamaged turns bits of a backup over: it is refused, and nothing is
// written.
func TestDamaged(t *testing.T) {
	small := newSite(t, memory.New())
	must(t, small.start(t))
	put(t, small.sealed(), "a", "value")
	stream, identity := write(t, small)
	for i := range stream {
		bad := bytes.Clone(stream)
		bad[i] ^= 1
		to := newSite(t, memory.New())
		_, err := backup.Restore(t.Context(), to.config(), bytes.NewReader(bad), identity)
		// In age's header it may look as if the backup were for another recipient.
		if kind := nf.KindOf(err); err == nil || kind != nf.Invalid && kind != nf.Forbidden {
			t.Errorf("with another byte %d of %d the error is %v (%s)", i, len(stream), err, kind)
		}
		if found := keys(t, to.raw); len(found) > 0 {
			t.Errorf("with another byte %d, %v was written", i, found)
		}
	}
	long, identity := write(t, filled(t))
	rapid.Check(t, func(rt *rapid.T) {
		bad := bytes.Clone(long)
		bad[rapid.IntRange(0, len(bad)-1).Draw(rt, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
		if _, err := backup.Check(t.Context(), bytes.NewReader(bad), identity); err == nil {
			rt.Error("a bit was turned over, and nobody noticed")
		}
	})
}

// TestForged has contents that are encrypted well and are wrong.
func TestForged(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	must(t, err)
	const head = `{"format":"k8splugin-backup","version":1,"schema":2,"created":"2026-01-02T03:04:05Z"}` + "\n"
	const a, b = `{"key":"a","value":"eA=="}` + "\n", `{"key":"b","value":"eA=="}` + "\n"
	long := fmt.Sprintf(`{"key":"a","value":%q}`+"\n", strings.Repeat("eHh4", store.MaxValue/3+1))
	cases := map[string]struct {
		reason string
		plain  string
		kind   nf.Kind // Internal: it is right
	}{
		"Right":      {"what is right is restored", whole(head, a, b), nf.Internal},
		"Nothing":    {"an empty store has a backup, too", whole(head), nf.Internal},
		"Empty":      {"nothing is no backup", "", nf.Invalid},
		"NoHead":     {"a backup says what it is", whole(a, b), nf.Invalid},
		"Other":      {"a backup of something else", whole(strings.Replace(head, "k8splugin-", "other-", 1), a), nf.Invalid},
		"Later":      {"a later form is told from damage", whole(strings.Replace(head, `"version":1`, `"version":2`, 1), a), nf.Unsupported},
		"LaterStore": {"later contents are told from damage", whole(strings.Replace(head, `"schema":2`, `"schema":3`, 1), a), nf.Unsupported},
		"NoStore":    {"contents have a version", whole(strings.Replace(head, `"schema":2`, `"schema":0`, 1), a), nf.Invalid},
		"NoEnd":      {"a backup ends", head + a, nf.Invalid},
		"NoFeed":     {"its last line ends", strings.TrimSuffix(whole(head, a), "\n"), nf.Invalid},
		"More":       {"it ends once", whole(head, a) + b, nf.Invalid},
		"Count":      {"the count is right", strings.Replace(whole(head, a), `"records":1`, `"records":2`, 1), nf.Invalid},
		"Removed":    {"no entry is missing", strings.Replace(whole(head, a, b), a, "", 1), nf.Invalid},
		"Changed":    {"no entry is another", strings.Replace(whole(head, a, b), "eA==", "eQ==", 1), nf.Invalid},
		"Order":      {"the keys rise", whole(head, b, a), nf.Invalid},
		"Twice":      {"no key occurs twice", whole(head, a, a), nf.Invalid},
		"NoKey":      {"an entry has a key", whole(head, `{"value":"eA=="}`+"\n"), nf.Invalid},
		"BadKey":     {"a key is one that stores accept", whole(head, `{"key":"a\n","value":"eA=="}`+"\n"), nf.Invalid},
		"Meta":       {"what is about the store is not in it", whole(head, `{"key":"meta/restore","value":"eA=="}`+"\n"), nf.Invalid},
		"Base64":     {"a value is in base64", whole(head, `{"key":"a","value":"-"}`+"\n"), nf.Invalid},
		"Field":      {"an entry has two fields", whole(head, `{"key":"a","value":"","x":1}`+"\n"), nf.Invalid},
		"FieldTwice": {"a field has one value", whole(head, `{"key":"a","key":"b","value":"eA=="}`+"\n"), nf.Invalid},
		"FieldCase":  {"a field has one name", whole(head, `{"Key":"a","value":"eA=="}`+"\n"), nf.Invalid},
		"OneLine":    {"a line has one entry", whole(head, strings.TrimSpace(a)+b), nf.Invalid},
		"NoJSON":     {"a line is JSON", whole(head, "a=x\n"), nf.Invalid},
		"Long":       {"a value is one that stores accept", whole(head, long), nf.Invalid},
		"LongLine":   {"a line has an end", whole(head, strings.Repeat(" ", 3<<20)+a), nf.Invalid},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			stream := encrypt(t, c.plain, identity.Recipient())
			if c.kind != nf.Internal {
				wantRefused(t, c.reason, stream, c.kind, identity)
				return
			}
			to := newSite(t, memory.New())
			_, err := backup.Restore(t.Context(), to.config(), bytes.NewReader(stream), identity)
			must(t, err)
			must(t, to.start(t))
		})
	}
}

// wantRefused restores a bad backup into a new store, which stays as it is.
func wantRefused(t *testing.T, reason string, stream []byte, kind nf.Kind, identities ...age.Identity) {
	t.Helper()
	to := newSite(t, memory.New())
	_, err := backup.Restore(t.Context(), to.config(), bytes.NewReader(stream), identities...)
	wantKind(t, reason, err, kind)
	if err != nil && strings.Contains(err.Error(), secret) {
		t.Errorf("%s: the error tells a secret: %v", reason, err)
	}
	if found := keys(t, to.raw); len(found) > 0 {
		t.Errorf("%s: %v was written all the same", reason, found)
	}
}
