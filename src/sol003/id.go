package sol003

import (
	"crypto/rand"
	"encoding/hex"
	"time"
)

// newID returns a UUID of version 7. UUIDs sort by their times.
func newID(at time.Time) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	for i, ms := 5, at.UnixMilli(); i >= 0; i, ms = i-1, ms>>8 {
		b[i] = byte(ms)
	}
	b[6], b[8] = b[6]&0x0f|0x70, b[8]&0x3f|0x80
	text := hex.EncodeToString(b[:])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}
