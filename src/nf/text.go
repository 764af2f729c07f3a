package nf

import "strings"

// cutMark marks the place where a text was cut.
const cutMark = "…"

// Clip cuts a text to a number of bytes, at the end of a character, and marks the
// cut with "…".
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + cutMark
}
