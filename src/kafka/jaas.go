package kafka

import (
	"errors"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// ParseJAAS returns the user and the password of a JAAS configuration, as
// sasl.jaas.config of a Kafka user has it: a login module, followed by options such as
// username="…" and password="…". It returns nf.Invalid without the text, which contains
// the password.
func ParseJAAS(text []byte) (user string, password nf.Secret, err error) {
	wrong := func(why string) error { return nf.E(nf.Invalid, "read", "the JAAS configuration", errors.New(why)) }
	found := map[string]string{}
	rest := strings.TrimSpace(string(text))
	for rest != "" && rest != ";" {
		name, after, ok := cutOption(rest)
		if !ok {
			break // a word without a value, such as the name of the module
		}
		value, left, ok := quoted(after)
		if !ok {
			return "", nil, wrong("the value of " + optionName(name) + " is not quoted, or its quotes are not closed")
		}
		found[name], rest = value, strings.TrimSpace(left)
	}
	switch {
	case found["username"] == "":
		return "", nil, wrong("it has no username")
	case found["password"] == "":
		return "", nil, wrong("it has no password")
	}
	return found["username"], nf.Secret(found["password"]), nil
}

// cutOption returns the name of the next option and the text after its equals sign. It
// skips words without a value.
func cutOption(text string) (name, after string, ok bool) {
	before, after, ok := strings.Cut(text, "=")
	if !ok {
		return "", "", false
	}
	words := strings.Fields(before)
	if len(words) == 0 {
		return "", after, true
	}
	return words[len(words)-1], after, true
}

// optionName returns the name of an option if it is safe to show: it may be a part of a
// password whose quotes are wrong.
func optionName(name string) string {
	if name == "username" || name == "password" {
		return name
	}
	return "an option"
}

// quoted returns the text in the quotes at the beginning, in which a backslash escapes
// the next character, and the text after them.
func quoted(text string) (value, rest string, ok bool) {
	text = strings.TrimSpace(text)
	if text == "" || text[0] != '"' && text[0] != '\'' {
		return "", "", false
	}
	var out strings.Builder
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text):
			i++
			out.WriteByte(text[i])
		case text[i] == text[0]:
			return out.String(), text[i+1:], true
		default:
			out.WriteByte(text[i])
		}
	}
	return "", "", false
}
