package sol003

import (
	"crypto/rand"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// newID returns a UUID of version 7. UUIDs sort by their times.
func newID(at time.Time) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	for i, ms := 5, at.UnixMilli(); i >= 0; i, ms = i-1, ms>>8 {
		b[i] = byte(ms)
	}
	return nf.UUID(b, 7)
}
