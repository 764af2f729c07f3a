package main

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/multicloud-k8s/k8splugin/src/store/seal"
)

// runWith runs a command line with an environment.
func runWith(t *testing.T, env map[string]string, args ...string) (code int, says string) {
	t.Helper()
	var out syncBuffer
	p := testProcess(&out, &out)
	p.getenv = func(name string) string { return env[name] }
	code = run(t.Context(), args, p)
	return code, out.String()
}

// newKeys writes a key file, and returns the id of its key and its text.
func newKeys(t *testing.T, file string) (id, text string) {
	t.Helper()
	ring, err := seal.Generate()
	if err == nil {
		err = ring.Save(t.Context(), file, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ring.IDs()[0], string(ring.Text())
}

// TestWrongKeys opens a store that is not empty without the key that its records
// are encrypted with: every command says which one is needed, and writes nothing.
func TestWrongKeys(t *testing.T) {
	t.Parallel()
	_, others := newKeys(t, filepath.Join(t.TempDir(), "others.keys"))
	identity := filepath.Join(t.TempDir(), "identity")
	code, recipient := runProgram(t, "backup", "identity", identity)
	if code != 0 {
		t.Fatal(recipient)
	}
	saved := filepath.Join(t.TempDir(), "saved")
	files := map[string]struct {
		reason  string
		content *string // of the key file; nil: there is none
		env     map[string]string
		where   string // in what is said; empty: the key file
	}{
		"Missing": {"a folder was restored, and its keys were not", nil, nil, ""},
		"Empty":   {"a mount that has nothing in it", new(string), nil, ""},
		"Garbage": {"another file", new("no keys"), nil, ""},
		"Others":  {"the keys of another store", &others, nil, ""},
		"Given":   {"keys from the environment come before the file", nil, map[string]string{"K8SPLUGIN_KEYS": others}, "K8SPLUGIN_KEYS"},
	}
	commands := map[string][]string{
		"serve":          {"serve", "--listen", "127.0.0.1:0"},
		"backup create":  {"backup", "create", "--recipient", strings.TrimSpace(recipient), filepath.Join(t.TempDir(), "new")},
		"backup restore": {"backup", "restore", "--identity-file", identity, "--replace", saved},
		"keys prune":     {"keys", "prune"},
	}
	for store, options := range storesOf(t) {
		keys := filepath.Join(t.TempDir(), "right.keys")
		id, text := newKeys(t, keys)
		p := serveProgram(t, t.TempDir(), append(options, "--encryption-key-file", keys)...) // its audit has an entry of the start
		p.upload("small", web(goodImage))
		p.stop()
		if code, says := runProgram(t, append([]string{"backup", "create", "--recipient", strings.TrimSpace(recipient), "--encryption-key-file", keys, saved}, options...)...); code != 0 {
			t.Fatal(says)
		}
		for name, tc := range files {
			for command, args := range commands {
				t.Run(store+"/"+name+"/"+command, func(t *testing.T) {
					file := filepath.Join(t.TempDir(), "data.keys")
					if tc.content != nil {
						if err := os.WriteFile(file, []byte(*tc.content), 0o600); err != nil {
							t.Fatal(err)
						}
					}
					code, says := runWith(t, tc.env, append(append(args, "--encryption-key-file", file), options...)...)
					where := tc.where
					if where == "" {
						where = fmt.Sprintf("key file %q", file)
					}
					if want := fmt.Sprintf("the store is encrypted with key %s, which %s does not have", id, where); code != 6 || !strings.Contains(says, want) {
						t.Errorf("%s: exit code %d, want 6 and %q: %s", tc.reason, code, want, says)
					}
					entries, err := os.ReadDir(filepath.Dir(file))
					if err != nil || len(entries) > 0 && tc.content == nil {
						t.Errorf("%s: it has written %v, %v", tc.reason, entries, err)
					}
					if content, err := os.ReadFile(file); tc.content != nil && (err != nil || string(content) != *tc.content) {
						t.Errorf("%s: the key file now is %q, %v", tc.reason, content, err)
					}
				})
			}
		}
		if code, says := runWith(t, map[string]string{"K8SPLUGIN_KEYS": text}, append([]string{"backup", "create", "--recipient", strings.TrimSpace(recipient), filepath.Join(t.TempDir(), "new")}, options...)...); code != 0 {
			t.Errorf("with the right keys: exit code %d, %s", code, says)
		}
	}
}

// storesOf returns the options of an embedded and an outside store.
func storesOf(t *testing.T) map[string][]string {
	t.Helper()
	c := embed.NewConfig()
	c.Dir = t.TempDir()
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	c.ListenPeerUrls = nil
	c.ListenClientUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.AdvertiseClientUrls = c.ListenClientUrls
	c.EnableGRPCGateway = false
	server, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	<-server.Server.ReadyNotify()
	return map[string][]string{
		"Embedded": {"--data", filepath.Join(t.TempDir(), "data")},
		"Outside":  {"--store", "etcd://" + server.Clients[0].Addr().String()},
	}
}

// TestFirstKeys starts for the first time, after starts that were interrupted.
func TestFirstKeys(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		before func(t *testing.T, data string)
	}{
		"Nothing": {"nothing is there", func(*testing.T, string) {}},
		"Saving": {"the key file was being written", func(t *testing.T, data string) {
			if err := os.WriteFile(data+".keys.new", []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		"Saved": {"there is a key and no record", func(t *testing.T, data string) { newKeys(t, data+".keys") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			tc.before(t, data)
			before, _ := os.ReadFile(data + ".keys")
			for range 2 {
				if code := serveProgram(t, data).stop(); code != 0 {
					t.Errorf("%s: exit code %d", tc.reason, code)
				}
			}
			if after, err := os.ReadFile(data + ".keys"); err != nil || before != nil && !bytes.Equal(before, after) {
				t.Errorf("%s: the keys are others now, error %v", tc.reason, err)
			}
		})
	}
	t.Run("Outside", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "keys")
		code, says := runProgram(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--encryption-key-file", file}, storesOf(t)["Outside"]...)...)
		if code != 3 || !strings.Contains(says, "k8splugin keys init "+file) {
			t.Errorf("replicas must have the same keys, so none of them makes any: exit code %d, %s", code, says)
		}
	})
}

// TestInitKeepsKeys does not make keys where some are.
func TestInitKeepsKeys(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "keys")
	_, text := newKeys(t, file)
	code, says := runProgram(t, "keys", "init", file)
	if content, err := os.ReadFile(file); code != 4 || err != nil || string(content) != text {
		t.Errorf("exit code %d, %s; the file now is %q, %v", code, says, content, err)
	}
}
