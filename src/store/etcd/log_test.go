package etcd

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
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
