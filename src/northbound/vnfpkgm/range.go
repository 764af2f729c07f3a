package vnfpkgm

import (
	"strconv"
	"strings"
)

// byteRange is a range of bytes as a request asks for it.
type byteRange struct {
	first int64 // -1: the last bytes
	last  int64 // inclusive, or the number of the last bytes; -1: to the end
}

// parseRange reads a Range header with one range of bytes. Any other header is ignored,
// as HTTP requires; the response to several ranges may be the whole content, too.
func parseRange(header string) (byteRange, bool) {
	text, isBytes := strings.CutPrefix(header, "bytes=")
	first, last, isRange := strings.Cut(strings.TrimSpace(text), "-")
	if !isBytes || !isRange {
		return byteRange{}, false
	}
	out := byteRange{-1, -1}
	ok := true
	if first != "" {
		out.first, ok = number(first)
	}
	if last != "" && ok {
		out.last, ok = number(last)
	}
	switch {
	case !ok, first == "" && last == "", first != "" && last != "" && out.last < out.first:
		return byteRange{}, false
	}
	return out, true
}

// number reads a number without a sign.
func number(text string) (int64, bool) {
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err == nil //nolint:gosec // of 63 bits
}

// in returns the offset and the length of the range in content of a size, or false if it
// is outside.
func (b byteRange) in(size int64) (from, length int64, ok bool) {
	if b.first < 0 {
		length = min(b.last, size)
		return size - length, length, length > 0
	}
	end := size
	if b.last >= 0 {
		end = min(b.last, size-1) + 1
	}
	return b.first, end - b.first, b.first < size
}
