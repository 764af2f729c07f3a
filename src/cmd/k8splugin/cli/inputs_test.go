package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTyped(t *testing.T) {
	cases := map[string]struct{ in, want string }{
		"Integer":     {"3", "3"},
		"BigInteger":  {"12345678901234567890", "12345678901234567890"},
		"Number":      {"1.5", "1.5"},
		"Boolean":     {"true", "true"},
		"Text":        {"hello world", `"hello world"`},
		"Quoted":      {`"3"`, `"3"`},
		"Empty":       {"", `""`},
		"Null":        {"null", "null"},
		"List":        {"[a, 2]", `["a",2]`},
		"Object":      {"{a: 1}", `{"a":1}`},
		"Equals":      {"a=b", `"a=b"`},
		"ThreeDotted": {"3.1.0", `"3.1.0"`},
		"Yes":         {"yes", `"yes"`},
		"Quotes":      {"'3'", `"3"`},
		"Broken":      {"3]", `"3]"`},
	}
	for name, tc := range cases {
		got, err := typed(tc.in)
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: typed(%q) is %s, %v; want %s", name, tc.in, got, err, tc.want)
		}
	}
	if _, err := typed("[a"); err == nil {
		t.Error("what is not YAML must be refused")
	}
}

func TestParameters(t *testing.T) {
	root := folder(t, map[string]string{
		"one.yaml": "replicas: 1\nname: one\n", "two.json": `{"name": "two", "list": [1]}`,
		"list.yaml": "- a\n", "twice.yaml": "a: 1\na: 2\n",
	})
	cases := map[string]struct {
		reason  string
		files   []string
		set     settings
		stdin   string
		want    values
		wantErr string
	}{
		"Order": {
			reason: "later files win over earlier ones, and the command line over all",
			files:  []string{root + "/one.yaml", root + "/two.json"},
			set:    settings{names: values{"replicas": []byte("5")}},
			want:   values{"replicas": []byte("5"), "name": []byte(`"two"`), "list": []byte("[1]")},
		},
		"Stdin": {
			reason: "- is standard input",
			files:  []string{"-"}, stdin: "x: z\n",
			want: values{"x": []byte(`"z"`)},
		},
		"Empty":   {reason: "nothing makes nothing", want: values{}},
		"NotAMap": {reason: "a list has no names", files: []string{root + "/list.yaml"}, wantErr: "a map of names"},
		"Twice":   {reason: "a name that occurs twice is a mistake", files: []string{root + "/twice.yaml"}, wantErr: "twice.yaml"},
		"Missing": {reason: "a missing file is named", files: []string{root + "/none.yaml"}, wantErr: "none.yaml"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := input{strings.NewReader(tc.stdin)}.parameters(tc.files, tc.set)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("%s: got error %v, want one with %q", tc.reason, err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want.fields(), got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLabelsFlag(t *testing.T) {
	cases := map[string]struct {
		reason    string
		in        string
		removable bool
		wantErr   bool
		set       bool
	}{
		"Set":          {reason: "k=v sets", in: "a=b", set: true},
		"Empty":        {reason: "a value may be empty", in: "a=", set: true},
		"Remove":       {reason: "k- takes away where that makes sense", in: "a-", removable: true},
		"NotRemovable": {reason: "there is nothing to take away from what is new", in: "a-", wantErr: true},
		"NoName":       {reason: "a label has a name", in: "=b", wantErr: true},
		"Neither":      {reason: "a word is no label", in: "a", removable: true, wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := labelsFlag{removable: tc.removable}
			err := f.Set(tc.in)
			if (err != nil) != tc.wantErr {
				t.Fatalf("%s: got error %v", tc.reason, err)
			}
			if err == nil && (f.labels["a"] != nil) != tc.set {
				t.Errorf("%s: got %v", tc.reason, f.labels)
			}
		})
	}
}
