package onapstore

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"
)

func anInstance() []Instance {
	return []Instance{{ID: "sad_bell", Request: Request{Definition: "a/b", Version: "1", Profile: "p"}}}
}

const root = configRoot + "a/b/1/p/sad_bell/"

func pairsOf(texts ...string) []pair {
	var out []pair
	for i := 0; i < len(texts); i += 2 {
		out = append(out, pair{root + texts[i], []byte(texts[i+1])})
	}
	return out
}

func TestAssign(t *testing.T) {
	t.Parallel()
	const one, two = `{"config-new":{"template-name":"t","values":{"n":1}},"action":"POST"}`, `{"config-new":{"template-name":"t","values":{"n":2}},"action":"PUT"}`
	cases := map[string]struct {
		reason string
		pairs  []pair
		want   []Configuration
		told   string // in one of the findings; empty: there are none
	}{
		"Deleted": {
			"a deletion is a version that repeats what was deleted",
			pairsOf("configversion/c/1/", one, "configversion/c/2/", `{"config-prev":{"template-name":"t","values":{"n":1}},"action":"DELETE"}`, "counter/c/", "2"),
			[]Configuration{{Name: "c", Current: 2, Versions: []Version{
				{Number: 1, Template: "t", Values: json.RawMessage(`{"n":1}`)}, {Number: 2, Deleted: true, Template: "t", Values: json.RawMessage(`{"n":1}`)},
			}}}, "",
		},
		"DeletedData": {
			"a deletion leaves the data of what was deleted",
			pairsOf("configdata/c/", `{"template-name":"t","values":{"n":1}}`, "configversion/c/1/", one,
				"configversion/c/2/", `{"config-new":{"template-name":"t","values":{"n":1}},"config-prev":{"template-name":"t","values":{"n":1}},"action":"DELETE"}`, "counter/c/", "2"),
			[]Configuration{{Name: "c", Current: 2, Versions: []Version{
				{Number: 1, Template: "t", Values: json.RawMessage(`{"n":1}`)}, {Number: 2, Deleted: true, Template: "t", Values: json.RawMessage(`{"n":1}`)},
			}}}, "",
		},
		"Slashes": {
			"nothing in a key is escaped",
			pairsOf("configdata/c/d/", `{"template-name":"t"}`, "counter/c/d/", "1", "configtag/c/d/x/", "1"),
			[]Configuration{{Name: "c/d", Current: 1, InForce: true, Versions: []Version{{Number: 1, Template: "t"}}, Tags: []Tag{{"x", 1}}}}, "",
		},
		"Counted": {
			"what is behind the counter was taken back",
			pairsOf("configdata/c/", `{"template-name":"t","values":{"n":1}}`, "configversion/c/1/", one, "configversion/c/2/", two, "counter/c/", "1"),
			[]Configuration{{Name: "c", Current: 1, InForce: true, Versions: []Version{{Number: 1, Template: "t", Values: json.RawMessage(`{"n":1}`)}}}},
			"version 2 is newer",
		},
		"Interrupted": {
			"of two that differ, what ONAP shows counts",
			pairsOf("configdata/c/", `{"template-name":"t","values":{"n":9}}`, "configversion/c/1/", one, "counter/c/", "1"),
			[]Configuration{{Name: "c", Current: 1, InForce: true, Versions: []Version{{Number: 1, Template: "t", Values: json.RawMessage(`{"n":9}`)}}}},
			"differs from version 1",
		},
		"NoCounter": {
			"without a counter the newest version counts",
			pairsOf("configdata/c/", `{"template-name":"t","values":{"n":2}}`, "configversion/c/2/", two),
			[]Configuration{{Name: "c", Current: 2, InForce: true, Versions: []Version{{Number: 2, Template: "t", Values: json.RawMessage(`{"n":2}`)}}}},
			"counter is missing",
		},
		"TagOfNothing": {
			"a tag of a version that is gone is left out",
			pairsOf("configdata/c/", `{"template-name":"t"}`, "counter/c/", "1", "configtag/c/x/", "7"),
			[]Configuration{{Name: "c", Current: 1, InForce: true, Versions: []Version{{Number: 1, Template: "t"}}}}, "version 7, which does not exist",
		},
		"Nameless": {
			"ONAP loses the name of a configuration in an update that does not repeat it",
			pairsOf("configdata//", `{}`), nil, "without a name",
		},
		"Strange": {"what nobody knows is told", pairsOf("more/c/", `{}`), nil, "are unknown"},
		"Values":  {"values are an object", pairsOf("configdata/c/", `{"values":[1]}`), nil, "not an object"},
		"Number":  {"a counter is a number", pairsOf("counter/c/", "-1"), nil, "not a version number"},
		"Stray": {
			"an upgrade to another version leaves the configurations where nobody looks",
			[]pair{{configRoot + "a/b/0/p/sad_bell/counter/c/", []byte("1")}}, nil, "not belong to an instance",
		},
		"NoJSON": {
			"what cannot be read is told with its key, and without what is in it",
			pairsOf("configversion/c/1/", `{"config-new":do-not-show-me`), nil, "it is not valid JSON from byte 15 on",
		},
		"Short": {"a version has a number", pairsOf("configversion/c/", one), nil, "not complete"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := anInstance()
			findings := assign(in, tc.pairs)
			if diff := cmp.Diff(tc.want, in[0].Configurations, cmp.Transformer("text", func(m json.RawMessage) string { return string(m) })); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if text := fmt.Sprint(findings); tc.told == "" && len(findings) > 0 || !strings.Contains(text, tc.told) {
				t.Errorf("%s: findings %s, want %q", tc.reason, text, tc.told)
			}
		})
	}
}

// FuzzAssign reads keys and values that no program has written in this form.
func FuzzAssign(f *testing.F) {
	f.Add("configdata/c/", []byte(`{"template-name":"t","values":{"n":1}}`))
	f.Add("configversion/c/1/", []byte(`{"config-new":{"values":{}},"action":"DELETE"}`))
	f.Add("configtag/c/x/", []byte("1"))
	f.Add("counter/c/", []byte("99999999999999999999"))
	f.Add("configversion//", []byte("null"))
	f.Fuzz(func(t *testing.T, rest string, value []byte) {
		in := anInstance()
		assign(in, []pair{{root + rest, value}, {rest, value}})
		for _, c := range in[0].Configurations {
			if c.Name == "" || c.Current < 1 || c.InForce && (len(c.Versions) == 0 || c.Versions[len(c.Versions)-1].Number != c.Current) {
				t.Errorf("a configuration that is none: %+v", c)
			}
			for _, v := range c.Versions {
				if !isObject(v.Values) || v.Number < 1 || v.Number > c.Current {
					t.Errorf("a version that is none: %+v", v)
				}
			}
		}
	})
}

// FuzzMaster reads records that no program has written in this form.
func FuzzMaster(f *testing.F) {
	for _, d := range []bson.D{
		{{Key: "_id", Value: bson.NewObjectID()}, {Key: "key", Value: bson.D{{Key: "id", Value: "x"}}}, {Key: "instance", Value: bson.NewObjectID()}},
		{{Key: "key", Value: bson.D{{Key: "id", Value: 1}}}},
		{{Key: "key", Value: nil}},
	} {
		raw, err := bson.Marshal(d)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if bson.Raw(raw).Validate() != nil {
			return // the driver hands out what is valid alone
		}
		m, err := masterOf(bundles, raw)
		if _, own := m.tags["_id"]; own || err == nil && m.text == "" {
			t.Errorf("a record that is none: %+v", m)
		}
		var d instanceDocument
		if err := bson.Unmarshal(raw, &d); err != nil {
			_ = misshapen(err)
		}
	})
}

// TestDots reads keys with dots, which MongoDB has always stored for ONAP, and
// the database that the other tests use refuses.
func TestDots(t *testing.T) {
	t.Parallel()
	raw, err := bson.Marshal(bson.D{{Key: "request", Value: bson.D{{Key: "overridevalues", Value: bson.D{{Key: "global.net.name", Value: "x"}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	var d instanceDocument
	if err := bson.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"global.net.name": "x"}, d.Request.Overrides); diff != "" {
		t.Errorf("overrides (-want +got):\n%s", diff)
	}
}

// TestEmptyCollections reads objects and lists that are empty, null, and not
// there.
func TestEmptyCollections(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		stored any
		there  bool // it is empty, and not nil
	}{
		"Object": {"an empty object stays one", bson.D{}, true},
		"List":   {"an empty list stays one", bson.A{}, true},
		"Null":   {"null is nil", nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, err := bson.Marshal(bson.D{{Key: "value", Value: tc.stored}})
			if err != nil {
				t.Fatal(err)
			}
			var texts struct {
				Value, Other map[string]string
			}
			var types struct {
				Value, Other []Type
			}
			if name != "List" {
				err = bson.Unmarshal(raw, &texts)
			}
			if name != "Object" && err == nil {
				err = bson.Unmarshal(raw, &types)
			}
			if there := texts.Value != nil || types.Value != nil; err != nil || there != tc.there || texts.Other != nil || types.Other != nil {
				t.Errorf("%s: it is %v and %v, %v", tc.reason, texts, types, err)
			}
		})
	}
}
