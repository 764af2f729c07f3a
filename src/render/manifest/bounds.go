package manifest

import (
	"bytes"
	"unicode/utf8"
)

// readable refuses content that would take too much memory to parse, as far as
// that can be seen without parsing it, and what is no text.
func (rd *reader) readable(content []byte) bool {
	at := func(offset int) place { return place{rd.file, bytes.Count(content[:offset], []byte("\n")) + 1} }
	if len(content) > maxFile {
		rd.report.add(place{file: rd.file}, "", "has more than %d bytes", maxFile)
		return false
	}
	if offset := notText(content); offset >= 0 {
		rd.report.add(at(offset), "", "is not UTF-8")
		return false
	}
	count, offset := marks(content, maxMarks-rd.marks)
	if offset >= 0 {
		rd.full = true
		rd.report.add(at(offset), "", "brings the package to more than %d commas, colons and what else sets values apart", maxMarks)
		return false
	}
	rd.marks += count
	return true
}

// notText returns the offset of the first byte that is not UTF-8, or -1.
func notText(content []byte) int {
	for i := 0; i < len(content); {
		r, size := utf8.DecodeRune(content[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// marks counts what sets values apart in YAML and JSON, and returns the offset
// at which there are more than the limit, or -1. At most two values come with
// each comma, bracket, question mark, and colon or dash before a blank; a dollar
// may begin a part of a template. It counts those in texts, too: the YAML
// parser, which knows better, takes hundreds of bytes for each value and cannot
// be told to stop.
func marks(content []byte, limit int) (count, offset int) {
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

// endsWord reports whether there is no letter at the offset. Among the letters
// that are not ASCII YAML has some line breaks.
func endsWord(content []byte, i int) bool {
	return i >= len(content) || content[i] <= ' ' || content[i] >= utf8.RuneSelf
}

// isFlow reports whether a byte can stand beside a colon in the place of a
// blank.
func isFlow(c byte) bool { return bytes.IndexByte([]byte(`,[]{}"':`), c) >= 0 }
