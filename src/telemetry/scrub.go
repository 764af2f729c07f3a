package telemetry

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// longestText is how much of one text is looked through; the rest is not shown.
const longestText = 64 << 10

// scrub hides what looks like a secret in a text, and reports whether it
// changed anything. Its cost is linear in the text's length, which it bounds.
func scrub(text string) (string, bool) {
	out := text
	if len(text) > longestText {
		out = fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:longestText], ""), len(text))
	}
	for _, l := range looks {
		if l.maybe(out) {
			out = l.pattern.ReplaceAllString(out, l.instead)
		}
	}
	return out, len(out) != len(text) || out != text
}

// look is what a sort of secret looks like.
type look struct {
	maybe   func(string) bool // says, cheaply, that there is none
	pattern *regexp.Regexp
	instead string
}

var looks = [...]look{
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

// contains reports whether a text has a word of small letters in any case.
func contains(s, word string) bool {
	for i := 0; i+len(word) <= len(s); i++ {
		if s[i]|0x20 == word[0] && strings.EqualFold(s[i:i+len(word)], word) {
			return true
		}
	}
	return false
}
