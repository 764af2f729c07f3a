package etcd

import (
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logger returns a zap logger that passes entries of at least the level to
// slog. If to is nil, it discards them.
func logger(to *slog.Logger, level zapcore.LevelEnabler, options ...zap.Option) *zap.Logger {
	if to == nil {
		return zap.New(zapcore.NewNopCore(), options...)
	}
	return zap.New(core{LevelEnabler: level, to: to}, options...)
}

// core implements zapcore.Core.
type core struct {
	zapcore.LevelEnabler
	to *slog.Logger
}

func (c core) With(fields []zapcore.Field) zapcore.Core {
	c.to = c.to.With(attrs(fields)...)
	return c
}

func (c core) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

func (c core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	log := c.to.Warn
	if e.Level > zapcore.WarnLevel {
		log = c.to.Error
	}
	log("etcd: "+e.Message, attrs(fields)...)
	return nil
}

func (core) Sync() error { return nil }

func attrs(fields []zapcore.Field) []any {
	enc := zapcore.NewMapObjectEncoder()
	var out []any
	for _, f := range fields {
		f.AddTo(enc)
	}
	for _, f := range fields {
		out = append(out, slog.Any(f.Key, enc.Fields[f.Key]))
	}
	return out
}
