package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// instruction is one of a Dockerfile, with its lines joined.
type instruction struct{ word, rest string }

// image reads the Dockerfile: the instructions of its last stage, and those
// before.
func image(t *testing.T) (last, before []instruction) {
	t.Helper()
	content, err := os.ReadFile(deployments + "/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(strings.ReplaceAll(string(content), "\\\n", "")) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word == "" || strings.HasPrefix(word, "#") {
			continue
		}
		if word == "FROM" {
			before, last = append(before, last...), nil
		}
		last = append(last, instruction{word, strings.TrimSpace(rest)})
	}
	return last, before
}

// TestImage compares the Dockerfile with the program that it packs.
func TestImage(t *testing.T) {
	t.Parallel()
	last, before := image(t)
	one := func(word string) string {
		var found []string
		for _, i := range last {
			if i.word == word {
				found = append(found, i.rest)
			}
		}
		if len(found) != 1 {
			t.Fatalf("the image has %d instructions %s: %q", len(found), word, found)
		}
		return found[0]
	}
	same(t, "base", "scratch", one("FROM"))
	same(t, "user", "65532:65532", one("USER"))
	same(t, "start", `["/usr/bin/k8splugin"]["serve"]`, one("ENTRYPOINT")+one("CMD"))
	for _, i := range last {
		if slices.Contains([]string{"RUN", "ADD", "HEALTHCHECK", "SHELL"}, i.word) {
			t.Errorf("the image has %s %s: there is nothing in it that could", i.word, i.rest)
		}
	}
	for _, label := range []string{"title", "description", "licenses", "source", "version", "revision", "created"} {
		if !strings.Contains(one("LABEL"), "org.opencontainers.image."+label+"=") {
			t.Errorf("the image has no label %s", label)
		}
	}
	env := map[string]string{}
	for _, m := range regexp.MustCompile(`(\w+)=(\S+)`).FindAllStringSubmatch(one("ENV"), -1) {
		env[m[1]] = m[2]
	}
	known(t, env)
	if _, err := loadConfig(serveFlags(t), func(name string) string { return env[name] }); err == nil || !strings.Contains(err.Error(), "--access-file") {
		t.Errorf("an image that is told nothing: %v, want that it asks who may come in", err)
	}
	env["K8SPLUGIN_ACCESS_FILE"] = "access.yaml"
	cfg, err := loadConfig(serveFlags(t), func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	same(t, "data and keys", []string{one("VOLUME"), one("VOLUME")}, []string{filepath.Dir(cfg.Data), filepath.Dir(cfg.keyFile())})

	// What is built is what `make build` builds.
	built := func(word, want string) bool {
		return slices.ContainsFunc(before, func(i instruction) bool { return i.word == word && strings.Contains(i.rest, want) })
	}
	module, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	release := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(module)[1]
	for _, want := range []instruction{
		{"ARG", "GO_VERSION=" + string(release)}, {"ARG", "VERSION=dev"},
		{"RUN", "CGO_ENABLED=0"}, {"RUN", "-trimpath"}, {"RUN", "-X main.linked=$VERSION"}, {"RUN", "./src/cmd/k8splugin"},
	} {
		if !built(want.word, want.rest) {
			t.Errorf("the build has no %s with %s", want.word, want.rest)
		}
	}
}

// TestBuildContext shows that nothing is left out of the image's build that the
// Dockerfile copies, and that what lies about does not get in.
func TestBuildContext(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../../../.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	if !slices.Contains(lines, "*") {
		t.Error("everything that lies about gets into the build")
	}
	_, before := image(t)
	for _, i := range before {
		if i.word != "COPY" {
			continue
		}
		words := strings.Fields(i.rest)
		for _, source := range words[:len(words)-1] {
			if !slices.Contains(lines, "!"+source) {
				t.Errorf("%s is copied, and not in the build", source)
			}
			if _, err := os.Stat(filepath.Join("../../..", source)); err != nil {
				t.Error(err)
			}
		}
	}
}

type compose struct {
	Name     string
	Services map[string]struct {
		Build struct {
			Context, Dockerfile string
			Args                map[string]string
		}
		Image, User, Restart string
		Command              []string
		Environment          map[string]string
		Secrets, Ports       []string
		Volumes, Tmpfs       []string
		DependsOn            []string `yaml:"depends_on"`
		StopGracePeriod      string   `yaml:"stop_grace_period"`
		ReadOnly             bool     `yaml:"read_only"`
		CapDrop              []string `yaml:"cap_drop"`
		SecurityOpt          []string `yaml:"security_opt"`
	}
	Secrets map[string]struct{ File string }
	Volumes map[string]any
}

// TestCompose compares compose.yaml with the program: it must start with what it
// is given.
func TestCompose(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(deployments + "/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c compose
	decoder := yaml.NewDecoder(strings.NewReader(string(content)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&c); err != nil {
		t.Fatal(err)
	}
	for name, s := range c.Services {
		same(t, name+": root", true, s.ReadOnly)
		same(t, name+": capabilities", []string{"ALL"}, s.CapDrop)
		same(t, name+": privileges", []string{"no-new-privileges:true"}, s.SecurityOpt)
		same(t, name+": restart", "unless-stopped", s.Restart)
		for _, secret := range s.Secrets {
			if c.Secrets[secret].File == "" {
				t.Errorf("%s is given the secret %s, which is nowhere", name, secret)
			}
		}
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s can be reached by other machines at %s", name, port)
			}
		}
		for _, value := range s.Environment {
			if file, ok := strings.CutPrefix(value, "/run/secrets/"); ok && !slices.Contains(s.Secrets, file) {
				t.Errorf("%s reads the secret %s, which it is not given", name, file)
			}
		}
	}
	s := c.Services["k8splugin"]
	same(t, "user", "${K8SPLUGIN_UID:-65532}", s.User)
	if _, err := os.Stat(filepath.Join(deployments, s.Build.Context, s.Build.Dockerfile)); err != nil {
		t.Error(err)
	}
	known(t, s.Environment)
	settings := filepath.Join(t.TempDir(), "store.yaml")
	script, err := os.ReadFile(filepath.Join(deployments, "compose-files"))
	if err != nil {
		t.Fatal(err)
	}
	store := regexp.MustCompile(`echo "(store: .*)" > secrets/store.yaml`).FindStringSubmatch(string(script))
	if store == nil {
		t.Fatal("nothing says how the store's file is made")
	}
	if err := os.WriteFile(settings, []byte(strings.Replace(store[1], "$(cat secrets/mongo-password)", "abc", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	same(t, "command", []string{"serve", "--config", "/run/secrets/store"}, s.Command)
	cfg, err := loadConfig(serveFlags(t, "--config", settings, "--listen", ":9015"), func(name string) string { return s.Environment[name] })
	if err != nil {
		t.Fatal(err)
	}
	same(t, "store, keys and access", []string{"mongodb://k8splugin:abc@mongo:27017/k8splugin?authSource=admin", "/run/secrets/keys", "/run/secrets/access"},
		[]string{cfg.Store, cfg.keyFile(), cfg.AccessFile})
}

// known fails the test for variables that no setting has.
func known(t *testing.T, env map[string]string) {
	t.Helper()
	flags := serveFlags(t)
	for name := range env {
		setting, ours := strings.CutPrefix(name, envPrefix)
		if setting = strings.ReplaceAll(strings.ToLower(setting), "_", "-"); !ours || flags.Lookup(setting) == nil {
			t.Errorf("%s is no setting", name)
		}
	}
}
