package manifest

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseTemplate(t *testing.T) {
	text := func(s string) part { return part{text: s} }
	ref := func(written string, path ...string) part { return part{text: written, path: path} }
	fallback := func(p part, s string) part { p.fallback = &s; return p }
	cases := map[string]struct {
		reason, text string
		want         template
	}{
		"none":       {"a text is a literal", "a b", template{text("a b")}},
		"empty":      {"nothing is nothing", "", nil},
		"name":       {"a name ends where no name can go on", "a$b_2-c", template{text("a"), ref("$b_2", "b_2"), text("-c")}},
		"dot":        {"paths need braces", "$a.b", template{ref("$a", "a"), text(".b")}},
		"neighbours": {"one after the other", "$a${b}$c", template{ref("$a", "a"), ref("${b}", "b"), ref("$c", "c")}},
		"path":       {"names, indices, keys with dashes", "${a.0.b-c}", template{ref("${a.0.b-c}", "a", "0", "b-c")}},
		"default":    {"a default is what is behind :-", "${a:-b:-c}", template{fallback(ref("${a:-b:-c}", "a"), "b:-c")}},
		"no default": {"it may be empty", "${a:-}", template{fallback(ref("${a:-}", "a"), "")}},
		"braces":     {"it may hold braces", "${a:-{b}}}", template{fallback(ref("${a:-{b}}", "a"), "{b}"), text("}")}},
		"dollar":     {"two dollars are one", "$$a$$$a$$", template{text("$a$"), ref("$a", "a"), text("$")}},
		"kubernetes": {"Kubernetes' own are left alone", "$(A) $$(B)", template{text("$(A) $(B)")}},
		"other":      {"any other dollar is left alone", "$1 $ 5$", template{text("$1 $ 5$")}},
		"shell":      {"what else shells have in braces, too", "${a%b} ${#a} ${} ${a:=b} ${1} ${a.} ${.a} ${a b} ${a.b c}", template{text("${a%b} ${#a} ${} ${a:=b} ${1} ${a.} ${.a} ${a b} ${a.b c}")}},
		"nested":     {"a default holds no variable", "${a:-$b} ${a:-${b}}", template{text("${a:-$b} ${a:-${b}}")}},
		"unicode":    {"names are ASCII", "$é ${é}", template{text("$é ${é}")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseTemplate(tc.text)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(part{})); diff != "" || err != nil {
				t.Errorf("%s: error %v (-want +got):\n%s", tc.reason, err, diff)
			}
		})
	}
}

func TestParseTemplateRefuses(t *testing.T) {
	for _, text := range []string{"${", "a${b", "${a:-{}", "${a}${"} {
		if _, err := parseTemplate(text); !errors.Is(err, errUnclosed) {
			t.Errorf("%q: error %v, want %v", text, err, errUnclosed)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"a$b${c.d:-e}$$f$(g)", "${a:-{}}", "${", "$$$"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		first, err := parseTemplate(text)
		if err != nil {
			return
		}
		var written strings.Builder
		for i, p := range first {
			if p.path == nil {
				written.WriteString(strings.ReplaceAll(p.text, "$", "$$"))
				if p.text == "" || i > 0 && first[i-1].path == nil {
					t.Errorf("part %d of %q is an empty or a second literal", i, text)
				}
				continue
			}
			written.WriteString(p.text)
			if !isName(p.path[0]) {
				t.Errorf("variable %q in %q", p.path[0], text)
			}
		}
		second, err := parseTemplate(written.String())
		if diff := cmp.Diff(first, second, cmp.AllowUnexported(part{})); diff != "" || err != nil {
			t.Errorf("%q written as %q: error %v (-first +second):\n%s", text, written.String(), err, diff)
		}
	})
}
