package tacker

import (
	"encoding/base64"
	"encoding/pem"
	"strings"
)

// unwrapped returns PEM blocks in their usual form. Clients send blocks whose line
// breaks have become spaces or the characters `\n`: a YAML text in double quotes folds
// its lines. It reports false for a text that is something else than PEM blocks.
func unwrapped(text string) ([]byte, bool) {
	if whole([]byte(text)) {
		return []byte(text), true
	}
	text = strings.NewReplacer(`\r`, "", `\n`, "\n").Replace(text)
	var out strings.Builder
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimSpace(rest) {
		opened, found := strings.CutPrefix(rest, "-----BEGIN ")
		label, body, ended := strings.Cut(opened, "-----")
		content, after, closed := strings.Cut(body, "-----END "+label+"-----")
		if !found || !ended || !closed {
			return nil, false
		}
		inside, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(content), ""))
		if err != nil {
			return nil, false
		}
		out.Write(pem.EncodeToMemory(&pem.Block{Type: label, Bytes: inside}))
		rest = after
	}
	return []byte(out.String()), whole([]byte(out.String()))
}

// whole reports whether a text has PEM blocks, and nothing else.
func whole(text []byte) bool {
	count := 0
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return count > 0 && len(strings.TrimSpace(string(text))) == 0
		}
		if skipped := text[:len(text)-len(rest)]; !strings.HasPrefix(strings.TrimSpace(string(skipped)), "-----BEGIN "+block.Type) {
			return false
		}
		text, count = rest, count+1
	}
}
