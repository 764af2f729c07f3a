package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	k8splugin "github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/northbound/northboundtest"
)

// program is `k8splugin serve` as a user starts it, in this process.
type program struct {
	testService

	stop func() int // as SIGTERM does; returns the exit code
	log  *syncBuffer
}

// serveProgram starts the program on a data folder and waits until it serves.
func serveProgram(t *testing.T, data string, args ...string) *program {
	t.Helper()
	read, write := io.Pipe()
	p := &program{testService: testService{t: t, client: northboundtest.Client(t, k8splugin.Swagger)}, log: &syncBuffer{}}
	ctx, cancel := context.WithCancel(context.Background())
	exit := make(chan int, 1)
	go func() {
		code := run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0", "--data", data}, args...), testProcess(write, write))
		_ = write.Close()
		exit <- code
	}()
	address := make(chan string, 1)
	go func() {
		defer close(address)
		for lines := bufio.NewScanner(read); lines.Scan(); {
			_, _ = p.log.Write(append(lines.Bytes(), '\n'))
			var line struct{ Msg, Address string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "service listening" {
				address <- line.Address
			}
		}
	}()
	listening, ok := <-address
	if !ok {
		t.Fatalf("the program ended with code %d: %s", <-exit, p.log)
	}
	p.url = "http://" + listening
	p.stop = sync.OnceValue(func() int { cancel(); return <-exit })
	t.Cleanup(func() { p.stop() })
	return p
}

func testProcess(stdout, stderr io.Writer) process {
	return process{
		stdin: strings.NewReader(""), stdout: stdout, stderr: stderr,
		getenv: func(string) string { return "" }, terminal: func(any) bool { return false },
	}
}

// syncBuffer is a buffer that one goroutine writes while another reads.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestServiceResumesAfterARestart(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	ns := clustertest.Namespace(t)
	first := serveProgram(t, data, "--drain-timeout", "1s")
	first.want(http.StatusCreated, first.do("POST", "/v1/cloud_regions", map[string]any{
		"cloud_region_id": "sandbox", "kubeconfig": base64.StdEncoding.EncodeToString(clustertest.Kubeconfig(t)),
	}))
	files := web(goodImage)
	files["db.yaml"] = deployment("db", "sandbox.invalid/never-ready:1")
	first.upload("web", files)
	waiting := make(chan answer, 1)
	go func() {
		waiting <- first.do("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "sandbox", "csar_id": "web", "namespace": ns})
	}()
	clustertest.WaitForDeployment(t, ns, "db")
	if code := first.stop(); code != 0 {
		t.Fatalf("exit code %d: %s", code, first.log)
	}
	<-waiting

	second := serveProgram(t, data)
	list := second.want(http.StatusOK, second.do("GET", "/v1/vnf_instances?namespace="+ns, nil))
	in := list.field(t, "vnf_instances").([]any)[0].(map[string]any)
	op := second.want(http.StatusOK, second.do("GET", "/v1/operations/"+in["operation_id"].(string), nil))
	if state := op.text(t, "state"); state != "running" && state != "queued" {
		t.Fatalf("the restart ended the operation: %s", op.body)
	}
	clustertest.Unblock(t, ns, "db", goodImage)
	if ended := second.operation(in["operation_id"].(string)); ended.text(t, "state") != "succeeded" {
		t.Errorf("the resumed operation: %s", ended.body)
	}
	second.want(http.StatusNoContent, second.do("DELETE", "/v1/vnf_instances/"+in["vnf_id"].(string), nil))
	if code := second.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	kubeconfig := string(clustertest.Kubeconfig(t))
	secrets := secretsOf(kubeconfig)
	if len(secrets) == 0 {
		t.Fatal("the sandbox's kubeconfig has no token to look for")
	}
	for name, log := range map[string]string{"first": first.log.String(), "second": second.log.String()} {
		for _, secret := range secrets {
			if strings.Contains(log, secret) || strings.Contains(log, base64.StdEncoding.EncodeToString([]byte(kubeconfig))[:40]) {
				t.Errorf("the %s log shows the kubeconfig's secrets", name)
			}
		}
	}
}

// secretsOf returns the tokens in a kubeconfig.
func secretsOf(kubeconfig string) []string {
	var out []string
	for _, line := range strings.FieldsFunc(kubeconfig, func(r rune) bool { return strings.ContainsRune("\n,{}", r) }) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.Trim(name, ` "`) == "token" {
			out = append(out, strings.Trim(value, ` "`))
		}
	}
	return out
}

func TestDataFolderBelongsToOneProcess(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	first := serveProgram(t, data)
	var stderr syncBuffer
	code := run(t.Context(), []string{"serve", "--listen", "127.0.0.1:0", "--data", data}, testProcess(io.Discard, &stderr))
	if code != 4 || !strings.Contains(stderr.String(), "in use") {
		t.Errorf("a second process: code %d: %s", code, &stderr)
	}
	first.want(http.StatusOK, first.do("GET", "/readyz", nil))
}

func TestTakenPortIsAnError(t *testing.T) {
	t.Parallel()
	first := serveProgram(t, t.TempDir())
	var stderr syncBuffer
	address := strings.TrimPrefix(first.url, "http://")
	code := run(t.Context(), []string{"serve", "--listen", address, "--data", t.TempDir()}, testProcess(io.Discard, &stderr))
	if code != 1 || !strings.Contains(stderr.String(), "cannot listen") {
		t.Errorf("a second process: code %d: %s", code, &stderr)
	}
}

func TestConfigurationLayers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "site.yaml")
	if err := os.WriteFile(file, []byte("listen: 127.0.0.1:1\nworkers: 3\nlog-level: debug\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	unknown := filepath.Join(dir, "unknown.yaml")
	if err := os.WriteFile(unknown, []byte("worker: 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	type got struct {
		Listen, LogLevel string
		Workers          int
	}
	cases := map[string]struct {
		reason string
		args   []string
		env    map[string]string
		want   got
		err    string
	}{
		"Defaults":    {reason: "nothing has to be set", want: got{"127.0.0.1:9015", "info", 32}},
		"File":        {reason: "the file wins over the defaults", args: []string{"--config", file}, want: got{"127.0.0.1:1", "debug", 3}},
		"FileByEnv":   {reason: "the environment may name the file", env: map[string]string{"K8SPLUGIN_CONFIG": file}, want: got{"127.0.0.1:1", "debug", 3}},
		"Environment": {reason: "the environment wins over the file", args: []string{"--config", file}, env: map[string]string{"K8SPLUGIN_LOG_LEVEL": "warn"}, want: got{"127.0.0.1:1", "warn", 3}},
		"Flag": {
			reason: "a flag wins over all", args: []string{"--config", file, "--workers", "7"},
			env: map[string]string{"K8SPLUGIN_WORKERS": "5"}, want: got{"127.0.0.1:1", "debug", 7},
		},
		"UnknownInFile": {reason: "a misspelt setting is an error", args: []string{"--config", unknown}, err: `unknown setting "worker"`},
		"NoFile":        {reason: "a file that is named must be there", args: []string{"--config", filepath.Join(dir, "none")}, err: "cannot read"},
		"BadEnv":        {reason: "the error names the variable", env: map[string]string{"K8SPLUGIN_WORKERS": "many"}, err: "K8SPLUGIN_WORKERS"},
		"BadValues":     {reason: "every wrong setting is named at once", args: []string{"--listen", "nowhere", "--log-format", "xml"}, err: "log-format"},
		"SecretInURL":   {reason: "a password is not repeated", args: []string{"--store", "mysql://u:hunter2@h/db"}, err: "mysql://u:xxxxx@h/db"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
			configFlags(flags)
			if err := flags.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			cfg, err := loadConfig(flags, func(name string) string { return tc.env[name] })
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("%s: %v, want %q", tc.reason, err, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got{cfg.Listen, cfg.LogLevel, cfg.Workers}); err != nil || diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, diff)
			}
		})
	}
}

func TestConfigurationIsLoggedMasked(t *testing.T) {
	t.Parallel()
	cfg, err := loadConfig(serveFlags(t, "--store", "etcd://user:hunter2@host:2379"), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	text := cfg.LogValue().String()
	if strings.Contains(text, "hunter2") || !strings.Contains(text, "host:2379") {
		t.Errorf("logged configuration: %s", text)
	}
}
