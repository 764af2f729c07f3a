package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/store/kms/kmstest"
)

// TestKeyCommandsWithService runs the commands for key files in their order, with a key
// management service.
func TestKeyCommandsWithService(t *testing.T) {
	t.Parallel()
	s, down := kmstest.Start(t), kmstest.Start(t)
	down.Stop()
	dir := t.TempDir()
	file, plain, none := filepath.Join(dir, "keys"), filepath.Join(dir, "plain"), filepath.Join(dir, "none")
	_, text := newKeys(t, plain)
	encrypted := func(file string) bool {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(content), "k8splugin-encrypted-keyring") && !strings.Contains(string(content), "keyData")
	}
	with := []string{"--encryption-kms", s.Endpoint}
	steps := []struct {
		reason string
		args   []string
		env    map[string]string
		code   int
		says   string
		file   string // that is encrypted afterwards
	}{
		{"a new file is encrypted", append([]string{"init", file}, with...), nil, 0, "contains the new key", file},
		{"without the service, it is not read", []string{"rotate", file}, nil, 1, "set --encryption-kms", file},
		{"a key is added", append([]string{"rotate", "--add", file}, with...), nil, 0, "now also contains", file},
		{"a key is rotated, with the service of the environment", []string{"rotate", file}, map[string]string{"K8SPLUGIN_ENCRYPTION_KMS": s.Endpoint}, 0, "New records", file},
		{"the service is down", []string{"rotate", file, "--encryption-kms", down.Endpoint}, nil, 6, "Unavailable", file},
		{"nothing is written without the service", []string{"init", none, "--encryption-kms", down.Endpoint}, nil, 6, "Unavailable", ""},
		{"not the path of a socket", []string{"init", none, "--encryption-kms", "tcp://a:1"}, nil, 2, "must be unix://", ""},
		{"not the path of a socket, in the environment", []string{"init", none}, map[string]string{"K8SPLUGIN_ENCRYPTION_KMS": "/a"}, 2, "must be unix://", ""},
		{"plaintext is not read in silence", append([]string{"rotate", plain}, with...), nil, 1, "`k8splugin keys encrypt " + plain + " --encryption-kms " + s.Endpoint + "`", ""},
		{"plaintext is encrypted", append([]string{"encrypt", plain}, with...), nil, 0, "is now encrypted", plain},
		{"once", append([]string{"encrypt", plain}, with...), nil, 0, "is already encrypted", plain},
		{"with a service only", []string{"encrypt", plain}, nil, 2, "--encryption-kms is missing", plain},
		{"a file that does not exist", append([]string{"encrypt", none}, with...), nil, 3, "none", ""},
		{"decryption needs the service", []string{"decrypt", plain}, nil, 1, "set --encryption-kms", plain},
		{"and writes plaintext", append([]string{"decrypt", plain}, with...), nil, 0, "is now plaintext", ""},
		{"once, too", []string{"decrypt", plain}, nil, 1, "it is not encrypted", ""},
	}
	for _, step := range steps {
		code, says := runWith(t, step.env, append([]string{"keys"}, step.args...)...)
		if code != step.code || !strings.Contains(says, step.says) {
			t.Errorf("%s: keys %v: exit code %d, want %d and %q: %s", step.reason, step.args, code, step.code, step.says, says)
		}
		if step.file != "" && !encrypted(step.file) {
			t.Errorf("%s: %s is not encrypted", step.reason, step.file)
		}
	}
	if content, err := os.ReadFile(plain); err != nil || string(content) != text {
		t.Errorf("after seal and unseal, the keys are %q, %v", content, err)
	}
	if _, err := os.Stat(none); !os.IsNotExist(err) {
		t.Errorf("a command that failed has written a file: %v", err)
	}

	next := s.Plugin.Rotate()
	if code, says := runWith(t, nil, append([]string{"keys", "encrypt", file}, with...)...); code != 0 || !strings.Contains(says, next) {
		t.Errorf("the service has a new key: exit code %d, %s", code, says)
	}
	s.Plugin.Lose()
	if code, says := runWith(t, nil, append([]string{"keys", "rotate", file}, with...)...); code != 0 {
		t.Errorf("the former key of the service is still needed: exit code %d, %s", code, says)
	}
}

// TestServeWithService starts the service with an encrypted key file.
func TestServeWithService(t *testing.T) {
	t.Parallel()
	s := kmstest.Start(t)
	data := filepath.Join(t.TempDir(), "data")
	keys := data + ".keys"
	with := []string{"--encryption-kms", s.Endpoint}
	for _, id := range []string{"first", "second"} {
		p := serveProgram(t, data, with...)
		p.upload(id, web(goodImage))
		if code := p.stop(); code != 0 {
			t.Fatalf("exit code %d: %s", code, p.log)
		}
	}
	content, err := os.ReadFile(keys)
	if err != nil || !strings.Contains(string(content), "k8splugin-encrypted-keyring") {
		t.Fatalf("the key file of a new store is %q, %v", content, err)
	}
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, says := runWith(t, nil, append([]string{"keys", "decrypt", plain}, with...)...); code != 0 {
		t.Fatal(says)
	}
	text, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	others := filepath.Join(t.TempDir(), "others")
	if code, says := runWith(t, nil, append([]string{"keys", "init", others}, with...)...); code != 0 {
		t.Fatal(says)
	}
	other := kmstest.Start(t)
	cases := map[string]struct {
		reason string
		args   []string
		env    map[string]string
		code   int
		says   string
	}{
		"NoFlag":      {"the file is encrypted", nil, nil, 1, "set --encryption-kms"},
		"Plaintext":   {"the file is plaintext", append([]string{"--encryption-key-file", plain}, with...), nil, 1, "`k8splugin keys encrypt " + plain + " --encryption-kms " + s.Endpoint + "`"},
		"Environment": {"the keys of the environment are plaintext", with, map[string]string{"K8SPLUGIN_KEYS": string(text)}, 1, "`k8splugin keys encrypt FILE"},
		"Garbage":     {"the environment has something else", with, map[string]string{"K8SPLUGIN_KEYS": "{}"}, 6, "K8SPLUGIN_KEYS does not have"},
		"Down":        {"the service is down", []string{"--encryption-kms", "unix:///nowhere/socket"}, nil, 6, "Unavailable"},
		"OtherKeys":   {"these are the keys of another store", append([]string{"--encryption-key-file", others}, with...), nil, 6, "does not have"},
		"Other":       {"another service has other keys", []string{"--encryption-kms", other.Endpoint}, nil, 6, "there is no key"},
		"Setting":     {"the setting is wrong", []string{"--encryption-kms", "tcp://a:1"}, nil, 2, "encryption-kms: must be unix://"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			code, says := runWith(t, tc.env, append([]string{"serve", "--listen", "127.0.0.1:0", "--data", data}, tc.args...)...)
			if code != tc.code || !strings.Contains(says, tc.says) {
				t.Errorf("%s: exit code %d, want %d and %q: %s", tc.reason, code, tc.code, tc.says, says)
			}
		})
	}
	if after, err := os.ReadFile(keys); err != nil || string(after) != string(content) {
		t.Fatalf("the key file now is %q, %v", after, err)
	}
	for name, args := range map[string][]string{"file": nil, "environment": {"--encryption-key-file", filepath.Join(t.TempDir(), "none")}} {
		env := map[string]string{"K8SPLUGIN_ENCRYPTION_KMS": s.Endpoint}
		if args != nil {
			env["K8SPLUGIN_KEYS"] = string(content)
		}
		identity := filepath.Join(t.TempDir(), "identity")
		_, recipient := runProgram(t, "backup", "identity", identity)
		saved := filepath.Join(t.TempDir(), "saved")
		if code, says := runWith(t, env, append([]string{"backup", "create", "--data", data, "--recipient", strings.TrimSpace(recipient), saved}, args...)...); code != 0 {
			t.Errorf("keys in the %s: exit code %d, %s", name, code, says)
		}
		if code, says := runProgram(t, "backup", "check", "--identity-file", identity, saved); code != 0 {
			t.Errorf("a backup needs no service: exit code %d, %s", code, says)
		}
	}
	if code, says := runWith(t, nil, append([]string{"keys", "prune", "--data", data}, with...)...); code != 0 {
		t.Errorf("prune: exit code %d, %s", code, says)
	}

	p := serveProgram(t, data, with...)
	s.Stop()
	p.upload("more", web(goodImage))
	p.want(http.StatusOK, p.do("GET", "/readyz", nil))
}
