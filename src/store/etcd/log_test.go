package etcd

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/store"
)

func TestLogger(t *testing.T) {
	var out bytes.Buffer
	to := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	level := zap.NewAtomicLevelAt(zap.ErrorLevel)
	log := logger(to, level)
	log.Warn("before the level is lowered")
	level.SetLevel(zap.WarnLevel)
	log.Info("not of interest", zap.String("key", "value"))
	log.With(zap.Int("member", 7)).Warn("slow disk", zap.String("took", "2s"))
	log.Error("broken", zap.Error(errors.New("cause")))
	want := `level=WARN msg="etcd: slow disk" member=7 took=2s
level=ERROR msg="etcd: broken" error=cause
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("warnings and errors pass, and nothing else (-want +got):\n%s", diff)
	}
}

// TestQuietStart starts on a log of more entries than etcd lets be unapplied: it
// complains of each time that it tries to make itself known before the first of
// them is applied.
func TestQuietStart(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), Config{Dir: dir})
	must(t, err)
	var writers errgroup.Group
	for w := range 100 {
		writers.Go(func() error {
			for range 55 {
				if _, err := s.Put(t.Context(), fmt.Sprint("key/", w), nil, store.Any); err != nil {
					return err
				}
			}
			return nil
		})
	}
	must(t, writers.Wait())
	must(t, s.Close())
	for range 5 {
		var out bytes.Buffer
		s, err := Open(t.Context(), Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(&out, nil))})
		must(t, err)
		must(t, s.Close())
		for line := range strings.Lines(out.String()) {
			if !strings.Contains(line, "slow fdatasync") { // the disk has other work
				t.Errorf("a start is not worth a word: %s", line)
			}
		}
	}
}
