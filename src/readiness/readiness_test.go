package readiness

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const widget = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, generation: 2}"

func TestJudge(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		rule   string // fields in addition to group and kind
		object string // fields in addition to widget
		want   Verdict
	}{
		"Current":     {"the rule decides", `current: object.status.phase == "Up"`, "status: {phase: Up}", Verdict{Status: nf.Current}},
		"In progress": {"the phase explains it", `current: object.status.phase == "Up"`, "status: {phase: Down}", Verdict{nf.InProgress, "its phase is Down", NoWait}},
		"Condition": {
			"a condition explains it better", `current: cond(object, "Ready") == "True"`, `status: {phase: Down, conditions: [{type: Ready, status: "False", message: no disk}]}`,
			Verdict{nf.InProgress, "Ready is False: no disk", NoWait},
		},
		"Nothing":       {"there may be no explanation", `current: "false"`, "", Verdict{nf.InProgress, "it is not ready yet", NoWait}},
		"Message":       {"the rule explains it itself", `{current: "false", message: '"x" + object.metadata.name'}`, "", Verdict{nf.InProgress, "xa", NoWait}},
		"Ready message": {"an object that is ready may have a message", `{current: "true", message: '"restart"'}`, "", Verdict{nf.Current, "restart", NoWait}},
		"Failed first":  {"failed comes before current", `{current: "true", failed: "true"}`, "status: {state: Broken}", Verdict{nf.StatusFailed, "its state is Broken", NoWait}},
		"Not final": {
			"a controller that tries again has the time of the stage", `{current: "true", failed: "true", terminal: "false"}`, "status: {state: Broken}",
			Verdict{nf.InProgress, "it fails, and its controller tries again: its state is Broken", NoWait},
		},
		"Old generation": {
			"an older generation says nothing", `current: "true"`, "status: {observedGeneration: 1}",
			Verdict{nf.InProgress, "its controller has observed generation 1, not yet 2", NoWait},
		},
		"Reconciling": {"kstatus' conditions are generic", `current: "true"`, `status: {conditions: [{type: Reconciling, status: "True", reason: Rolling}]}`, Verdict{nf.InProgress, "Rolling", NoWait}},
		"Stalled":     {"likewise", `current: "true"`, `status: {conditions: [{type: Stalled, status: "True", message: stuck}]}`, Verdict{nf.StatusFailed, "stuck", NoWait}},
		"Not stalled": {"they have a status", `current: "true"`, `status: {conditions: [{type: Stalled, status: "False"}]}`, Verdict{Status: nf.Current}},
		"Specific":    {"a rule may leave these checks out", `{current: "true", generic: false}`, `status: {observedGeneration: 1, conditions: [{type: Stalled, status: "True"}]}`, Verdict{Status: nf.Current}},
		"No status":   {"the controller gets time to write one", `{current: "true", wait_for_status: true}`, "", Verdict{nf.Current, "", ForStatus}},
		"Status":      {"it has written one", `{current: "true", wait_for_status: true}`, "status: {}", Verdict{Status: nf.Current}},
		"Waits anyway": {
			"an object in progress needs no other reason to wait", `{current: "false", wait_for_status: true, still: true}`, "",
			Verdict{nf.InProgress, "it is not ready yet", NoWait},
		},
		"Still":      {"an old status may pass for a new one for a moment", `{current: "true", still: true}`, "status: {}", Verdict{nf.Current, "", ForStillness}},
		"Still fail": {"a failure need not last", `{current: "true", failed: "true", still: true}`, "status: {phase: Broken}", Verdict{nf.StatusFailed, "its phase is Broken", NoWait}},
		"Error": {
			"what cannot be evaluated is never ready", `current: object.status.phase == "Up"`, "",
			Verdict{nf.InProgress, "its readiness rule fails: cannot judge object: no such key: status", NoWait},
		},
		"Error in failed": {
			"also if only one expression fails", `{current: "true", failed: object.spec.x}`, "",
			Verdict{nf.InProgress, "its readiness rule fails: cannot judge object: no such key: spec", NoWait},
		},
		"Wrong type": {
			"a result has a type", `current: object.status.phase`, "status: {phase: Up}",
			Verdict{nf.InProgress, "its readiness rule fails: cannot judge object: the result must be a bool, and is a string", NoWait},
		},
		"Not an object": {
			"the functions are for the object", `current: seen(object.metadata.name)`, "",
			Verdict{nf.InProgress, "its readiness rule fails: cannot judge object: the first argument must be object", NoWait},
		},
		"Cost": {
			"an evaluation is limited", `current: object.l.all(a, object.l.all(b, object.l.all(c, object.l.all(d, object.l.all(e, a + b + c + d + e >= 0)))))`, "l: [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]",
			Verdict{nf.InProgress, "its readiness rule fails: cannot judge object: operation cancelled: actual cost limit exceeded", NoWait},
		},
		"Why":   {"why is a reason", `current: why(object, "Ready") == "Done" && why(object, "Other") == "" && cond(object, "Other") == ""`, "status: {conditions: [{type: Ready, reason: Done}]}", Verdict{Status: nf.Current}},
		"Seen":  {"seen needs an observed generation", `current: "!seen(object)"`, "status: {}", Verdict{Status: nf.Current}},
		"Seen2": {"which is that of the object", `current: seen(object)`, "status: {observedGeneration: 2}", Verdict{Status: nf.Current}},
		"Fresh": {
			"a condition without a generation is fresh, and a missing one is not", `current: fresh(object, "A") && !fresh(object, "B") && fresh(object, "C") && !fresh(object, "D")`,
			"status: {conditions: [{type: A}, {type: B, observedGeneration: 1}, {type: C, observedGeneration: 2}]}", Verdict{Status: nf.Current},
		},
		"Malformed": {"an object may be of any form", `current: cond(object, "Ready") == "" && !seen(object)`, "status: {conditions: 5, observedGeneration: x}", Verdict{Status: nf.Current}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules, err := New("r.yaml", []byte("- group: example.com\n  kind: Widget\n  "+strings.Join(fieldsOf(t, tc.rule), "\n  ")))
			if err != nil {
				t.Fatal(err)
			}
			text := widget + "}"
			if tc.object != "" {
				text = widget + ", " + tc.object + "}"
			}
			got, found := rules.Judge(object(t, text), nil)
			if diff := cmp.Diff(tc.want, got); !found || diff != "" {
				t.Errorf("%s: a rule: %t\n%s", tc.reason, found, diff)
			}
		})
	}
}

// fieldsOf returns the lines of a rule's fields, each with its value in one line.
func fieldsOf(t *testing.T, rule string) (lines []string) {
	t.Helper()
	if !strings.HasPrefix(rule, "{") {
		return []string{rule}
	}
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(rule), &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		lines = append(lines, fmt.Sprintf("%s: !!%s %q", name, map[bool]string{true: "str", false: "bool"}[name != "generic" && name != "still" && name != "wait_for_status"], fmt.Sprint(fields[name])))
	}
	return lines
}

func TestRead(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("- {group: a.io, kind: K, current: \"true\"}\n", maxRules+1)
	for name, tc := range map[string]struct{ reason, text, want string }{
		"Empty":    {"there may be no rules", "", ""},
		"Comments": {"likewise", "# none\n", ""},
		"Rule":     {"a rule is read", "- group: a.io\n  kind: K\n  current: object.x", ""},
		"Lists":    {"names may be lists", "- group: [a.io, b.io]\n  kind: [K, L]\n  versions: [v1]\n  current: object.x", ""},
		"Category": {"a category needs no kind", "- aggregate: [managed]\n  current: object.x", ""},
		"Alias":    {"an alias stands for its node", "- &a\n  group: a.io\n  kind: K\n  current: object.x\n- *a", ""},
		"YAML":     {"the parser's line is kept", "- a: 1\n\t- x", "r.yaml:2: found a tab character that violates indentation"},
		"Mapping":  {"a file is a list", "group: a.io", "r.yaml:1: rules: must be a list of rules"},
		"Item":     {"of mappings", "- x", "r.yaml:1: rules[0]: must be a mapping"},
		"Missing":  {"three fields are required", "- generic: true", "r.yaml:1: rules[0].group: is missing; r.yaml:1: rules[0].kind: is missing; r.yaml:1: rules[0].current: is missing"},
		"Unknown":  {"a misspelling is found", "- group: a.io\n  kind: K\n  ready: object.x\n  current: object.x", `r.yaml:3: unknown key "ready"; allowed: ` + strings.Join(fieldNames, ", ")},
		"Twice":    {"a field is given once", "- group: a.io\n  kind: K\n  current: object.x\n  kind: L", "r.yaml:4: rules[0].kind: is given twice"},
		"Text":     {"an expression is a text", "- group: a.io\n  kind: K\n  current: true", "r.yaml:3: rules[0].current: must be a text"},
		"Truth":    {"a switch is a boolean", "- group: a.io\n  kind: K\n  current: object.x\n  still: \"yes\"", "r.yaml:4: rules[0].still: must be true or false"},
		"Names":    {"a group has no version", "- group: a.io/v1\n  kind: K\n  current: object.x", "r.yaml:1: rules[0].group: must be a name or a list of names"},
		"No names": {"an empty list is a mistake", "- group: []\n  kind: K\n  current: object.x", "r.yaml:1: rules[0].group: is empty"},
		"Builtin":  {"Kubernetes' own kinds have no rules", "- group: apps\n  kind: Deployment\n  current: object.x", `r.yaml:1: rules[0].group: "apps" is a group of Kubernetes, whose kinds cannot have rules`},
		"Terminal": {"there is nothing to narrow", "- group: a.io\n  kind: K\n  current: object.x\n  terminal: object.x", "r.yaml:4: rules[0].terminal: needs failed, which it narrows"},
		"Compile":  {"a fault of an expression is found", "- group: a.io\n  kind: K\n  current: objekt.x", "r.yaml:3: rules[0].current: undeclared reference to 'objekt' (in container '')"},
		"Line":     {"in its line", "- group: a.io\n  kind: K\n  current: |\n    object.x\n      && objekt.x", "r.yaml:5: rules[0].current: undeclared reference to 'objekt' (in container '')"},
		"Result":   {"an expression has a type", "- group: a.io\n  kind: K\n  current: '\"x\"'", "r.yaml:3: rules[0].current: must be a bool, and is a string"},
		"Message":  {"a message is a text", "- group: a.io\n  kind: K\n  current: object.x\n  message: 1 == 1", "r.yaml:4: rules[0].message: must be a string, and is a bool"},
		"Size":     {"an expression is limited", "- group: a.io\n  kind: K\n  current: " + strings.Repeat("x", maxExpression+1), "r.yaml:3: rules[0].current: has more than 4096 bytes"},
		"Unbounded": {
			"a result is limited", "- group: a.io\n  kind: K\n  current: object.x.all(y, y.replace(\"\", object.x) == \"\")",
			"r.yaml:3: rules[0].current: must not use the function replace, whose result may be of any size",
		},
		"Range": {
			"likewise", "- group: a.io\n  kind: K\n  current: lists.range(object.x).size() > 0",
			"r.yaml:3: rules[0].current: must not use the function lists.range, whose result may be of any size",
		},
		"Many": {"a file is limited", many, fmt.Sprintf("r.yaml:%d: rules: has more than %d rules", maxRules+1, maxRules)},
		"Long": {"also in bytes", "#" + strings.Repeat(" ", maxFile), "r.yaml: has more than 262144 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New("r.yaml", []byte(tc.text))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestReadOwn(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, text, want string }{
		"Kind":     {"a package has rules for its kinds", "- {group: a.io, kind: K, current: object.x}", ""},
		"Any kind": {"and for no others", "- {group: a.io, kind: \"*\", current: object.x}", "m.yaml:1: readiness[0].kind: must name kinds of the package"},
		"Category": {"likewise", "- {aggregate: managed, current: object.x}", "m.yaml:1: readiness[0].kind: must name kinds of the package"},
		"Compile":  {"they are compiled", "- {group: a.io, kind: K, current: objekt.x}", "m.yaml:1: readiness[0].current: undeclared reference to 'objekt' (in container '')"},
		"Many":     {"there are fewer than in a file", strings.Repeat("- {group: a.io, kind: K, current: object.x}\n", maxOwn+1), "m.yaml:51: readiness: has more than 50 rules"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var document yaml.Node
			if err := yaml.Unmarshal([]byte(tc.text), &document); err != nil {
				t.Fatal(err)
			}
			_, wrong := ReadOwn("m.yaml", "readiness", document.Content[0])
			got := ""
			if len(wrong) > 0 {
				got = wrong.Error()
			}
			if got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestOrder has the place that the rule for a kind comes from.
func TestOrder(t *testing.T) {
	t.Parallel()
	own := Judgment{Current: "true", Message: `"own"`}.Annotation()
	annotated := func(api, kind, annotation string) string {
		return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {annotations: {%s: '%s'}}}", api, kind, Annotation, annotation)
	}
	const file = `
- {group: a.io, kind: K, versions: v1, current: "true", message: '"old"'}
- {group: a.io, kind: K, current: "true", message: '"first"'}
- {group: a.io, kind: "*", current: "true", message: '"any"'}
- {aggregate: [cats], current: "true", message: '"category"'}
- {group: k8s.cni.cncf.io, kind: "*", current: "true", message: '"operator"'}`
	rules, err := New("r.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason, object string
		categories     []string
		want           string // message, or "" if there is no rule
	}{
		"Version":      {"a version may have its own rule", "{apiVersion: a.io/v1, kind: K}", nil, "old"},
		"First":        {"the first rule decides", "{apiVersion: a.io/v2, kind: K}", nil, "first"},
		"Any":          {"a rule may be for all kinds", "{apiVersion: a.io/v1, kind: L}", nil, "any"},
		"Category":     {"or for a category", "{apiVersion: b.io/v1, kind: L}", []string{"all", "cats"}, "category"},
		"None":         {"there may be no rule", "{apiVersion: b.io/v1, kind: L}", []string{"all"}, ""},
		"Operator":     {"the operator's come before the shipped ones", "{apiVersion: k8s.cni.cncf.io/v1, kind: NetworkAttachmentDefinition}", nil, "operator"},
		"Before own":   {"and before the package's", annotated("a.io/v2", "K", own), nil, "first"},
		"Own":          {"a package has its own rules", annotated("b.io/v1", "K", own), nil, "own"},
		"Own, shipped": {"which come before the shipped ones", annotated("kubevirt.io/v1", "VirtualMachine", own), nil, "own"},
		"Bad own":      {"an annotation may be changed in the region", annotated("b.io/v1", "K", "x"), nil, "its readiness rule cannot be used: invalid character 'x' looking for beginning of value"},
		"Wrong own":    {"likewise", annotated("b.io/v1", "K", `{"current":"x"}`), nil, "its readiness rule cannot be used: undeclared reference to 'x' (in container '')"},
	} {
		for range 2 { // compiled, and compiled before
			got, found := rules.Judge(object(t, tc.object), tc.categories)
			if got.Message != tc.want || found != (tc.want != "") {
				t.Errorf("%s: %s: %+v (a rule: %t), want %q", name, tc.reason, got, found, tc.want)
			}
		}
	}
	if got := rules.Categories([]string{"all", "managed", "cats", "managed"}); !slices.Equal(got, []string{"cats", "managed"}) {
		t.Errorf("the categories of rules are %v", got)
	}
}

func TestSilent(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"{}": true, "{status: {phase: Up}}": true, "{status: {conditions: []}}": true, "{status: {observedGeneration: 0}}": false,
		"{status: {conditions: [{type: Ready}]}}": false,
	} {
		if got := Silent(object(t, text)); got != want {
			t.Errorf("%s is silent: %t", text, got)
		}
	}
	if v := SilentVerdict(); v.Status != nf.Current || v.Wait != ForStillness || !strings.Contains(v.Message, "nothing else is known") {
		t.Errorf("%+v", v)
	}
}
