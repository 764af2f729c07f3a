package telemetry

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// longestText limits the bytes of a text that are checked; the rest is not
// shown.
const longestText = 64 << 10

// scrub masks parts of a text that look like secrets, and reports whether it
// changed anything. Its cost is linear in the text's length, which it limits.
func scrub(text string) (string, bool) {
	out := text
	if len(text) > longestText {
		out = fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:longestText], ""), len(text))
	}
	for _, l := range secretPatterns {
		if l.maybe(out) {
			out = l.pattern.ReplaceAllString(out, l.instead)
		}
	}
	return out, len(out) != len(text) || out != text
}

// secretPattern is the pattern of one kind of secret.
type secretPattern struct {
	maybe   func(string) bool // cheap check: false means that there is none
	pattern *regexp.Regexp
	instead string
}

var secretPatterns = [...]secretPattern{
	{ // a private key, to its end or the text's
		func(s string) bool { return strings.Contains(s, "PRIVATE KEY-----") },
		regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`), nf.Masked,
	},
	{ // PEM in base64, as kubeconfigs and Secrets have it
		func(s string) bool { return strings.Contains(s, "LS0tLS1CRUdJTi") },
		regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/=_-]*`), nf.Masked,
	},
	{ // a JSON web token, as service accounts have it
		func(s string) bool { return strings.Contains(s, "eyJ") },
		regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)*`), nf.Masked,
	},
	{ // a bearer token, whatever it looks like
		func(s string) bool { return contains(s, "bearer") },
		regexp.MustCompile(`(?i)(bearer["']?[\s:=]+["']?)[A-Za-z0-9._~+/=-]{8,}`), "${1}" + nf.Masked,
	},
	{ // the header of any scheme
		func(s string) bool { return contains(s, "authorization") },
		regexp.MustCompile(`(?i)(authorization["']?\s*[:=]\s*\[?["']?)(?:(?:basic|bearer|digest|token|negotiate)\s+)?[A-Za-z0-9._~+/=*-]{4,}`), "${1}" + nf.Masked,
	},
	{ // the password in a URL
		func(s string) bool { return strings.Contains(s, "://") && strings.Contains(s, "@") },
		regexp.MustCompile(`(://[^/?#@\s:"']*:)[^/?#@\s"']+@`), "${1}" + nf.Masked + "@",
	},
	{ // a member of a JSON document
		func(s string) bool { return strings.Contains(s, `":`) || strings.Contains(s, `" :`) },
		regexp.MustCompile(`(?i)("[\w.-]*(?:password|passwd|secret|token|kubeconfig|key-?data|private_?key)[\w.-]*"\s*:\s*")(?:[^"\\]|\\.)+`), "${1}" + nf.Masked,
	},
}

// contains reports whether a text contains a lower-case word, in any case.
func contains(s, word string) bool {
	for i := 0; i+len(word) <= len(s); i++ {
		if s[i]|0x20 == word[0] && strings.EqualFold(s[i:i+len(word)], word) {
			return true
		}
	}
	return false
}
