package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	amendIt = "PUT /v1/vnf_instances/k3x9vq2m/amendments/rules"
	unamend = "DELETE /v1/vnf_instances/k3x9vq2m/amendments/rules"
	testIt  = "POST /v1/vnf_instances/k3x9vq2m/tests"
	getOp   = "GET /v1/operations/0192f3a5c7d1-a7c1"

	chartJSON = `{"csar_id":"web","project":"default","state":"onboarded","enabled":true,"name":"web","version":"1.4.2","kind":"helm","source":"oci://registry.example.com/charts/web:1.4.2",` +
		`"digest":"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","size":1482,"media_type":"application/gzip","files":["web/Chart.yaml"],` +
		`"variables":[],"warnings":["web/Chart.yaml: the chart is deprecated"],"vnf_instances":[],"created_at":"2026-11-20T09:01:00Z","updated_at":"2026-11-20T09:01:00Z"}`
	amendedJSON = instanceStart + `"state":"ready","healthy":true,"health":"healthy","release":"web","set":{"users[0].name":"ann"},"amendments":[` +
		`{"name":"rules","csar_id":"fw-rules","parameters":{"level":3},"set":{"a[0]":"b"}},{"name":"logs","csar_id":"fw-logs"}],"objects":[]}`

	testStart = `{"operation_id":"0192f3a5c7d1-a7c1","subject":{"kind":"vnf_instance","id":"k3x9vq2m"},"vnf_id":"k3x9vq2m","cloud_region_id":"east","namespace":"edge","project":"default","verb":"test",` +
		`"on_failure":"keep","accepted_at":"2026-11-20T09:02:00Z","deadline":"2026-11-20T09:17:00Z","started_at":"2026-11-20T09:02:00Z",`
	testSteps = `"steps":[{"name":"create test 1/2 Pod web-test","started_at":"2026-11-20T09:02:00Z","finished_at":"2026-11-20T09:02:01Z"},` +
		`{"name":"wait for test 1/2 Pod web-test","started_at":"2026-11-20T09:02:01Z","finished_at":"2026-11-20T09:02:03Z"},` +
		`{"name":"create test 2/2 Job load","started_at":"2026-11-20T09:02:03Z","finished_at":"2026-11-20T09:02:03Z"},`
	testQueued = testStart + `"state":"queued","steps":[],"tests":[]}`
	testPassed = testStart + `"state":"succeeded","passed":true,"finished_at":"2026-11-20T09:02:09Z",` + testSteps +
		`{"name":"wait for test 2/2 Job load","started_at":"2026-11-20T09:02:03Z","finished_at":"2026-11-20T09:02:08Z"}],"tests":[` +
		`{"kind":"Pod","name":"web-test","passed":true,"started_at":"2026-11-20T09:02:00Z","finished_at":"2026-11-20T09:02:03Z"},` +
		`{"kind":"Job","name":"load","passed":true,"started_at":"2026-11-20T09:02:03Z","finished_at":"2026-11-20T09:02:08Z"}]}`
	testFailed = testStart + `"state":"failed","passed":false,"finished_at":"2026-11-20T09:02:09Z",` + testSteps +
		`{"name":"wait for test 2/2 Job load","started_at":"2026-11-20T09:02:03Z","finished_at":"2026-11-20T09:02:08Z","failed":true,"message":"Job edge/load: it failed"}],"tests":[` +
		`{"kind":"Pod","name":"web-test","passed":true,"started_at":"2026-11-20T09:02:00Z","finished_at":"2026-11-20T09:02:03Z"},` +
		`{"kind":"Job","name":"load","passed":false,"message":"Job edge/load: it failed","started_at":"2026-11-20T09:02:03Z","finished_at":"2026-11-20T09:02:08Z"}],` +
		`"failure":{"kind":"failed","step":"finish","message":"wait for test 2/2 Job load: it failed"}}`
	testBroken = testStart + `"state":"failed","finished_at":"2026-11-20T09:02:09Z","steps":[],"tests":[],` +
		`"failure":{"kind":"unreachable","step":"wait for test 1/2 Pod web-test","message":"the region cannot be reached"}}`
)

func TestDayTwo(t *testing.T) {
	tests := reply{status: 202, location: operation1, body: testQueued}
	play(t, map[string]commandCase{
		"instance-create-chart": {
			reason: "a path leads into a parameter, and one with an index is for Helm",
			args: []string{
				"instance", "create", "--region", "east", "--package", "web", "--release", "web", "--wait=applied", "--values", "-",
				"--set", "image.tag=2", "--set-string", "image.tag=1.10", "--set", "a.b.c=true", "--set", `annotations.example\.com/x=y`, "--set", "users[0].name=ann", "--set", "size=3",
			},
			console: console{stdin: "image: {repository: web, tag: 1}\n"},
			replies: replies{create: accepted(), eventsOf: stream(op1, opSucceeded), getIt: {body: instanceJSON}},
		},
		"instance-create-wait-bad":  {reason: "there are two things to wait for", args: []string{"instance", "create", "--region", "east", "--package", "p", "--wait=never"}},
		"instance-create-set-bad":   {reason: "what is no map has nothing inside", args: []string{"instance", "create", "--region", "east", "--package", "p", "--set", "a=3", "--set", "a.b=4"}},
		"instance-create-set-empty": {reason: "a path has names", args: []string{"instance", "create", "--region", "east", "--package", "p", "--set", "a..b=4"}},
		"instance-upgrade": {
			reason:  "what is inside a parameter is merged, and taken away, by the server",
			args:    []string{"instance", "upgrade", "k3x9vq2m", "--set", "image.tag=2", "--unset", "image.pullPolicy", "--unset", "users[0].name", "--wait=true"},
			replies: replies{getIt: {body: instanceJSON}, patchIt: accepted(), eventsOf: stream(opSucceeded)},
		},
		"instance-show-chart": {reason: "release, set and amendments", args: []string{"instance", "show", "k3x9vq2m"}, replies: replies{getIt: {body: amendedJSON}}},
		"instance-configure": {
			reason: "every option becomes a field",
			args: []string{
				"instance", "configure", "k3x9vq2m", "rules", "--package", "fw-rules", "--parameters", "-", "--set", "level=3", "--set", "a[0]=b",
				"--on-failure", "keep", "--timeout", "5m", "--on-unreachable", "wait", "--wait=applied", "--confirm", "sha256:6b86b2",
			},
			console: console{stdin: "allow: [10.0.0.0/8]\n"},
			replies: replies{getIt: {body: instanceJSON}, amendIt: accepted(), eventsOf: stream(op1, opSucceeded)},
		},
		"instance-configure-remove": {
			reason:  "what it takes away must be confirmed",
			args:    []string{"instance", "configure", "k3x9vq2m", "rules", "--remove", "--timeout", "5m", "--yes", "--no-wait"},
			replies: replies{getIt: {body: instanceJSON}, unamend + "?timeout=5m0s": problemReply(409, braked), unamend + "?confirm=sha256%3A6b86b2&timeout=5m0s": accepted()},
		},
		"instance-configure-dry": {
			reason: "the changes of an amendment", args: []string{"instance", "configure", "k3x9vq2m", "rules", "--package", "fw-rules", "--dry-run"},
			replies: replies{getIt: {body: instanceJSON}, "PUT /v1/vnf_instances/k3x9vq2m/amendments/rules?dry_run=true": {body: previewJSON}},
		},
		"instance-configure-remove-dry": {
			reason: "those of its removal, whose options are in the query", args: []string{"instance", "configure", "k3x9vq2m", "rules", "--remove", "--timeout", "5m", "--dry-run"},
			replies: replies{getIt: {body: instanceJSON}, unamend + "?dry_run=true&timeout=5m0s": {body: previewJSON}},
		},
		"instance-configure-nothing": {reason: "by what?", args: []string{"instance", "configure", "k3x9vq2m", "rules"}},
		"instance-configure-both":    {reason: "what goes has no values", args: []string{"instance", "configure", "k3x9vq2m", "rules", "--remove", "--set", "a=b"}},
		"instance-configure-unnamed": {reason: "an amendment has a name", args: []string{"instance", "configure", "k3x9vq2m", "--package", "p"}},
		"instance-test": {
			reason: "every test passed", args: []string{"instance", "test", "k3x9vq2m", "--timeout", "5m"},
			replies: replies{getIt: {body: instanceJSON}, testIt: tests, eventsOf: stream(testQueued, testPassed), getOp: {body: testPassed}},
		},
		"instance-test-dry": {
			reason: "a dry run lists the objects of the tests", args: []string{"instance", "test", "k3x9vq2m", "--dry-run"},
			replies: replies{getIt: {body: instanceJSON}, testIt + "?dry_run=true": {body: previewJSON}},
		},
		"instance-test-failed": {
			reason: "one that has not is the command's failure, and said once", args: []string{"instance", "test", "k3x9vq2m"},
			replies: replies{getIt: {body: instanceJSON}, testIt: tests, eventsOf: stream(testQueued, testFailed), getOp: {body: testFailed}},
		},
		"instance-test-broken": {
			reason: "tests that were not run are another failure", args: []string{"instance", "test", "k3x9vq2m"},
			replies: replies{getIt: {body: instanceJSON}, testIt: tests, eventsOf: stream(testBroken)},
		},
		"instance-test-json": {
			reason: "programs get the operation", args: []string{"instance", "test", "k3x9vq2m", "-o", "json"},
			replies: replies{getIt: {body: instanceJSON}, testIt: tests, eventsOf: stream(testPassed), getOp: {body: `{"operation_id":"0192f3a5c7d1-a7c1","passed":true}`}},
		},
		"instance-test-no-wait": {
			reason: "with --no-wait it returns at once", args: []string{"instance", "test", "k3x9vq2m", "--no-wait"},
			replies: replies{getIt: {body: instanceJSON}, testIt: tests},
		},
		"operation-undo-applied": {reason: "a return waits for what it brings back", args: []string{"operation", "undo", "op-1", "--wait=applied"}},
		"operation-show-test":    {reason: "steps that failed say why", args: []string{"operation", "show", "0192f3a5c7d1-a7c1"}, replies: replies{getOp: {body: testFailed}}},
	})
}

func TestFetch(t *testing.T) {
	play(t, map[string]commandCase{
		"package-pull-chart": {
			reason: "the server fetches the chart; the password is not shown",
			args: []string{
				"package", "pull", "oci://registry.example.com/charts/web", "--version", "^1.4", "--digest", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
				"--username", "ann", "--password-stdin", "--project", "blue",
			},
			console: console{stdin: "a password\n"},
			replies: replies{"POST /v1/packages": {status: 201, body: chartJSON}},
		},
		"package-pull-repository": {
			reason: "with an id it is put there", args: []string{"package", "pull", "https://charts.example.com", "--name", "web", "--id", "web", "-o", ""},
			replies: replies{"PUT /v1/packages/web": {body: chartJSON}},
		},
		"package-pull-refused": {
			reason: "the server may not", args: []string{"package", "pull", "oci://registry.example.com/charts/web"},
			replies: replies{"POST /v1/packages": problemReply(403, `{"status":403,"detail":"cannot fetch chart oci://registry.example.com/charts/web: it is not among the hosts listed in --allowed-chart-hosts","kind":"forbidden"}`)},
		},
		"package-pull-username": {reason: "a user has a password", args: []string{"package", "pull", "oci://registry.example.com/charts/web", "--username", "ann"}},
		"package-pull-file":     {reason: "what the server fetches stays there", args: []string{"package", "pull", "oci://registry.example.com/charts/web", "-o", "x.tgz"}},
		"package-pull-mixed":    {reason: "an id has its version", args: []string{"package", "pull", "firewall", "--version", "1"}},
		"package-show-chart":    {reason: "where it came from", args: []string{"package", "show", "web"}, replies: one("/v1/packages/web", chartJSON)},
		"package-upload-chart": {
			reason: "a chart's archive is sent as it is", args: []string{"package", "upload", "KUBE/chart.tgz"},
			replies: replies{"POST /v1/packages": {status: 201, body: chartJSON}},
		},
	})
}

func TestPutInside(t *testing.T) {
	cases := map[string]struct {
		reason string
		paths  []string // a path, and its value
		want   values
		fails  bool
	}{
		"Deep":    {"what is missing on the way is made", []string{"a.b.c=1"}, values{"a": []byte(`{"b":{"c":1}}`)}, false},
		"Beside":  {"what is there stays", []string{"image.tag=2"}, values{"image": []byte(`{"repository":"web","tag":2}`)}, false},
		"Null":    {"nothing is no hindrance", []string{"none.a=1"}, values{"none": []byte(`{"a":1}`)}, false},
		"Escaped": {"a dot can be a part of a name", []string{`a.b\.c=1`}, values{"a": []byte(`{"b.c":1}`)}, false},
		"Exact":   {"numbers keep their digits", []string{"image.size=12345678901234567890"}, values{"image": []byte(`{"repository":"web","size":12345678901234567890}`)}, false},
		"Text":    {"a text has nothing inside", []string{"name.a=1"}, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSettings()
			for _, text := range tc.paths {
				if err := (setFlag{s, typed}).Set(text); err != nil {
					t.Fatal(err)
				}
			}
			got := values{"image": []byte(`{"repository":"web"}`), "none": []byte("null"), "name": []byte(`"x"`)}
			want := values{"image": got["image"], "none": got["none"], "name": got["name"]}
			maps.Copy(want, tc.want)
			err := s.into(got)
			if (err != nil) != tc.fails {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(want, got); diff != "" && !tc.fails {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func FuzzPutInside(f *testing.F) {
	for _, seed := range []string{"a=1", "a.b=c", `a\.b=1`, "a..b=1", "a[0].b=1", ".=", "a.=", `\.\.=x`, "\x00.a=1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := newSettings()
		if (setFlag{s, textJSON}).Set(text) != nil {
			return
		}
		all := values{}
		if err := s.into(all); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if len(all)+len(s.texts) != 1 {
			t.Errorf("%q sets %v and %v", text, all, s.texts)
		}
	})
}

func TestPackLeavesOutWhatAChartIgnores(t *testing.T) {
	files := map[string]string{
		"Chart.yaml": "name: web\n", "values.yaml": "", "values.yaml.orig": "", "templates/web.yaml": "", "templates/web.yaml~": "", "templates/NOTES.txt": "",
		"ci/a.yaml": "", "docs/ci": "", "docs/a.md": "", "docs/sub/a.md": "", "charts/db.tgz": "x", "root.txt": "", "docs/root.txt": "",
	}
	const rules = "\ufeff# what editors leave\n*.orig\n*~\n\nci/\n/root.txt\ndocs/*.md\n"
	cases := map[string]struct {
		reason string
		ignore string
		chart  bool
		want   []string
	}{
		"Rules": {
			"rules are of names, of folders, of the root and of paths", rules, true,
			[]string{"Chart.yaml", "charts/db.tgz", "docs/ci", "docs/root.txt", "docs/sub/a.md", "templates/NOTES.txt", "templates/web.yaml", "values.yaml"},
		},
		"NoChart": {"another folder has no such file", rules, false, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all := map[string]string{".helmignore": tc.ignore}
			for name, content := range files {
				if name != "Chart.yaml" || tc.chart {
					all[name] = content
				}
			}
			archive, err := pack(folder(t, all))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, names(t, archive)); tc.want != nil && diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if got := names(t, archive); tc.want == nil && len(got) != len(files)-1 {
				t.Errorf("%s: got %q", tc.reason, got)
			}
		})
	}
	for _, bad := range []string{"a/**", "[", "!**"} {
		if _, err := pack(folder(t, map[string]string{"Chart.yaml": "", ".helmignore": bad})); err == nil || !strings.Contains(err.Error(), ".helmignore:1") {
			t.Errorf("%q: got error %v", bad, err)
		}
	}
}

func TestIgnoredButFor(t *testing.T) {
	root, err := os.OpenRoot(folder(t, map[string]string{"Chart.yaml": "", ".helmignore": "!*.yaml\n"}))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	rules, err := readIgnored(root)
	if err != nil {
		t.Fatal(err)
	}
	if rules.match("a.yaml", false) || !rules.match("a.txt", false) {
		t.Error("what an exclamation mark names stays, and nothing else")
	}
}

// chartArchive writes an archive of a chart next to a folder.
func chartArchive(t *testing.T, beside string) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	const text = "name: web\n"
	if err := w.WriteHeader(&tar.Header{Name: "web/Chart.yaml", Mode: 0o644, Size: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(beside, "chart.tgz"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
