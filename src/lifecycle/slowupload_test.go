package lifecycle_test

import (
	"bytes"
	"io"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// trickle is content that pauses before each read.
type trickle struct {
	content io.Reader
	pause   func(read int) time.Duration
	read    int
}

func (s *trickle) Read(p []byte) (int, error) {
	<-time.After(s.pause(s.read)) // virtual
	s.read++
	return s.content.Read(p[:min(len(p), 256<<10)])
}

// TestSlowUpload stores a blob while the service looks for abandoned uploads.
func TestSlowUpload(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 64<<10) // four chunks
	cases := map[string]struct {
		reason string
		pause  func(read int) time.Duration
		lost   bool
	}{
		"Slow":    {"an upload that moves on is left alone", func(int) time.Duration { return 9 * time.Minute }, false},
		"Stalled": {"one that does not is given up, and says so", func(read int) time.Duration { return map[int]time.Duration{3: time.Hour}[read] }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				s.start()
				synctest.Wait()
				before, blobs := s.records(), store.NewBlobs(s.kv)
				digest, _, err := blobs.Put(t.Context(), "user", &trickle{content: bytes.NewReader(content), pause: tc.pause}, math.MaxInt64)
				if (nf.KindOf(err) == nf.Timeout) != tc.lost || err != nil && !tc.lost {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				if tc.lost {
					if diff := cmp.Diff(before, s.records()); diff != "" {
						t.Errorf("%s: left behind (-before +after):\n%s", tc.reason, diff)
					}
					return
				}
				if got, err := blobs.ReadAll(t.Context(), digest); err != nil || !bytes.Equal(got, content) {
					t.Errorf("%s: %d bytes are read: %v", tc.reason, len(got), err)
				}
			})
		})
	}
}
