package helm

import "strings"

// These functions scan template actions as text/template does, as far as
// necessary to find their ends.

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// isWordByte reports whether a byte is part of a word. All bytes outside of
// ASCII are.
func isWordByte(c byte) bool {
	return c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c >= 0x80
}

// trimsLeft reports whether an action begins with a trim marker.
func trimsLeft(text string) bool { return len(text) > 1 && text[0] == '-' && isBlank(text[1]) }

// actionEnd returns the offset at which the action that begins at start is
// closed, or -1.
func (in *instrumenter) actionEnd(start int) int {
	for i := start; i < len(in.text); i++ {
		switch c := in.text[i]; {
		case strings.HasPrefix(in.text[i:], "}}"):
			return i
		case isQuote(c):
			size := quoteSize(in.text[i:])
			if size == 0 {
				return -1
			}
			i += size - 1
		}
	}
	return -1
}

// quoteSize returns the size of a quoted text, or 0 if it is not closed.
func quoteSize(text string) int {
	quote := text[0]
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote != '`':
			i++
		case text[i] == quote:
			return i + 1
		}
	}
	return 0
}

// firstWord returns the keyword or function name at the beginning of an action.
func firstWord(content string) string {
	content = strings.TrimLeft(content, " \t\r\n")
	size := 0
	for size < len(content) && isWordByte(content[size]) {
		size++
	}
	return content[:size]
}

// wordSize returns the size of a word, including dots and dollar signs.
func wordSize(text string) int {
	for i := range len(text) {
		if c := text[i]; !isWordByte(c) && c != '.' && c != '$' {
			return i
		}
	}
	return len(text)
}

// assigns reports whether a pipeline is assigned rather than printed.
func assigns(content string) bool {
	content = strings.TrimLeft(content, " \t\r\n")
	if !strings.HasPrefix(content, "$") {
		return false
	}
	rest := strings.TrimLeft(content[wordSize(content):], " \t\r\n")
	return strings.HasPrefix(rest, ":=") || strings.HasPrefix(rest, "=")
}
