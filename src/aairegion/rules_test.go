package aairegion_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/aairegion"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	secret = "s3cret-s3cret-s3cret-s3cret" // a token, or part of other values
	server = "https://10.0.0.1:6443"
)

// kubeconfig is one that the stand-in of a parser accepts.
const kubeconfig = "kind: Config\nclusters: []\ntoken: " + secret

// rules are rules with stand-ins of the parser and of the outbound rules. The parser
// accepts what has no exec, and the address in "server" of a kubeconfig counts.
func rules() aairegion.Rules {
	return aairegion.Rules{
		Parse: func(text nf.Secret) (nf.Access, error) {
			if strings.Contains(string(text), "exec") {
				return nf.Access{}, nf.E(nf.Invalid, "use", "kubeconfig", nf.Violations{{Field: "users[a].user.exec", Message: "would run a program"}})
			}
			address := server
			if strings.Contains(string(text), "169.254") {
				address = "https://169.254.169.254"
			}
			return nf.Access{Server: address, Token: nf.Secret(secret), Kubeconfig: text}, nil
		},
		Check: func(a nf.Access) error {
			if strings.Contains(a.Server, "169.254") {
				return nf.E(nf.Invalid, "use", "access", errors.New("link-local addresses are not allowed"))
			}
			return nil
		},
	}
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func extra(t *testing.T, keys map[string]any) nf.Secret {
	t.Helper()
	text, err := json.Marshal(keys)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// pem is a certificate by its form.
const pemText = `-----BEGIN CERTIFICATE-----
MIIBdzCCAR2gAwIBAgIBATAKBggqhkjOPQQDAjAAMB4XDTI0MDEwMTAwMDAwMFoX
-----END CERTIFICATE-----
`

func TestFind(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, text := range map[string]string{"flat": kubeconfig, "mounted/kubeconfig": kubeconfig, "large": strings.Repeat("x", 1<<20), "exec": kubeconfig + "exec"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	lines := encoded(kubeconfig)
	lines = lines[:20] + "\n  " + lines[20:]
	reference := func(name string) aai.System {
		return aai.System{ID: "a", SystemType: "kubeconfig-ref", RemotePath: name}
	}
	type systems = []aai.System
	cases := map[string]struct {
		reason  string
		systems systems
		extra   nf.Secret
		edit    func(*aairegion.Rules)
		place   string // empty: none
		says    string // part of the error
	}{
		"reference":        {"a name refers to a file", systems{reference("flat")}, nil, nil, "esr-system-info a: remote-path", ""},
		"mounted":          {"or to a mounted Secret", systems{reference("mounted")}, nil, nil, "esr-system-info a: remote-path", ""},
		"reference first":  {"a name precedes a secret, whatever the id", systems{{ID: "A", SystemType: "VIM", Password: nf.Secret(kubeconfig)}, {ID: "z", Type: "Kubeconfig-Ref", RemotePath: "flat"}}, nil, nil, "esr-system-info z: remote-path", ""},
		"traversal":        {"a name is not a path", systems{reference("../outside")}, nil, nil, "", "is not the name of a kubeconfig"},
		"dots":             {"nor the folder above", systems{reference("..")}, nil, nil, "", "is not the name of a kubeconfig"},
		"absolute":         {"nor an absolute path", systems{reference("/etc/passwd")}, nil, nil, "", "is not the name of a kubeconfig"},
		"NUL":              {"nor a part of one", systems{reference("flat\x00")}, nil, nil, "", "is not the name of a kubeconfig"},
		"link":             {"a link does not lead out of the folder", systems{reference("link")}, nil, nil, "", "cannot be read"},
		"absent":           {"the file does not exist", systems{reference("none")}, nil, nil, "", "is not in --aai-region-secrets"},
		"large file":       {"the file is too large", systems{reference("large")}, nil, nil, "", "more than 524288 bytes"},
		"exec in file":     {"a file is checked like an upload", systems{reference("exec")}, nil, nil, "", "would run a program"},
		"no folder":        {"there is no folder", systems{reference("flat")}, nil, func(r *aairegion.Rules) { r.Secrets = "" }, "", "--aai-region-secrets is not set"},
		"raw":              {"a password may be a kubeconfig", systems{{ID: "a", Password: nf.Secret(kubeconfig)}}, nil, nil, "esr-system-info a: password", ""},
		"base64":           {"also in base64, with line breaks", systems{{ID: "a", Password: nf.Secret(lines)}}, nil, nil, "esr-system-info a: password", ""},
		"exec":             {"a kubeconfig with exec is not used, and the next system is", systems{{ID: "a", Password: nf.Secret(kubeconfig + "\nexec: {}")}, {ID: "b", Password: nf.Secret(kubeconfig)}}, nil, nil, "esr-system-info b: password", ""},
		"only exec":        {"without another one, there are no credentials", systems{{ID: "a", Password: nf.Secret(kubeconfig + "\nexec: {}")}}, nil, nil, "", "would run a program"},
		"metadata":         {"the outbound rules hold for a kubeconfig", systems{{ID: "a", Password: nf.Secret(kubeconfig + "169.254")}}, nil, nil, "", "link-local"},
		"metadata URL":     {"and for a service-url", systems{{ID: "a", URL: "https://169.254.169.254", Password: nf.Secret(secret)}}, nil, nil, "", "link-local"},
		"token":            {"a token logs in", systems{{ID: "a", URL: server, Password: nf.Secret(secret), CA: pemText}}, nil, nil, "", "service-url, password"},
		"system CAs":       {"without a CA, those of the system count", systems{{ID: "a", URL: server, Password: nf.Secret(secret)}}, nil, nil, "esr-system-info a: service-url, password", ""},
		"bad CA":           {"a CA that is none is no reason to use others", systems{{ID: "a", URL: server, Password: nf.Secret(secret), CA: "x"}}, nil, nil, "", "ssl-cacert has no PEM certificate"},
		"insecure":         {"insecure is not allowed by default", systems{{ID: "a", URL: server, Password: nf.Secret(secret), Insecure: true}}, nil, nil, "", "--aai-region-insecure"},
		"insecure allowed": {"but may be allowed", systems{{ID: "a", URL: server, Password: nf.Secret(secret), Insecure: true}}, nil, func(r *aairegion.Rules) { r.Insecure = true }, "esr-system-info a: service-url, password", ""},
		"basic":            {"a password is not a token", systems{{ID: "a", URL: server, User: "u", Password: nf.Secret("hunter2hunter2")}}, nil, nil, "", "no basic authentication"},
		"placeholder":      {"the SDK's values are not credentials", systems{{ID: "a", URL: "http://10.0.0.1", User: "user", Password: nf.Secret("pass")}}, nil, nil, "", "service-url is not an https:// URL"},
		"no URL":           {"the missing attribute is named", systems{{ID: "a", Password: nf.Secret(secret)}}, nil, nil, "", "service-url is missing"},
		"no password":      {"also if it is the password", systems{{ID: "a", URL: server}}, nil, nil, "", "password is missing"},
		"user in URL":      {"a URL has no user", systems{{ID: "a", URL: "https://u:" + secret + "@10.0.0.1", Password: nf.Secret(secret)}}, nil, nil, "", "service-url is not an https:// URL"},
		"line break":       {"a token does not end a header", systems{{ID: "a", URL: server, Password: nf.Secret(secret + "\r\nHost: b")}}, nil, nil, "", "neither a kubeconfig nor a token"},
		"preferred":        {"a VIM precedes others", systems{{ID: "a", SystemType: "EMS", Password: nf.Secret(kubeconfig)}, {ID: "z", SystemType: "vim", Password: nf.Secret(kubeconfig)}}, nil, nil, "esr-system-info z: password", ""},
		"by id":            {"then the id decides", systems{{ID: "b", Password: nf.Secret(kubeconfig)}, {ID: "a", Password: nf.Secret(kubeconfig)}}, nil, nil, "esr-system-info a: password", ""},
		"abnormal":         {"an abnormal system is skipped", systems{{ID: "a", Status: "Abnormal", Password: nf.Secret(kubeconfig)}}, nil, nil, "", "system-status is abnormal"},
		"extra":            {"the extra info may have a kubeconfig", nil, extra(t, map[string]any{"kubeconfig": kubeconfig, "other": []int{1}}), nil, "cloud-extra-info: kubeconfig", ""},
		"extra base64":     {"also in base64", nil, extra(t, map[string]any{"kubeconfig": lines}), nil, "cloud-extra-info: kubeconfig", ""},
		"starlingx":        {"or an address and a token", nil, extra(t, map[string]any{"k8s-apiserver": server, "k8s-apitoken": secret}), nil, "cloud-extra-info: k8s-apiserver, k8s-apitoken", ""},
		"no apitoken":      {"of which both are needed", nil, extra(t, map[string]any{"k8s-apiserver": server}), nil, "", "k8s-apitoken is missing"},
		"extra falls back": {"a kubeconfig that is wrong does not hide the token", nil, extra(t, map[string]any{"kubeconfig": "x", "k8s-apiserver": server, "k8s-apitoken": secret}), nil, "cloud-extra-info: k8s-apiserver, k8s-apitoken", ""},
		"whole":            {"or be a kubeconfig", nil, nf.Secret(kubeconfig), nil, "cloud-extra-info", ""},
		"whole JSON":       {"also in JSON", nil, nf.Secret(`{"clusters":[]}`), nil, "cloud-extra-info", ""},
		"ESR first":        {"ESR precedes the extra info", systems{{ID: "a", Password: nf.Secret(kubeconfig)}}, nf.Secret(kubeconfig), nil, "esr-system-info a: password", ""},
		"extra last":       {"which is used if ESR has nothing", systems{{ID: "a", Password: nf.Secret("pass")}}, nf.Secret(kubeconfig), nil, "cloud-extra-info", ""},
		"nothing":          {"there is nothing", nil, nf.Secret(`{"openstack-region-id":"x"}`), nil, "", "esr-system-info-list: is empty"},
		"other type":       {"another cloud is no cluster", systems{{ID: "a", Password: nf.Secret(kubeconfig)}}, nil, func(r *aairegion.Rules) { r.Types = []string{"openstack"} }, "", "cloud-type"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rules()
			r.Secrets = folder
			if tc.edit != nil {
				tc.edit(&r)
			}
			got, err := r.Find(aai.CloudRegion{Owner: "o", ID: "r", Type: "K8S", Extra: tc.extra, Systems: tc.systems})
			if got.Place != tc.place || (err == nil) != (tc.place != "") {
				t.Fatalf("%s: got %q, %v", tc.reason, got.Place, err)
			}
			if err == nil {
				return
			}
			if text := err.Error(); !strings.Contains(text, tc.says) || strings.Contains(text, secret) || strings.Contains(text, "hunter2") {
				t.Errorf("%s: the error is %q", tc.reason, text)
			}
		})
	}
}

// FuzzFind checks that no credentials of A&AI are quoted, and that all that are found pass
// the checks.
func FuzzFind(f *testing.F) {
	f.Add("VIM", "", server, secret, "", true, "{}")
	f.Add("kubeconfig-ref", "../x", "", "", "", false, "")
	f.Add("k8s", "", "", kubeconfig, "", false, `{"kubeconfig":"x"}`)
	f.Add("k8s", "", "http://x", encoded(kubeconfig), pemText, false, kubeconfig)
	folder := f.TempDir()
	f.Fuzz(func(t *testing.T, kind, remote, address, password, ca string, insecure bool, extra string) {
		const marked = "marked-secret-value"
		r := rules()
		r.Secrets = folder
		checked := 0
		check := r.Check
		r.Check = func(a nf.Access) error { checked++; return check(a) }
		got, err := r.Find(aai.CloudRegion{
			Type: "k8s", Extra: nf.Secret(extra + marked),
			Systems: []aai.System{{ID: "a", SystemType: kind, RemotePath: remote, URL: address + marked, Password: nf.Secret(password + marked), CA: ca + marked, Insecure: insecure}},
		})
		if err != nil {
			if strings.Contains(err.Error(), marked) {
				t.Errorf("the error quotes a value: %v", err)
			}
			return
		}
		if checked == 0 || got.Place == "" || got.Access.IsZero() || got.Access.Insecure {
			t.Errorf("credentials of %q are not checked, or not complete", got.Place)
		}
	})
}
