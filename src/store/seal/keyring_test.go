package seal_test

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/mac"
	tinkpb "github.com/tink-crypto/tink-go/v2/proto/tink_go_proto"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/seal"
)

func TestRotate(t *testing.T) {
	first := generate(t)
	second, err := first.Rotate()
	must(t, err)
	if len(first.IDs()) != 1 || len(second.IDs()) != 2 || second.IDs()[0] == first.IDs()[0] || second.IDs()[1] != first.IDs()[0] {
		t.Errorf("%v became %v: a new key comes first, and the old one stays", first.IDs(), second.IDs())
	}
	raw := memory.New()
	put(t, seal.New(raw, first), "old", "value")
	put(t, seal.New(raw, second), "new", "value")
	for _, key := range []string{"old", "new"} {
		if got := get(t, seal.New(raw, second), key); got != "value" {
			t.Errorf("with both keys %q is %q", key, got)
		}
	}
	_, err = seal.New(raw, first).Get(t.Context(), "new")
	wantKind(t, "who has not got the new key yet", err, nf.Unreachable)
}

// TestRotateInTwoSteps gives the new key to every replica before one uses it.
func TestRotateInTwoSteps(t *testing.T) {
	before := generate(t)
	added, id, err := before.Add()
	must(t, err)
	wantIDs(t, "a key that was added waits", []string{before.IDs()[0], id}, added.IDs())
	promoted, err := added.Promote(id)
	must(t, err)
	wantIDs(t, "a key that was promoted comes first", []string{id, before.IDs()[0]}, promoted.IDs())
	raw := memory.New()
	put(t, seal.New(raw, promoted), "a", "value")
	if got := get(t, seal.New(raw, added), "a"); got != "value" {
		t.Errorf("a replica that does not know yet that it is the primary reads %q", got)
	}
	_, err = before.Promote(id)
	wantKind(t, "nobody is promoted who is not there", err, nf.NotFound)
}

func TestPrune(t *testing.T) {
	k := generate(t)
	for range 3 {
		var err error
		k, err = k.Rotate()
		must(t, err)
	}
	ids := k.IDs()
	cases := map[string]struct {
		reason string
		keep   []string
		want   []string
	}{
		"Nothing": {"the primary always stays", nil, ids[:1]},
		"Some":    {"what is kept is kept", []string{ids[2], "4711"}, []string{ids[0], ids[2]}},
		"All":     {"nobody has to go", ids, ids},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pruned, err := k.Prune(c.keep...)
			must(t, err)
			wantIDs(t, c.reason, c.want, pruned.IDs())
			parsed, err := seal.Parse(t.Context(), pruned.Text(), nil)
			must(t, err)
			wantIDs(t, "the text says the same", c.want, parsed.IDs())
		})
	}
}

func TestTooManyKeys(t *testing.T) {
	most := slices.Repeat([]*tinkpb.KeyTemplate{aead.AES256GCMKeyTemplate()}, 64)
	k, err := seal.Parse(t.Context(), nf.Secret(foreign(t, most...)), nil)
	must(t, err)
	_, err = k.Rotate()
	wantKind(t, "there is an end to it", err, nf.TooLarge)
	_, err = seal.Parse(t.Context(), nf.Secret(foreign(t, append(most, most[0])...)), nil)
	wantKind(t, "there is an end to it", err, nf.Invalid)
}

// foreign returns a keyset as another program makes it, of which the last key
// is the primary.
func foreign(t *testing.T, templates ...*tinkpb.KeyTemplate) string {
	t.Helper()
	m := keyset.NewManager()
	for _, template := range templates {
		id, err := m.Add(template)
		must(t, err)
		must(t, m.SetPrimary(id))
	}
	handle, err := m.Handle()
	must(t, err)
	var text strings.Builder
	must(t, insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&text)))
	return text.String()
}

func TestParse(t *testing.T) {
	const secret = "EgIIDBog3/PjLJpKLh8dB50n5fMjBryZFSa8xRLISldIFFvx/+s="
	disabled := strings.Replace(foreign(t, aead.AES256GCMKeyTemplate(), aead.AES256GCMKeyTemplate()), "ENABLED", "DISABLED", 1)
	cases := map[string]struct {
		reason string
		text   string
		keys   int // 0: refused
	}{
		"Golden":     {"what we wrote we read", goldenKeyring, 1},
		"Spaces":     {"a file ends with a line feed", "\n " + goldenKeyring + "\n", 1},
		"Foreign":    {"other tools make keys, too", foreign(t, aead.AES256GCMNoPrefixKeyTemplate(), aead.XChaCha20Poly1305KeyTemplate()), 2},
		"Disabled":   {"a key that is disabled is not there", disabled, 1},
		"Empty":      {"nothing is no keyring", "", 0},
		"NoJSON":     {"a key alone is no keyring", secret, 0},
		"Cut":        {"half a keyring is none", goldenKeyring[:len(goldenKeyring)-9], 0},
		"Twice":      {"two are not one", goldenKeyring + goldenKeyring, 0},
		"NoKey":      {"a keyring has a key", `{"primaryKeyId":1,"key":[]}`, 0},
		"NoPrimary":  {"a keyring has a primary", strings.Replace(goldenKeyring, `"primaryKeyId":1063413403`, `"primaryKeyId":1`, 1), 0},
		"BadKey":     {"a key has its length", strings.Replace(goldenKeyring, secret, secret[:8], 1), 0},
		"Unknown":    {"a field is known", strings.Replace(goldenKeyring, `"status"`, `"secret":"`+secret+`","status"`, 1), 0},
		"MAC":        {"a key that signs does not encrypt", foreign(t, mac.HMACSHA256Tag256KeyTemplate()), 0},
		"MACBeside":  {"nor does it beside another", foreign(t, mac.HMACSHA256Tag256KeyTemplate(), aead.AES256GCMKeyTemplate()), 0},
		"TooLong":    {"there is an end to it", strings.Repeat(" ", 1<<20) + goldenKeyring, 0},
		"OtherThing": {"JSON alone is no keyring", `["` + secret + `"]`, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			k, err := seal.Parse(t.Context(), nf.Secret(c.text), nil)
			if c.keys == 0 {
				wantKind(t, c.reason, err, nf.Invalid)
				if err != nil && strings.Contains(err.Error(), secret[:8]) {
					t.Errorf("the error tells the key: %v", err)
				}
				return
			}
			if err != nil || len(k.IDs()) != c.keys {
				t.Fatalf("%s: %d keys are wanted, found %v, error %v", c.reason, c.keys, k, err)
			}
			raw := memory.New()
			put(t, seal.New(raw, k), "a", "value")
			if got := get(t, seal.New(raw, k), "a"); got != "value" {
				t.Errorf("%s: what it sealed is %q", c.reason, got)
			}
		})
	}
}

func TestKeyringIsNotShown(t *testing.T) {
	k := generate(t)
	path := filepath.Join(t.TempDir(), "keys")
	must(t, k.Save(t.Context(), path, nil))
	loaded, err := seal.Load(t.Context(), path, nil)
	must(t, err)
	want := "encryption keys " + k.IDs()[0]
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("keys", "keyring", loaded)
	slog.New(slog.NewTextHandler(&log, nil)).Info("keys", "keyring", *loaded)
	if n := strings.Count(log.String(), want); n != 2 || log.Len() > 300 {
		t.Errorf("a log shows more than the ids: %s", log.String())
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, shown := range []any{loaded, *loaded} {
			if got := fmt.Sprintf(verb, shown); got != want {
				t.Errorf("%s shows more than the ids: %s", verb, got)
			}
		}
	}
}
