package access

import "strings"

// pattern is a text in which each "*" matches any characters except the
// separator. If the separator is 0, "*" matches any characters.
type pattern struct {
	text      string
	separator byte
}

// matches reports whether the pattern matches all of s.
func (p pattern) matches(s string) bool {
	text, rest := p.text, s
	// Position of the last star, and the end of its match in s.
	star, end := -1, 0
	i, j := 0, 0
	for j < len(rest) {
		switch {
		case i < len(text) && text[i] == '*':
			star, end = i, j
			i++
		case i < len(text) && text[i] == rest[j]:
			i, j = i+1, j+1
		case star >= 0 && (p.separator == 0 || rest[end] != p.separator):
			end++ // extend the star's match by one character
			i, j = star+1, end
		default:
			return false
		}
	}
	return strings.Trim(text[i:], "*") == ""
}
