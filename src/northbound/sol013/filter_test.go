package sol013_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/sol013"
)

func document(t testing.TB, text string) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var out map[string]any
	if err := decoder.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFilterMatches(t *testing.T) {
	t.Parallel()
	of := document(t, `{"operation": "SCALE", "metadata": {"a/b": "1", "x,y": "2", "z~": "3", "@w": "4"}, "vims": {"vim1": {"vimId": "v"}}, "auto": true, "n": 10, "list": [{"level": 1}, {"level": 2}]}`)
	cases := map[string]struct {
		reason string
		filter string
		want   bool
	}{
		"Equal":     {"a text", "(eq,operation,SCALE)", true},
		"Boolean":   {"a boolean", "(eq,auto,true)", true},
		"Slash":     {"~1 is a slash in a name", "(eq,metadata/a~1b,1)", true},
		"Comma":     {"~a is a comma in a name", "(eq,metadata/x~ay,2)", true},
		"Tilde":     {"~0 is a tilde in a name", "(eq,metadata/z~0,3)", true},
		"At":        {"~b is an at in a name", "(eq,metadata/~bw,4)", true},
		"Key":       {"@key is the keys of a map", "(eq,vims/@key,vim1)", true},
		"OtherKey":  {"and none else", "(eq,vims/@key,vim2)", false},
		"MapItself": {"a map has no value", "(eq,vims,vim1)", false},
		"Numbers":   {"numbers are not compared as texts", "(gt,n,9)", true},
		"AnyItem":   {"any item of a list", "(eq,list/level,2)", true},
		"NoItem":    {"no item of a list", "(neq,list/level,2)", false},
		"Absent":    {"an absent attribute meets negated conditions", "(nin,nothing,a,b)", true},
		"Below":     {"nothing is below a text", "(eq,operation/x,SCALE)", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := sol013.ParseFilter(tc.filter)
			if err != nil {
				t.Fatal(err)
			}
			if got := f.Matches(of); got != tc.want {
				t.Errorf("%s: %t", tc.reason, got)
			}
		})
	}
}

func FuzzFilter(f *testing.F) {
	for _, seed := range []string{"", "(eq,a,b)", "(in,a/b,1,2);(gt,c,3)", "(eq,a,'it''s')", "(cont,m/@key,~0~1~a~b)", "(eq,a", ";;", "((,,))"} {
		f.Add(seed)
	}
	of := document(f, `{"a": {"b": ["1", 2, null, true]}, "c": 3, "m": {"k": "v"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		filter, err := sol013.ParseFilter(text)
		if err != nil {
			if nf.KindOf(err) != nf.Invalid {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if len(filter) == 0 && text != "" || len(filter) > 20 {
			t.Errorf("%q has %d conditions", text, len(filter))
		}
		filter.Matches(of)
	})
}
