package access_test

import (
	"bytes"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Hashes of "correct horse" and "battery staple".
const (
	horse  = "$2a$10$aGS/VQ2HXfLDZowpVYCk1.KGYv2JOVRl1ng1.RI5oBsjiAPz7WpxK"
	staple = "$2a$10$W6V3qUdq1yZwIXlEdsxh6u8YdGygziZWeXxni2OE4Pb4S2swOdJui"
	weak   = "$2a$05$5/jsDkUXtpLtWGnuAEbF2OZobdndUrNM9InHC8ZwVGrQhH7fJL3gK"
	digits = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// clock is a clock that the test sets.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{time.Date(2026, 11, 4, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time { return c.now }

func (c *clock) pass(d time.Duration) { c.now = c.now.Add(d) }

// folder is a folder with files, by their names.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		write(t, filepath.Join(dir, name), content)
	}
	return dir
}

func write(t *testing.T, name, content string) {
	t.Helper()
	writeFile(t, name, content)
}

func writeFile(t testing.TB, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// rulesOf returns the rules of an access.yaml and the files next to it.
func rulesOf(t *testing.T, c *clock, yaml string, files map[string]string) *access.Rules {
	t.Helper()
	all := map[string]string{"access.yaml": yaml}
	maps.Copy(all, files)
	rules, err := access.New(access.Config{File: filepath.Join(folder(t, all), "access.yaml"), Clock: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func TestWrongRules(t *testing.T) {
	t.Parallel()
	users := "users: [{name: ann, password_hash: '" + horse + "'}]\n"
	cases := map[string]struct {
		reason string
		yaml   string
		files  map[string]string
		want   string // the complete error; if it begins with "…", a part of it
	}{
		"Empty":          {"an empty file is rejected", " ", nil, "access.yaml: is empty"},
		"NotYAML":        {"the error names the line", "users:\n\t- x", nil, "access.yaml: is not YAML: yaml: line 2: found character that cannot start any token"},
		"Two":            {"a second document would be ignored", "users: []\n---\ngrants: []\n", nil, "access.yaml: contains more than one document"},
		"List":           {"the document must be a mapping", "- users", nil, "access.yaml:1: must be a mapping, not a list"},
		"Unknown":        {"a misspelled field would be ignored", "users: []\ngrant: []\n", nil, "access.yaml:2: grant: is not a known field"},
		"UnknownInner":   {"a misspelled field is found at every depth", "grants:\n- subject: [user:ann]\n", nil, "access.yaml:2: grants[0].subject: is not a known field"},
		"Twice":          {"of two equal fields, the second would override the first", "users: []\nusers: []\n", nil, "access.yaml:2: users: is given twice"},
		"Alias":          {"aliases can make a small file huge", "users: &a []\ntokens: *a\n", nil, "access.yaml:2: tokens: must be a list, not an alias"},
		"Merge":          {"merges can make a small file huge", "users:\n- <<: {}\n", nil, "access.yaml:2: users[0].<<: is not a known field"},
		"NotText":        {"a list is not converted to a string", "users:\n- name: [ann]\n", nil, "access.yaml:2: users[0].name: must be a string, not a list"},
		"Null":           {"a null value is not a string", "users:\n- name:\n", nil, "access.yaml:2: users[0].name: must be a string, not nothing"},
		"NoName":         {"a user must have a name", "users:\n- password_hash: " + horse + "\n", nil, "access.yaml:2: users[0].name: is missing"},
		"Colon":          {"a colon ends the name in a request", "users:\n- {name: 'a:b', password_hash: " + horse + "}\n", nil, "access.yaml:2: users[0].name: contains a colon, which separates user and password"},
		"Control":        {"control characters in a name could forge log lines", "users:\n- {name: \"a\\nb\", password_hash: " + horse + "}\n", nil, "access.yaml:2: users[0].name: contains control characters"},
		"NoPassword":     {"a user must have a password", "users: [{name: ann}]\n", nil, "access.yaml:1: users[0]: has no password hash, neither here nor in the password_file"},
		"Plain":          {"a plain password is rejected, and is not in the error", "users: [{name: ann, password_hash: hunter2}]\n", nil, "access.yaml:1: users[0].password_hash: is not a bcrypt hash"},
		"Weak":           {"a hash with a low cost is rejected", "users: [{name: ann, password_hash: " + weak + "}]\n", nil, "access.yaml:1: users[0].password_hash: has cost 5; it must be between 10 and 14"},
		"SameUser":       {"a name must be unique", "users: [{name: ann, password_hash: " + horse + "}, {name: ann, password_hash: " + staple + "}]\n", nil, `access.yaml:1: users[1].name: "ann" is given twice`},
		"NoFile":         {"the password file must exist", "password_file: nowhere\n", nil, "…password_file: cannot be read: open "},
		"BadLine":        {"the error names the line of the password file", "password_file: htpasswd\n", map[string]string{"htpasswd": "# all\nann\n"}, "htpasswd:2: must be name:hash"},
		"BadHash":        {"an MD5 hash is rejected", "password_file: htpasswd\n", map[string]string{"htpasswd": "ann:$apr1$x$y\n"}, "htpasswd:1: the password hash is not a bcrypt hash"},
		"FileTwice":      {"a name must be unique", "password_file: htpasswd\n", map[string]string{"htpasswd": "ann:" + horse + "\nann:" + staple + "\n"}, `htpasswd:2: the user "ann" is given twice`},
		"BothPasswords":  {"two passwords for one user are ambiguous", users + "password_file: htpasswd\n", map[string]string{"htpasswd": "ann:" + staple + "\n"}, "access.yaml:1: users[0].password_hash: is given here and in the password_file"},
		"Token":          {"the digest is required, not the token itself", "tokens: [{name: so, sha256: k8spt_abc}]\n", nil, "access.yaml:1: tokens[0].sha256: is not the SHA-256 of a token: 64 hexadecimal digits"},
		"LongSum":        {"the digest must have exactly 64 digits", "tokens: [{name: so, sha256: " + digits + "00}]\n", nil, "access.yaml:1: tokens[0].sha256: is not the SHA-256 of a token: 64 hexadecimal digits"},
		"SameToken":      {"the digest of a token must be unique", "tokens: [{name: a, sha256: " + digits + "}, {name: b, sha256: " + strings.ToUpper(digits) + "}]\n", nil, "access.yaml:1: tokens[1].sha256: is also given for another token"},
		"Expiry":         {"an expiry must be a time", "tokens: [{name: a, sha256: " + digits + ", expires: tomorrow}]\n", nil, "access.yaml:1: tokens[0].expires: is not a time like 2027-01-31T00:00:00Z"},
		"Issuer":         {"the URL of the issuer must be https", "oidc: {issuer: 'http://sso.example.org', audience: k8splugin}\n", nil, "access.yaml:1: oidc.issuer: is not an https URL without query and fragment"},
		"Audience":       {"without an audience, tokens for other services would be accepted", "oidc: {issuer: 'https://sso.example.org'}\n", nil, "access.yaml:1: oidc.audience: is missing: without it, tokens issued for other services would be accepted"},
		"Roots":          {"the CA file must contain certificates", "oidc: {issuer: 'https://x', audience: x, ca_file: ca.pem}\n", map[string]string{"ca.pem": "x"}, "access.yaml:1: oidc.ca_file: contains no certificate"},
		"NoPattern":      {"an entry must have a pattern", "certificates: [{name: so}]\n", nil, "access.yaml:1: certificates[0]: must have one of uri, dns and common_name"},
		"TwoPatterns":    {"an entry must have only one pattern", "certificates: [{uri: 'spiffe://x/y', dns: x}]\n", nil, "access.yaml:1: certificates[0]: must have one of uri, dns and common_name"},
		"TrustDomain":    {"a pattern must fix the trust domain", "certificates: [{uri: 'spiffe://*/ns/*'}]\n", nil, "access.yaml:1: certificates[0].uri: must be a URI such as spiffe://trust-domain/ns/*/sa/*, with * only after the trust domain"},
		"Role":           {"a grant must name a known role", users + "grants:\n- {subjects: [user:ann], role: king, projects: ['*'], regions: ['*']}\n", nil, `access.yaml:3: grants[0].role: "king" is not a role; roles are viewer, operator, admin and those under roles`},
		"OwnRole":        {"a built-in role cannot be redefined", "roles: [{name: admin, permissions: [region:read]}]\n", nil, `access.yaml:1: roles[0].name: "admin" already exists`},
		"Permission":     {"the error lists the permissions", "roles: [{name: x, permissions: [region:destroy]}]\n", nil, `…access.yaml:1: roles[0].permissions[0]: "region:destroy" is not a permission; permissions are region:read, region:write, package:read, package:write, instance:read, instance:instantiate, instance:change, instance:terminate, network:read, network:write, volume:read, volume:write, audit:read, store:admin`},
		"NoPermission":   {"a role without permissions is a mistake", "roles: [{name: x}]\n", nil, "access.yaml:1: roles[0].permissions: are missing"},
		"Unknown user":   {"a grant to an unknown user has no effect", "grants: [{subjects: [user:an], role: viewer, projects: ['*'], regions: ['*']}]\n", nil, `access.yaml:1: grants[0].subjects[0]: this file defines no "user:an"`},
		"Unknown token":  {"a grant to an unknown token has no effect", "grants: [{subjects: [token:so], role: viewer, projects: ['*'], regions: ['*']}]\n", nil, `access.yaml:1: grants[0].subjects[0]: this file defines no "token:so"`},
		"NoOIDC":         {"a grant to an OIDC user has no effect without an issuer", "grants: [{subjects: ['oidc:ann'], role: viewer, projects: ['*'], regions: ['*']}]\n", nil, `access.yaml:1: grants[0].subjects[0]: this file defines no "oidc:ann"`},
		"NoCertificate":  {"a grant to a certificate that no pattern matches has no effect", "certificates: [{uri: 'spiffe://x/ns/*'}]\ngrants: [{subjects: ['certificate:spiffe://y/ns/a'], role: viewer, projects: ['*'], regions: ['*']}]\n", nil, `access.yaml:2: grants[0].subjects[0]: this file defines no "certificate:spiffe://y/ns/a"`},
		"Subject":        {"a subject must name its kind", "grants: [{subjects: [ann], role: viewer, projects: ['*'], regions: ['*']}]\n", nil, `access.yaml:1: grants[0].subjects[0]: "ann" must be user:…, token:…, certificate:…, oidc:…, keystone:… or group:…`},
		"Where":          {"a grant without regions does not apply everywhere", "grants: [{subjects: [group:a], role: viewer, projects: ['*']}]\n", nil, `access.yaml:1: grants[0].regions: are missing; "*" matches all`},
		"Place":          {"a project must be a name or a pattern", "grants: [{subjects: [group:a], role: viewer, projects: ['a b'], regions: ['*']}]\n", nil, `access.yaml:1: grants[0].projects[0]: "a b" is not a name, nor a pattern with *`},
		"Who":            {"a grant must have a subject", "grants: [{role: viewer, projects: ['*'], regions: ['*']}]\n", nil, "access.yaml:1: grants[0].subjects: are missing"},
		"NoPolicy":       {"a policy file must exist", "policies: [x.cedar]\n", nil, "…policies[0]: cannot be read: open "},
		"NotCedar":       {"a policy file must be valid Cedar", "policies: [x.cedar]\n", map[string]string{"x.cedar": "permit everything;"}, "…x.cedar: is not Cedar: parser error: "},
		"Deep":           {"deeply nested brackets do not exhaust the stack", "policies: [x.cedar]\n", map[string]string{"x.cedar": "permit(principal, action, resource) when { " + strings.Repeat("(", 60_000)}, "…x.cedar: is not Cedar: parser error: "},
		"Deeper":         {"a file with many more brackets is too large", "policies: [x.cedar]\n", map[string]string{"x.cedar": "permit(principal, action, resource) when { " + strings.Repeat("(", 500_000)}, "access.yaml:1: policies[0]: is larger than 65536 bytes; there may be several files"},
		"CedarAction":    {"a policy for an unknown action would never apply", "policies: [x.cedar]\n", map[string]string{"x.cedar": "\n" + `forbid(principal, action == Action::"instance:destroy", resource);`}, "…x.cedar:2: "},
		"CedarAttribute": {"a policy that uses an unknown attribute would never apply", "policies: [x.cedar]\n", map[string]string{"x.cedar": `forbid(principal, action, resource) when { resource.colour == "red" };`}, "…x.cedar:1: "},
		"CedarType":      {"a policy for an unknown kind of principal would never apply", "policies: [x.cedar]\n", map[string]string{"x.cedar": `forbid(principal == Robot::"r2", action, resource);`}, "…x.cedar:1: "},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := map[string]string{"access.yaml": c.yaml}
			maps.Copy(all, c.files)
			_, err := access.New(access.Config{File: filepath.Join(folder(t, all), "access.yaml")})
			got := nf.ViolationsOf(err).Error()
			part, only := strings.CutPrefix(c.want, "…")
			if nf.KindOf(err) != nf.Invalid || only && !strings.Contains(got, part) || !only && got != c.want {
				t.Errorf("%s:\n got %s\nwant %s (%v)", c.reason, got, c.want, err)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: the error contains a password", c.reason)
			}
		})
	}
}

func TestEverythingThatIsWrongIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"access.yaml": "users: [{name: ann}]\ntokens: [{name: so}]\ngrants: [{role: x}]\n"})
	_, err := access.New(access.Config{File: filepath.Join(dir, "access.yaml")})
	if v := nf.ViolationsOf(err); len(v) != 6 {
		t.Errorf("the error has %d violations, want 6: %v", len(v), err)
	}
	if _, err := access.New(access.Config{File: filepath.Join(dir, "nowhere")}); err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("rules that do not exist: %v", err)
	}
	if _, err := access.New(access.Config{}); err == nil {
		t.Error("rules without a file were created")
	}
	if _, err := access.NewAuthorizer(nil); err == nil {
		t.Error("an authorizer without rules, which would allow everything, was created")
	}
	if _, err := access.NewGuarded(access.GuardedConfig{}); err == nil {
		t.Error("a guard without an engine was created")
	}
}

func TestReload(t *testing.T) {
	t.Parallel()
	const (
		grant = "grants: [{subjects: [group:ops], role: viewer, projects: ['*'], regions: ['*']}]\n"
		none  = "grants: []\n"
	)
	c, log := newClock(), &bytes.Buffer{}
	dir := folder(t, map[string]string{"access.yaml": grant + "policies: [p.cedar]\n", "p.cedar": `permit(principal in Group::"audit", action == Action::"audit:read", resource);`})
	file := filepath.Join(dir, "access.yaml")
	rules, err := access.New(access.Config{File: file, Clock: c.Now, Logger: slog.New(slog.NewJSONHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	a, err := access.NewAuthorizer(rules)
	if err != nil {
		t.Fatal(err)
	}
	may := func(group string, p nf.Permission) bool {
		return a.Allow(t.Context(), nf.Identity{Kind: "user", Name: "ann", Groups: []string{group}}, p, nf.Scope{}) == nil
	}
	steps := []struct {
		reason string
		change func()
		pass   time.Duration
		ops    bool // may read regions
		audit  bool // may read the audit
		broken int64
	}{
		{"the rules are read at the start", func() {}, 0, true, true, 0},
		{"a change is not looked for within a second", func() { write(t, file, none+"policies: [p.cedar]\n") }, time.Second - 1, true, true, 0},
		{"a change takes effect after a second", func() {}, 1, false, true, 0},
		{"an invalid version leaves the previous one active", func() { write(t, file, "grants: [{\n") }, time.Second, false, true, 1},
		{"an invalid version is reported once", func() {}, time.Second, false, true, 1},
		{"an empty file counts as invalid: it may still be being written", func() { write(t, file, "") }, time.Second, false, true, 2},
		{"a valid version becomes active again", func() { write(t, file, grant+"policies: [p.cedar]\n") }, time.Second, true, true, 2},
		{"changes of a policy file are also detected", func() {
			write(t, filepath.Join(dir, "p.cedar"), `forbid(principal, action == Action::"audit:read", resource);`)
		}, time.Second, true, false, 2},
		{"a missing policy file leaves the previous version active", func() { _ = os.Remove(filepath.Join(dir, "p.cedar")) }, time.Second, true, false, 3},
		{"a restored policy file becomes active", func() {
			write(t, filepath.Join(dir, "p.cedar"), `permit(principal in Group::"audit", action == Action::"audit:read", resource);`)
		}, time.Second, true, true, 3},
		{"all files can be replaced at once, as Kubernetes does it", func() {
			write(t, filepath.Join(dir, "new"), none)
			if err := os.Rename(filepath.Join(dir, "new"), file); err != nil {
				t.Fatal(err)
			}
		}, time.Second, false, false, 3},
	}
	for _, s := range steps {
		s.change()
		c.pass(s.pass)
		if got := []any{may("ops", nf.ReadRegion), may("audit", nf.ReadAudit), rules.Broken()}; !cmp.Equal(got, []any{s.ops, s.audit, s.broken}) {
			t.Fatalf("%s: regions, audit, broken: %v", s.reason, got)
		}
	}
	if n := strings.Count(log.String(), "previous version stays active"); n != 3 {
		t.Errorf("three broken versions have %d lines:\n%s", n, log)
	}
}

// TestMatrixFile checks that the access file of the matrix is like one that an
// operator would write.
func TestMatrixFile(t *testing.T) {
	t.Parallel()
	if !strings.Contains(accesstest.YAML(), "role: starter") {
		t.Error("the access file does not have a custom role")
	}
	rulesOf(t, newClock(), accesstest.YAML(), nil)
}

func TestNewToken(t *testing.T) {
	t.Parallel()
	token, sum := access.NewToken()
	other, _ := access.NewToken()
	if !strings.HasPrefix(token, "k8spt_") || len(token) != len("k8spt_")+43 || token == other || len(sum) != 64 {
		t.Errorf("tokens %q and %q, sum %q", token, other, sum)
	}
	rules := rulesOf(t, newClock(), "tokens: [{name: so, sha256: "+sum+"}]\n", nil)
	if id, err := access.NewAuthenticator(rules).Authenticate(request(t, "Bearer "+token)); err != nil || id.Name != "so" {
		t.Errorf("the token is %v, %v", id, err)
	}
}

// TestDocumentation checks that the example in the documentation is valid, once it
// contains real hashes.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/access.md")
	if err != nil {
		t.Fatal(err)
	}
	example := func(language string) string {
		_, after, found := strings.Cut(string(text), "```"+language+"\n")
		code, _, ended := strings.Cut(after, "```")
		if !found || !ended {
			t.Fatalf("the documentation lacks an example in %s", language)
		}
		return code
	}
	c, p := newClock(), newProvider(t)
	yaml := strings.NewReplacer("$2a$12$…", horse, "2c1e7b…", digits).Replace(example("yaml"))
	rules := rulesOf(t, c, yaml, map[string]string{
		"htpasswd": "bob:" + staple + "\n", "freeze.cedar": example("cedar"),
		"sso-ca.pem": inPEM("CERTIFICATE", p.Certificate().Raw),
	})
	a := authorizerOf(t, rules)
	ops := nf.Identity{Kind: "user", Name: "ann", Groups: []string{"ops"}}
	for want, s := range map[nf.Kind]nf.Scope{nf.Internal: {Project: "p", Region: "edge-1"}, nf.Forbidden: {Project: "p", Region: "core"}} {
		if err := a.Allow(t.Context(), ops, nf.ChangeInstance, s); (err == nil) != (want == nf.Internal) {
			t.Errorf("to change in %+v: %v", s, err)
		}
	}
}
