package backup_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"filippo.io/age"
)

// golden is a backup of one record, as the first release wrote it, and who can
// open it.
const (
	goldenIdentity = "AGE-SECRET-KEY-19L65QNU7M4HGJTRM2WLPMN2536YCGG797LWW8LYHC4GH3J85TUXQRAHZPH"
	golden         = "" + // base64
		"YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSBKNHFBa3A4NXBDOU5USGpLRmQ1UUpnc1IvdVdUR3FWWW93T1V1Q3l1a1FNClhxREgzN3BH" +
		"YzhBdGwrY3NYMnhvSXNmNXNmVG9RR2VKNXplZkJ1cWhqS2MKLS0tIHVRYXA4WWwyR2EvY2FWZVFBSFp5cXJzQUo2a2JCSFhlL00rcjE4SCt0UGsK" +
		"vLo8vQNVGhnyiTDRO26m3huamZUgD8KueG/U+qljGEz8ZiVgPr3ll7TFbXXYpj0qc2F60iksCLCt3vzrTVpskoO5e82kOITUahN/j4kvQcQ9Tryg" +
		"DhjLhpwH+dHXXE6gwBRRX0Czp1F35+rr6j3uKWOUyMvdUsww5X3Mtpbyho7nwzIpBmVj6G62U6sG0x+SBHOvs61TTzUuQ1JgIh3HxHhvC0kanjA9" +
		"ygEsCXG7Ejhn/ttsQjcRCSPZ3wvzdxAswG02uRBmGRyiL475YTWfF2t8KI7ajymHIKRWtAi++GRLCMW8AyfPEJvNUW5F9Zi/Znuj2EfGSjgv7Cc8" +
		"Gec2bTy58vSVRmnODLW1bqQn"
)

// whole returns the lines of a backup with the right end.
func whole(lines ...string) string {
	text := strings.Join(lines, "")
	return text + fmt.Sprintf(`{"end":{"records":%d,"sha256":"%x"}}`+"\n", len(lines)-1, sha256.Sum256([]byte(text)))
}

func encrypt(t testing.TB, plain string, to ...age.Recipient) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := age.Encrypt(&out, to...)
	must(t, err)
	_, err = w.Write([]byte(plain))
	must(t, err)
	must(t, w.Close())
	return out.Bytes()
}
