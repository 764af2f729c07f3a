package access

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/bcrypt"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// snapshot is the content of access.yaml and its files at one time. It is
// immutable.
type snapshot struct {
	users        map[string]user
	decoy        []byte // hash that takes as long to compare as the slowest user's; nil if there is no user
	tokens       map[[sha256.Size]byte]token
	oidc         *oidcConfig // nil if no issuer is trusted
	certificates []certificate
	policies     *policies
}

type user struct {
	hash   []byte
	groups []string
}

type token struct {
	name    string
	groups  []string
	expires time.Time // zero: never
}

const (
	maxName  = 256 // maximum bytes of a name
	minCost  = 10  // of a bcrypt hash, so that guessing is slow
	maxCost  = 14  // of a bcrypt hash, so that a request is not
	maxGroup = 256 // maximum groups of one identity
)

// loader creates a snapshot from files.
type loader struct {
	document *document

	dir  string
	read func(name string) ([]byte, error)
	v    *snapshot
}

// load reads access.yaml and the files that it names, using read. It fails with
// nf.Invalid and all violations.
func load(name string, read func(name string) ([]byte, error)) (*snapshot, error) {
	content, err := read(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the access rules: %w", err)
	}
	d, root, err := readDocument(filepath.Base(name), content)
	if err != nil {
		return nil, nf.E(nf.Invalid, "use", "the access rules", err)
	}
	f := readFile(d, root)
	l := &loader{document: d, dir: filepath.Dir(name), read: read, v: &snapshot{users: map[string]user{}, tokens: map[[sha256.Size]byte]token{}}}
	if len(d.wrong) == 0 { // otherwise later checks would report consequences of these violations
		l.users(f, root)
		l.tokens(f)
		l.issuer(f)
		l.certificates(f)
		l.policies(f)
	}
	if len(d.wrong) > 0 {
		return nil, nf.E(nf.Invalid, "use", "the access rules", d.wrong)
	}
	return l.v, nil
}

// beside reads a file that access.yaml names. A relative name is relative to
// the folder of access.yaml.
func (l *loader) beside(name string) ([]byte, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(l.dir, name)
	}
	return l.read(name)
}

func (l *loader) users(f file, root *yaml.Node) {
	if f.passwords != "" {
		l.passwords(f.passwords, root)
	}
	listed := map[string]bool{}
	for i, e := range f.users {
		field := fmt.Sprintf("users[%d]", i)
		l.checkName(e.at, field+".name", e.name)
		l.checkGroups(e.at, field, e.groups)
		known, hashed := l.v.users[e.name]
		switch {
		case listed[e.name]:
			l.document.refuse(e.at, field+".name", "%q is given twice", e.name)
		case strings.Contains(e.name, ":"):
			l.document.refuse(e.at, field+".name", "contains a colon, which separates user and password")
		case e.hash == "" && !hashed:
			l.document.refuse(e.at, field, "has no password hash, neither here nor in the password_file")
		case e.hash != "" && hashed:
			l.document.refuse(e.at, field+".password_hash", "is given here and in the password_file")
		case e.hash != "":
			if message := checkHash(e.hash); message != "" {
				l.document.refuse(e.at, field+".password_hash", "%s", message)
			}
			known.hash = []byte(e.hash)
		}
		listed[e.name] = true
		known.groups = groups(e.groups)
		l.v.users[e.name] = known
	}
	l.v.decoy = decoyOf(l.v.users)
}

// passwords reads a file of lines "name:hash", as htpasswd -B writes it.
func (l *loader) passwords(name string, root *yaml.Node) {
	content, err := l.beside(name)
	if err != nil {
		l.document.refuse(root, "password_file", "cannot be read: %v", err)
		return
	}
	line := 0
	for text := range strings.Lines(string(content)) {
		line++
		text = strings.TrimSpace(text)
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		wrong := func(message string) {
			l.document.wrong = append(l.document.wrong, nf.Violation{File: filepath.Base(name), Line: line, Message: message})
		}
		user, hash, found := strings.Cut(text, ":")
		_, twice := l.v.users[user]
		switch message := checkHash(hash); {
		case !found || user == "":
			wrong("must be name:hash")
		case twice:
			wrong(fmt.Sprintf("the user %q is given twice", user))
		case message != "":
			wrong("the password hash " + message)
		default:
			l.v.users[user] = userOf(hash)
		}
	}
}

func userOf(hash string) user { return user{hash: []byte(hash)} }

// checkHash returns what is wrong with a bcrypt hash, without quoting it.
func checkHash(hash string) string {
	cost, err := bcrypt.Cost([]byte(hash))
	switch {
	case err != nil || len(hash) != 60: // bcrypt checks the length only when it compares
		return "is not a bcrypt hash"
	case cost < minCost || cost > maxCost:
		return fmt.Sprintf("has cost %d; it must be between %d and %d", cost, minCost, maxCost)
	}
	return ""
}

// decoyOf returns a hash for unknown users. It takes as long to compare as any hash of a
// user, and no password has it: another user's password must not be found in the cache, nor
// share a comparison.
func decoyOf(users map[string]user) []byte {
	hash := slices.Clone(costliest(users))
	if n := len(hash); n > 0 {
		hash[n-1] = '!' // not a character of a hash
	}
	return hash
}

// costliest returns the hash that takes longest to compare.
func costliest(users map[string]user) (hash []byte) {
	most := 0
	for _, u := range users {
		if cost, err := bcrypt.Cost(u.hash); err == nil && cost > most {
			most, hash = cost, u.hash
		}
	}
	return hash
}

func (l *loader) tokens(f file) {
	names := map[string]bool{}
	for i, e := range f.tokens {
		field := fmt.Sprintf("tokens[%d]", i)
		l.checkName(e.at, field+".name", e.name)
		l.checkGroups(e.at, field, e.groups)
		if names[e.name] {
			l.document.refuse(e.at, field+".name", "%q is given twice", e.name)
		}
		names[e.name] = true
		var sum [sha256.Size]byte
		if n, err := hex.Decode(sum[:], []byte(e.sum[:min(len(e.sum), 2*sha256.Size)])); err != nil || n != sha256.Size || len(e.sum) != 2*sha256.Size {
			l.document.refuse(e.at, field+".sha256", "is not the SHA-256 of a token: 64 hexadecimal digits")
			continue
		}
		if _, taken := l.v.tokens[sum]; taken {
			l.document.refuse(e.at, field+".sha256", "is also given for another token")
		}
		l.v.tokens[sum] = token{name: e.name, groups: groups(e.groups), expires: e.expires}
	}
}

func (l *loader) checkName(at *yaml.Node, field, name string) {
	if err := checkName(name); err != nil {
		l.document.refuse(at, field, "%v", err)
	}
}

func (l *loader) checkGroups(at *yaml.Node, field string, names []string) {
	for i, name := range names {
		l.checkName(at, fmt.Sprintf("%s.groups[%d]", field, i), name)
	}
	if len(names) > maxGroup {
		l.document.refuse(at, field+".groups", "has more than %d entries", maxGroup)
	}
}

// checkName rejects a name that could garble a log or an audit line.
func checkName(name string) error {
	unfit := func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }
	switch {
	case name == "":
		return errors.New("is missing")
	case len(name) > maxName:
		return fmt.Errorf("is longer than %d bytes", maxName)
	case strings.ContainsFunc(name, unfit):
		return errors.New("contains control characters")
	}
	return nil
}

// groups returns the names sorted and without duplicates.
func groups(names []string) []string {
	out := slices.Clone(names)
	slices.Sort(out)
	return slices.Compact(out)
}
