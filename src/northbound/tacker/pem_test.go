package tacker

import (
	"bytes"
	"encoding/pem"
	"strings"
	"testing"
)

func blocks(content ...string) string {
	var out bytes.Buffer
	for _, text := range content {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: []byte(text)}) // a Buffer takes it
	}
	return out.String()
}

func TestUnwrapped(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("certificate ", 30)
	one, two := blocks(long), blocks(long, "b")
	cases := map[string]struct {
		reason, text, want string // empty: it is not PEM
	}{
		"PEM":        {"PEM stays as it is", two, two},
		"OneLine":    {"YAML in double quotes folds the lines", strings.ReplaceAll(one, "\n", " "), one},
		"Blocks":     {"likewise several certificates", strings.ReplaceAll(two, "\n", " "), two},
		"NoSpaces":   {"the lines are joined", strings.ReplaceAll(two, "\n", ""), two},
		"Escaped":    {"line breaks are two characters", strings.ReplaceAll(two, "\n", `\n`), two},
		"Windows":    {"line breaks of Windows", strings.ReplaceAll(two, "\n", "\r\n"), strings.ReplaceAll(two, "\n", "\r\n")},
		"WindowsEsc": {"the same as characters", strings.ReplaceAll(two, "\n", `\r\n`), two},
		"Indented":   {"the lines are indented", strings.ReplaceAll(one, "\n", "\n    "), one},
		"Tabs":       {"other spaces", strings.ReplaceAll(one, "\n", "\t "), one},
		"Empty":      {"nothing is no certificate", " ", ""},
		"Text":       {"a text is no certificate", "s3cret", ""},
		"Base64":     {"the content is not base64", "-----BEGIN CERTIFICATE----- !! -----END CERTIFICATE-----", ""},
		"Open":       {"the end is missing", strings.Replace(one, "END", "", 1), ""},
		"Other":      {"the end is that of another block", strings.Replace(one, "END CERTIFICATE", "END KEY", 1), ""},
		"Before":     {"there is a text before it", "x " + one, ""},
		"After":      {"there is a text after it", one + " x", ""},
		"Between":    {"there is a text between two", one + " x " + one, ""},
		"Half":       {"the second block is not whole", two[:len(two)-10], ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := unwrapped(tc.text)
			if ok != (tc.want != "") || ok && string(got) != tc.want {
				t.Errorf("%s: %t\n%s", tc.reason, ok, got)
			}
		})
	}
}

// FuzzUnwrapped checks that any blocks are read again from one line, and that what is
// accepted is PEM and is read again as it is.
func FuzzUnwrapped(f *testing.F) {
	f.Add("-----BEGIN A----- QQ== -----END A-----", []byte("x"))
	f.Add(blocks("a", "b"), []byte(strings.Repeat("y", 100)))
	f.Add(`-----BEGIN A-----\nQQ==\n-----END A-----`, []byte{})
	f.Fuzz(func(t *testing.T, text string, content []byte) {
		one := blocks(string(content))
		if got, ok := unwrapped(strings.ReplaceAll(one, "\n", " ")); !ok || string(got) != one {
			t.Errorf("%q is read as %t %q", one, ok, got)
		}
		got, ok := unwrapped(text)
		if !ok {
			return
		}
		if block, _ := pem.Decode(got); block == nil {
			t.Errorf("%q is accepted as %q, which is not PEM", text, got)
		}
		if again, ok := unwrapped(string(got)); !ok || !bytes.Equal(again, got) {
			t.Errorf("%q is read as %q and then as %t %q", text, got, ok, again)
		}
	})
}
