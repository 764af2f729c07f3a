package access

import "strings"

// pattern is a text in which each "*" stands for any characters but the
// separator. A separator of 0 separates nothing.
type pattern struct {
	text      string
	separator byte
}

// matches reports whether the whole of s is what the pattern describes.
func (p pattern) matches(s string) bool {
	text, rest := p.text, s
	// The last star seen, and where in s its match ends so far.
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
			end++ // the star takes one more
			i, j = star+1, end
		default:
			return false
		}
	}
	return strings.Trim(text[i:], "*") == ""
}
