package store_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"sigs.k8s.io/randfill"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// TestDecode has that records are decoded as encoding/json, which encodes them, decodes
// them.
func TestDecode(t *testing.T) {
	t.Parallel()
	type odd struct {
		Took    time.Duration
		Digest  [4]byte
		Raw     json.RawMessage
		Any     map[string]any
		Text    []byte
		ByTime  map[time.Duration]string
		Nothing *time.Duration
		nf.Ref
	}
	fill := randfill.NewWithSeed(1).NilChance(0.3).NumElements(0, 3).MaxDepth(12).Funcs(
		func(at *time.Time, c randfill.Continue) { *at = time.Unix(c.Int63n(1<<32), c.Int63n(1e9)).UTC() },
		func(raw *json.RawMessage, _ randfill.Continue) { *raw = json.RawMessage(`{"a":[1,2.5,"x",null]}`) },
		func(v *any, c randfill.Continue) {
			*v = []any{nil, "text\u2028<>&", true, 1.5, map[string]any{"a": []any{}, "b": nil}}[c.Intn(5)]
		},
	)
	for range 100 {
		for _, record := range []any{
			&nf.Operation{}, &nf.Instance{}, &nf.Region{}, &nf.Package{}, &nf.Revision{}, &[]nf.Change{}, &nf.Shared{}, &nf.AuditEntry{}, &nf.Site{}, &odd{},
		} {
			fill.Fill(record)
			raw, err := json.Marshal(record)
			if err != nil {
				t.Fatal(err)
			}
			want, got := reflect.New(reflect.TypeOf(record).Elem()), reflect.New(reflect.TypeOf(record).Elem())
			if err := json.Unmarshal(raw, want.Interface()); err != nil {
				t.Fatal(err)
			}
			if err := store.Decode(raw, got.Interface()); err != nil {
				t.Fatalf("cannot decode %s: %v", raw, err)
			}
			if !reflect.DeepEqual(want.Interface(), got.Interface()) {
				t.Fatalf("%T: -want +got:\n%s\n%s\nof %s", record, encoded(t, want), encoded(t, got), raw)
			}
		}
	}
}

func encoded(t *testing.T, v reflect.Value) []byte {
	t.Helper()
	raw, err := json.Marshal(v.Interface())
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestDecodeIgnores has what a later version may have written, and what is no record.
func TestDecodeIgnores(t *testing.T) {
	t.Parallel()
	var ref nf.Ref
	if err := store.Decode([]byte(`{"name":"a","later":{"x":[1]}}`), &ref); err != nil || ref.Name != "a" {
		t.Errorf("a field of a later version: %+v, %v", ref, err)
	}
	for _, raw := range []string{"", "{", `{"name":1}`, `[]`, `{"name":"a"} {}`} {
		if err := store.Decode([]byte(raw), new(nf.Ref)); err == nil {
			t.Errorf("%q is decoded", raw)
		}
	}
}
