package manifest

import (
	"bytes"
	"unicode/utf8"
)

// readable rejects content that is not UTF-8, or that would take too much
// memory to parse, as far as that can be determined without parsing.
func (rd *reader) readable(content []byte) bool {
	at := func(offset int) place { return place{rd.file, bytes.Count(content[:offset], []byte("\n")) + 1} }
	if len(content) > maxFile {
		rd.report.add(place{file: rd.file}, "", "has more than %d bytes", maxFile)
		return false
	}
	if offset := invalidOffset(content); offset >= 0 {
		rd.report.add(at(offset), "", "is not UTF-8")
		return false
	}
	count, offset := countSeparators(content, maxMarks-rd.separators)
	if offset >= 0 {
		rd.full = true
		rd.report.add(at(offset), "", "brings the package to more than %d commas, colons and what else sets values apart", maxMarks)
		return false
	}
	rd.separators += count
	return true
}

// invalidOffset returns the offset of the first byte that is not UTF-8, or -1.
func invalidOffset(content []byte) int {
	for i := 0; i < len(content); {
		r, size := utf8.DecodeRune(content[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// countSeparators counts the characters that separate values in YAML and JSON, and
// returns the offset at which the count exceeds the limit, or -1. At most two
// values come with each comma, bracket, question mark, and colon or dash before
// a blank. A dollar may begin a part of a template. Characters in texts count,
// too. Counting comes first, because the YAML parser takes hundreds of bytes
// for each value and cannot be stopped.
func countSeparators(content []byte, limit int) (count, offset int) {
	for i, c := range content {
		switch c {
		case ',', '[', '{', '?', '$':
			count++
		case '-':
			if endsWord(content, i+1) {
				count++
			}
		case ':':
			if endsWord(content, i+1) || i > 0 && isFlow(content[i-1]) || i+1 < len(content) && isFlow(content[i+1]) {
				count++
			}
		}
		if count > limit {
			return count, i
		}
	}
	return count, -1
}

// endsWord reports whether a word ends at the offset. Bytes outside of ASCII
// count as an end, since some line breaks of YAML are among them.
func endsWord(content []byte, i int) bool {
	return i >= len(content) || content[i] <= ' ' || content[i] >= utf8.RuneSelf
}

// isFlow reports whether a byte next to a colon can replace the blank.
func isFlow(c byte) bool { return bytes.IndexByte([]byte(`,[]{}"':`), c) >= 0 }
