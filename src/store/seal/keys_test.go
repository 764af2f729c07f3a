package seal_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/schema"
	"github.com/multicloud-k8s/k8splugin/src/store/seal"
)

// kms is a key service that has one key, and fails on request.
type kms struct {
	seal.KEK

	id        string
	find      error
	use       error
	oversized bool
}

func (k kms) ID() string { return k.id }

func (k kms) Primary(context.Context) (seal.KEK, error) { return k, k.find }

func (k kms) Find(context.Context, string) (seal.KEK, error) { return k, k.find }

func (k kms) Wrap(ctx context.Context, dek, ad []byte) ([]byte, error) {
	if k.oversized {
		return make([]byte, 2049), nil
	}
	if k.use != nil {
		return nil, k.use
	}
	return k.KEK.Wrap(ctx, dek, ad)
}

func (k kms) Unwrap(ctx context.Context, wrapped, ad []byte) ([]byte, error) {
	if k.use != nil {
		return nil, k.use
	}
	return k.KEK.Unwrap(ctx, wrapped, ad)
}

func TestKeyService(t *testing.T) {
	const uri = "kms://keys.example.org/k8splugin/1"
	inner, err := generate(t).Primary(t.Context())
	must(t, err)
	raw := memory.New()
	good := kms{KEK: inner, id: uri}
	put(t, seal.New(raw, good), "a", "value")
	if got := get(t, seal.New(raw, good), "a"); got != "value" {
		t.Errorf("by a key service the value is %q", got)
	}
	away := nf.E(nf.Unreachable, "ask", "the key service", nil)
	cases := map[string]struct {
		reason string
		keys   kms
		kind   nf.Kind
		why    string
	}{
		"Away":      {"a service that is away comes back", kms{KEK: inner, id: uri, use: away}, nf.Unreachable, "kms"},
		"NoKeys":    {"a service that is away comes back", kms{KEK: inner, id: uri, find: away}, nf.Unreachable, "kms"},
		"Refuses":   {"what cannot be unwrapped is damaged", kms{KEK: inner, id: uri, use: errors.New("value")}, nf.Internal, ""},
		"NoID":      {"a KEK without a name is a defect", kms{KEK: inner, find: errors.New("value")}, nf.Internal, ""},
		"Oversized": {"a wrapped key has its place", kms{KEK: inner, id: uri, oversized: true, use: errors.New("value")}, nf.Internal, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			kv := seal.New(raw, c.keys)
			_, getErr := kv.Get(t.Context(), "a")
			_, putErr := kv.Put(t.Context(), "b", nil, store.Any)
			for _, err := range []error{getErr, putErr} {
				wantKind(t, c.reason, err, c.kind)
				if nf.ReasonOf(err) != c.why {
					t.Errorf("%s: the reason is %q, want %q", c.reason, nf.ReasonOf(err), c.why)
				}
			}
		})
	}
	nameless := seal.New(raw, kms{KEK: inner, id: strings.Repeat("x", 256)})
	_, err = nameless.Put(t.Context(), "b", nil, store.Any)
	wantKind(t, "an id has its place", err, nf.Internal)
}

// TestLargestSeal has the longest id and wrapped key: the driver takes it.
func TestLargestSeal(t *testing.T) {
	kv := seal.New(memory.New(), largest{kms{id: strings.Repeat("x", 255)}})
	want := strings.Repeat("v", store.MaxValue)
	put(t, kv, "a", want)
	if got := get(t, kv, "a"); got != want {
		t.Errorf("a value of %d bytes came back as one of %d", len(want), len(got))
	}
	_, err := kv.Put(t.Context(), "a", []byte(want+"v"), store.Any)
	wantKind(t, "one byte above the limit", err, nf.TooLarge)
}

// largest keeps data keys as they are, in the longest form. It is no example.
type largest struct{ kms }

func (l largest) Primary(context.Context) (seal.KEK, error)      { return l, nil }
func (l largest) Find(context.Context, string) (seal.KEK, error) { return l, nil }

func (l largest) Wrap(_ context.Context, dek, _ []byte) ([]byte, error) {
	return append(make([]byte, 2048-len(dek)), dek...), nil
}

func (l largest) Unwrap(_ context.Context, wrapped, _ []byte) ([]byte, error) {
	return bytes.TrimLeft(wrapped, "\x00"), nil
}

// TestHeaderIsBound has one KEK go by two names: a value says which it was
// sealed by, and opens by no other.
func TestHeaderIsBound(t *testing.T) {
	inner, err := generate(t).Primary(t.Context())
	must(t, err)
	raw := memory.New()
	kv := seal.New(raw, kms{KEK: inner, id: "one"})
	put(t, kv, "a", "value")
	renamed := bytes.Replace(rawValue(t, raw, "a"), []byte("one"), []byte("two"), 1)
	must(t, rawPut(t, raw, "a", renamed))
	_, err = kv.Get(t.Context(), "a")
	wantKind(t, "the header is bound, too", err, nf.Internal)
}

// TestKeyInUse finds a key that is needed, in whatever is stored.
func TestKeyInUse(t *testing.T) {
	ring := generate(t)
	cases := map[string]struct {
		reason string
		plain  []string // keys whose records are not sealed
		sealed []string
		schema schema.Record // empty: none
		want   string
	}{
		"Empty":   {"nothing is sealed", nil, nil, schema.Record{}, ""},
		"Plain":   {"an earlier release did not seal", []string{"a", "b"}, nil, schema.Record{}, ""},
		"About":   {"what is about the store is never sealed", []string{"meta/schema"}, []string{"z"}, schema.Record{}, ring.IDs()[0]},
		"Migrate": {"the sealing of a plain store was interrupted", []string{"a", "z"}, []string{"m"}, schema.Record{}, ring.IDs()[0]},
		"Opened":  {"a store that was opened with a key needs it before the first record", nil, nil, schema.Record{Version: 1, SealedBy: "k1"}, "k1"},
		"Rotated": {"a record proves more than the schema does", nil, []string{"z"}, schema.Record{Version: 1, SealedBy: "k1"}, ring.IDs()[0]},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			raw := memory.New()
			for _, key := range tc.plain {
				put(t, raw, key, "plain")
			}
			for _, key := range tc.sealed {
				put(t, seal.New(raw, ring), key, "value")
			}
			if tc.schema != (schema.Record{}) {
				must(t, schema.Write(t.Context(), raw, tc.schema))
			}
			if got, err := seal.KeyInUse(t.Context(), raw); got != tc.want || err != nil {
				t.Errorf("%s: it is %q, %v, want %q", tc.reason, got, err, tc.want)
			}
		})
	}
}
