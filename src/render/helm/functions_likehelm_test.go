package helm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/engine"
)

// TestFunctionsLikeHelm compares the functions that are replaced with Helm's.
func TestFunctionsLikeHelm(t *testing.T) {
	data := "$d := dict \"b\" (list 1 2.5 \"x\" nil true) \"a\" (dict \"n\" 12345678901 \"t\" \"two\\nlines\") }}{{ "
	for _, call := range []string{
		"toYaml $d", "mustToYaml $d", "toYamlPretty $d", "toJson $d", "mustToJson $d", "toPrettyJson $d", "toRawJson $d",
		`toToml (dict "a" 1 "b" (dict "c" "d"))`, `toToml (list 1)`, `mustToToml (dict "a" 1)`, `mustToToml 1`,
		`fromYaml "a: 1" | toJson`, `fromYaml "a: [" | toJson`, `fromYamlArray "[1, a]" | toJson`, `fromYamlArray "{" | toJson`,
		`fromYaml "a: &a b\nc: [*a" | toJson`, `fromYaml "a: &a b\nc: *b" | toJson`, `fromYamlArray "- &a b\n- *a\n- [" | toJson`,
		`fromJson "{\"a\": 1}" | toJson`, `fromJson "[" | toJson`, `fromJsonArray "[1]" | toJson`, `fromJsonArray "{" | toJson`,
		`mustFromJson "[1, {}]" | toJson`, `mustFromJson "["`, `fromToml "a = 1" | toJson`, `fromToml "=" | toJson`,
		`printf "%5d|%-4s|%*d|%v" 1 "a" 6 2 $d`, `print 1 2 "a" nil`, `println "a" 1`, `html "<a>"`, `js "'"`, `urlquery "a b"`,
		`repeat 3 "ab"`, `repeat -1 "ab"`, `"ab" | repeat 0`, `replace "a" "bb" "banana"`, `replace "" "-" "abc"`,
		`indent 2 "a\nb"`, `nindent 3 "a\nb"`, `indent -1 "a"`, `until 4`, `until 0`, `until -3`, `untilStep 0 10 3`, `untilStep 10 0 -4`, `untilStep 0 5 0`,
		`seq 5`, `seq -2`, `seq 2 4`, `seq 4 2`, `seq 0 2 10`, `seq 10 -5 0`, `seq`, `wrapWith 3 "--" "ab cd efghij"`, `wrapWith 0 "-" "ab"`,
		`regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W"`, `mustRegexReplaceAll "(" "a" "b"`, `regexReplaceAllLiteral "a(x*)b" "-ab-axxb-" "${1}"`, `mustRegexReplaceAllLiteral "a" "banana" "$"`,
		`quote "a" 1 nil $d`, `squote "a" nil`, `cat "a" nil 1`, `toString $d`, `toStrings (list 1 "a")`, `join "," (list 1 "b")`, `sortAlpha (list "b" "a")`,
		`merge (dict "a" 1) (dict "a" 2 "b" 3) | toJson`, `mergeOverwrite (dict "a" 1) (dict "a" 2) | toJson`, `mustMerge (dict) $d | toJson`, `deepCopy $d | toJson`,
		`len (randAlphaNum 8)`, `len (randBytes 8)`, `len (randAscii 0)`, `$d`, `.Values`, `.Release`, `.Files`, `.Capabilities.KubeVersion`, `.Chart.Name`, `.Capabilities.HelmVersion`, `nil | default "x"`, `.Values.no.such | quote`,
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			printed := func(run func(source, common.Values) (map[string]string, error)) (map[string]string, error) {
				s, _ := load(one("{{ "+data+call+" }}"), &report{})
				return run(s, resolve(s, map[string]any{"v": 1.5}, common.ReleaseOptions{Name: "rel"}, nil, &report{}))
			}
			want, wantErr := printed(func(s source, v common.Values) (map[string]string, error) { return engine.Render(s.chart, v) })
			got, err := printed(func(s source, v common.Values) (map[string]string, error) {
				r := &report{}
				return execute(s, v, unasked(t.Context()), r)
			})
			if (err == nil) != (wantErr == nil) {
				t.Errorf("Helm fails with %v, we with %v", wantErr, err)
			}
			if wantErr == nil && err == nil {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-Helm +ours):\n%s", diff)
				}
			}
		})
	}
}
