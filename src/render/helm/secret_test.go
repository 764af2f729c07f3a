package helm

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	hidden  = "hunter2"
	crooked = "hun\"ter\\2"
	numeric = "31337"
)

// secretRegion holds secrets, and a ConfigMap that is none.
func secretRegion() *region {
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	return &region{Version: "v1.37.1", Objects: []map[string]any{
		{
			"apiVersion": "v1", "kind": "Secret",
			"metadata": map[string]any{"name": "s", "namespace": "kube-system", "annotations": map[string]any{nf.AppliedAnnotation: hidden + " applied"}},
			"data":     map[string]any{"p": encode(hidden), "line": encode("first\n " + hidden + " \n"), "q": encode(crooked), "n": encode(numeric), "t": encode("{{ " + hidden)},
		},
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "m", "namespace": "ns"}, "data": map[string]any{"p": hidden}},
	}}
}

// TestReadSecretsAreNotTold has templates that read a Secret and fail with what
// is in it.
func TestReadSecretsAreNotTold(t *testing.T) {
	t.Parallel()
	const (
		read     = `{{ $d := (lookup "v1" "Secret" "kube-system" "s").data }}{{ $p := $d.p | b64dec }}`
		withheld = "; the reason is withheld, because the templates have read objects of the region"
		message  = " failed; its message is withheld, because the templates have read objects of the region"
	)
	cases := map[string]struct {
		reason   string
		template string
		want     string // the violation
	}{
		"Fail":     {"as it is written", read + `{{ fail $d.p }}`, "c/templates/a.yaml:1: fail" + message},
		"Decoded":  {"decoded", read + "\n" + `{{ fail (printf "it is %s" $p) }}`, "c/templates/a.yaml:2: fail" + message},
		"Twisted":  {"in another form", read + `{{ fail ($p | upper | reverse) }}`, "c/templates/a.yaml:1: reverse" + message},
		"Place":    {"as a place", read + `{{ fail (printf "c/templates/a.yaml:%s: x" ($d.n | b64dec)) }}`, "c/templates/a.yaml:1: fail" + message},
		"Required": {"as what is missing", read + `{{ required $p nil }}`, "c/templates/a.yaml:1: required" + message},
		"Function": {"as an argument", read + `{{ mustToDate "2006" $p }}`, "c/templates/a.yaml:1: mustToDate" + message},
		"Helper":   {"in a helper", read + `{{ include "x" $p }}{{ define "x" }}` + "\n\n" + `{{ semver . }}{{ end }}`, "c/templates/a.yaml:1: semver" + message},
		"Range":    {"as a value that is not a list", read + `{{ range $p }}{{ end }}`, "c/templates/a.yaml:1: the template failed" + withheld},
		"Include":  {"as the name of a template", read + `{{ include $p . }}`, "c/templates/a.yaml:1: the template failed" + withheld},
		"Tpl":      {"as a template", read + `{{ tpl ($d.t | b64dec) . }}`, "c/templates/a.yaml:1: the template failed" + withheld},
		"Listed":   {"from a list", `{{ range (lookup "v1" "Secret" "" "").items }}{{ fail .data.p }}{{ end }}`, "c/templates/a.yaml:1: fail" + message},
		"Map":      {"from another object", `{{ fail (lookup "v1" "ConfigMap" "ns" "m").data.p }}`, "c/templates/a.yaml:1: fail" + message},
		"Limit":    {"with a limit that is met", read + `{{ $x := printf "%s%s" $p (repeat 1000000000 "x") }}`, "c/templates/a.yaml:1: the templates generate more than 100663296 bytes of text and values"},
		"Absent":   {"what is not there says nothing", `{{ $_ := lookup "v1" "Secret" "ns" "no" }}{{ fail "told" }}`, "c/templates/a.yaml:1: told"},
		"Name":     {"as a name", read + "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {k8splugin.io/{{ $p }}: x}\n", "c/templates/a.yaml:1: metadata.labels.k8splugin.io/" + nf.Masked + ": is set by the service"},
		"Near":     {"in what is not YAML", read + "a: b\n{{ $p }}: [\n", "c/templates/a.yaml:2: is not YAML: did not find expected node content, near \"" + nf.Masked + ":\""},
		"Quoted":   {"in quotes", read + "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations: {helm.sh/hook: {{ $d.q | b64dec | quote }}}\n", "c/templates/a.yaml:1: metadata.annotations.helm.sh/hook: \"" + nf.Masked + "\" is not a hook event"},
		"Line":     {"a line of it", read + "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations: {helm.sh/hook: {{ $d.line | b64dec | splitList \"\\n\" | last | default (index ($d.line | b64dec | splitList \"\\n\") 1) | trim }}}\n", "c/templates/a.yaml:1: metadata.annotations.helm.sh/hook: \"" + nf.Masked + "\" is not a hook event"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(one(tc.template))
			in.Region = secretRegion()
			_, err := Renderer{}.Render(t.Context(), in)
			if diff := cmp.Diff(tc.want, strings.TrimPrefix(fmt.Sprint(err), "cannot render package: ")); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDefaultSecrets checks that the secrets among the values of a chart and its
// subcharts are distinguished, and are not shown when the rendering fails.
func TestDefaultSecrets(t *testing.T) {
	t.Parallel()
	files := one(configMap)
	files["values.yaml"] = []byte("user: admin\nauth: {password: hunter2, token: \"\"}\n")
	files["charts/sub/Chart.yaml"] = []byte("apiVersion: v2\nname: sub\nversion: 1.0.0\n")
	files["charts/sub/values.yaml"] = []byte("apiKey: hunter3\nsecretName: tls\n")
	out, err := Renderer{}.Render(t.Context(), input(files))
	if diff := cmp.Diff([]string{"hunter2", "hunter3"}, out.Secrets); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	files["templates/b.yaml"] = []byte(`{{ fail (printf "%s %s" .Values.auth.password .Values.sub.apiKey) }}`)
	_, err = Renderer{}.Render(t.Context(), input(files))
	if want := "cannot render package: c/templates/b.yaml:1: " + nf.Masked + " " + nf.Masked; fmt.Sprint(err) != want {
		t.Errorf("the failure is told as %q, want %q", err, want)
	}
}

// deniedRegion answers once, and then says what it was asked for.
type deniedRegion struct {
	*region

	asked int
}

func (d *deniedRegion) Lookup(ctx context.Context, ref nf.Ref) (map[string]any, error) {
	if d.asked++; d.asked > 1 {
		return nil, &nf.Error{Kind: nf.Unreachable, Op: "get", Subject: ref.String(), Reason: "breaker", RetryAfter: time.Minute, Err: errors.New("not now")}
	}
	return d.region.Lookup(ctx, ref)
}

func TestReadSecretsAreNotAskedFor(t *testing.T) {
	t.Parallel()
	in := input(one(`{{ $p := (lookup "v1" "Secret" "kube-system" "s").data.p | b64dec }}{{ lookup "v1" $p $p $p }}`))
	in.Region = &deniedRegion{region: secretRegion()}
	_, err := Renderer{}.Render(t.Context(), in)
	if strings.Contains(fmt.Sprint(err), hidden) || !strings.Contains(fmt.Sprint(err), "withheld") {
		t.Errorf("what is asked for is told: %v", err)
	}
	if nf.KindOf(err) != nf.Unreachable || nf.ReasonOf(err) != "breaker" || nf.RetryAfterOf(err) != time.Minute {
		t.Errorf("it is not told what to do: kind %v, reason %q, after %v", nf.KindOf(err), nf.ReasonOf(err), nf.RetryAfterOf(err))
	}
}

// TestReadSecretsAreMasked looks at the warnings of a rendering that succeeds.
func TestReadSecretsAreMasked(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, read, want string }{
		"Secret":    {"the value of a Secret is masked", `lookup "v1" "Secret" "kube-system" "s"`, nf.Masked},
		"ConfigMap": {"that of another object is not", `lookup "v1" "ConfigMap" "ns" "m"`, "bunter"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(one("{{ $d := (" + tc.read + ").data }}apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n" +
				"  annotations: {helm.sh/hook: test, helm.sh/hook-delete-policy: {{ $d.o | default $d.p | b64dec }}}\n"))
			objects := secretRegion()
			objects.Objects[1]["data"] = map[string]any{"o": base64.StdEncoding.EncodeToString([]byte("bunter"))}
			in.Region = objects
			out, err := Renderer{}.Render(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			if said := strings.Join(out.Warnings, "\n"); strings.Contains(said, hidden) || !strings.Contains(said, tc.want) {
				t.Errorf("%s: the warnings are %q", tc.reason, said)
			}
		})
	}
}
