package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/multicloud-k8s/k8splugin/src/cmd/k8splugin/cli"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// Config is the configuration of the service. Flags win over the environment,
// the environment over the file, the file over the defaults.
type Config struct {
	Listen           string        `koanf:"listen"`
	Data             string        `koanf:"data"`
	Store            string        `koanf:"store"`
	LogLevel         string        `koanf:"log-level"`
	LogFormat        string        `koanf:"log-format"`
	Workers          int           `koanf:"workers"`
	OperationTimeout time.Duration `koanf:"operation-timeout"`
	SyncWait         time.Duration `koanf:"sync-wait"`
	DrainTimeout     time.Duration `koanf:"drain-timeout"`
	MaxPackage       int64         `koanf:"max-package"`
	Retention        time.Duration `koanf:"retention"`
}

const envPrefix = "K8SPLUGIN_"

// configFlags defines a flag for every field; the flags' defaults are the
// configuration's.
func configFlags(flags *pflag.FlagSet) {
	flags.String("config", "", "YAML file with these settings, named as the flags are (env K8SPLUGIN_CONFIG)")
	flags.String("listen", "127.0.0.1:9015", "address to serve on")
	flags.String("data", defaultData(), "folder of the embedded database")
	flags.String("store", "etcd", "database: etcd (embedded), etcd://host:port,… (an outside cluster) or memory (nothing is kept)")
	flags.String("log-level", "info", "debug, info, warn or error")
	flags.String("log-format", "json", "json or text")
	flags.Int("workers", 32, "operations that run at once")
	flags.Duration("operation-timeout", 15*time.Minute, "deadline of an operation whose request names none")
	flags.Duration("sync-wait", 10*time.Minute, "longest time that a request waits for its operation before it is answered 202")
	flags.Duration("drain-timeout", 20*time.Second, "how long running operations and requests may go on after SIGTERM")
	flags.Duration("retention", 30*24*time.Hour, "how long operations are kept after their end")
	flags.Int64("max-package", 64<<20, "largest package, in bytes of its archive")
}

func defaultData() string {
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "share", "k8splugin")
	}
	return "k8splugin-data"
}

// loadConfig reads the configuration and validates it. The error names every
// setting that is wrong and where it came from.
func loadConfig(flags *pflag.FlagSet, getenv func(string) string) (Config, error) {
	k := koanf.New(".")
	settings := map[string]string{} // name → where its value came from
	if err := loadFile(k, flags, getenv, settings); err != nil {
		return Config{}, cli.Usage(err)
	}
	if err := loadEnvironment(k, getenv, flags, settings); err != nil {
		return Config{}, cli.Usage(err)
	}
	var cfg Config
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "config" || f.Name == "help" || f.Changed || !k.Exists(f.Name) {
			return
		}
		if err := f.Value.Set(k.String(f.Name)); err != nil {
			errs = append(errs, fmt.Errorf("%s, from %s: %w", f.Name, settings[f.Name], err))
		}
	})
	if err := errors.Join(errs...); err != nil {
		return cfg, cli.Usage(fmt.Errorf("cannot use the configuration: %w", err))
	}
	cfg.take(flags)
	if err := cfg.validate(); err != nil {
		return cfg, cli.Usage(fmt.Errorf("cannot use the configuration: %w", err))
	}
	return cfg, nil
}

func loadFile(k *koanf.Koanf, flags *pflag.FlagSet, getenv func(string) string, settings map[string]string) error {
	name, _ := flags.GetString("config")
	if name == "" {
		name = getenv(envPrefix + "CONFIG")
	}
	if name == "" {
		return nil
	}
	if err := k.Load(file.Provider(name), yaml.Parser()); err != nil {
		return fmt.Errorf("cannot read the configuration file %s: %w", name, err)
	}
	for _, key := range k.Keys() {
		if flags.Lookup(key) == nil || key == "config" {
			return fmt.Errorf("cannot use the configuration file %s: there is no setting %q", name, key)
		}
		settings[key] = name
	}
	return nil
}

func loadEnvironment(k *koanf.Koanf, getenv func(string) string, flags *pflag.FlagSet, settings map[string]string) error {
	var vars []string
	flags.VisitAll(func(f *pflag.Flag) {
		name := envPrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if value := getenv(name); value != "" && f.Name != "config" {
			vars = append(vars, name+"="+value)
			settings[f.Name] = name
		}
	})
	return k.Load(env.Provider(".", env.Opt{
		Prefix:      envPrefix,
		EnvironFunc: func() []string { return vars },
		TransformFunc: func(name, value string) (string, any) {
			return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, envPrefix)), "_", "-"), value
		},
	}), nil)
}

// take copies the flags' values.
func (c *Config) take(flags *pflag.FlagSet) {
	c.Listen, _ = flags.GetString("listen")
	c.Data, _ = flags.GetString("data")
	c.Store, _ = flags.GetString("store")
	c.LogLevel, _ = flags.GetString("log-level")
	c.LogFormat, _ = flags.GetString("log-format")
	c.Workers, _ = flags.GetInt("workers")
	c.OperationTimeout, _ = flags.GetDuration("operation-timeout")
	c.SyncWait, _ = flags.GetDuration("sync-wait")
	c.DrainTimeout, _ = flags.GetDuration("drain-timeout")
	c.MaxPackage, _ = flags.GetInt64("max-package")
	c.Retention, _ = flags.GetDuration("retention")
}

func (c *Config) validate() error {
	var errs []error
	wrong := func(name, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...)))
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		wrong("listen", "%q is not host:port", c.Listen)
	}
	if kind, location, outside := strings.Cut(c.Store, "://"); stores()[kind] == nil || outside && location == "" {
		wrong("store", "%q is none of etcd, etcd://host:port,… and memory", masked(c.Store))
	}
	if c.Data == "" && c.Store == "etcd" {
		wrong("data", "the embedded database needs a folder")
	}
	if err := new(slog.Level).UnmarshalText([]byte(c.LogLevel)); err != nil {
		wrong("log-level", "%q is none of debug, info, warn and error", c.LogLevel)
	}
	if c.LogFormat != "json" && c.LogFormat != "text" {
		wrong("log-format", "%q is neither json nor text", c.LogFormat)
	}
	if c.Workers < 1 || c.Workers > 1024 {
		wrong("workers", "%d is not between 1 and 1024", c.Workers)
	}
	for name, d := range map[string]time.Duration{"operation-timeout": c.OperationTimeout, "sync-wait": c.SyncWait, "drain-timeout": c.DrainTimeout} {
		if d <= 0 || d > 24*time.Hour {
			wrong(name, "%s is not between 0 and 24h", d)
		}
	}
	if c.Retention < time.Minute {
		wrong("retention", "%s is less than a minute", c.Retention)
	}
	if c.MaxPackage < 1 || c.MaxPackage > 1<<30 {
		wrong("max-package", "%d is not between 1 byte and 1 GiB", c.MaxPackage)
	}
	return errors.Join(errs...)
}

// LogValue shows the configuration with its secrets masked.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("listen", c.Listen),
		slog.String("data", c.Data),
		slog.String("store", masked(c.Store)),
		slog.String("log-level", c.LogLevel),
		slog.String("log-format", c.LogFormat),
		slog.Int("workers", c.Workers),
		slog.Duration("operation-timeout", c.OperationTimeout),
		slog.Duration("sync-wait", c.SyncWait),
		slog.Duration("drain-timeout", c.DrainTimeout),
		slog.Int64("max-package", c.MaxPackage),
		slog.Duration("retention", c.Retention),
	)
}

// traced adds the id of the request, where there is one, to what is logged on
// its behalf.
type traced struct{ slog.Handler }

func (h traced) Handle(ctx context.Context, rec slog.Record) error {
	if id := northbound.RequestID(ctx); id != "" {
		rec.AddAttrs(slog.String("request_id", id))
	}
	return h.Handler.Handle(ctx, rec)
}

func (h traced) WithAttrs(attrs []slog.Attr) slog.Handler { return traced{h.Handler.WithAttrs(attrs)} }

func (h traced) WithGroup(name string) slog.Handler { return traced{h.Handler.WithGroup(name)} }

// logger returns the service's log.
func (c Config) logger(p process) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.LogLevel)) // validated
	opts := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "text" {
		return slog.New(slog.NewTextHandler(p.stderr, opts))
	}
	return slog.New(slog.NewJSONHandler(p.stderr, opts))
}
