package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/multicloud-k8s/k8splugin/src/chartsource"
	"github.com/multicloud-k8s/k8splugin/src/cmd/k8splugin/cli"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
	"github.com/multicloud-k8s/k8splugin/src/store/etcd"
)

// Config is the configuration of the service. Flags win over the environment,
// the environment over the file, the file over the defaults.
type Config struct {
	Listen    string `koanf:"listen"`
	Data      string `koanf:"data"`
	Store     string `koanf:"store"`
	LogLevel  string `koanf:"log-level"`
	LogFormat string `koanf:"log-format"`

	Workers          int           `koanf:"workers"`
	OperationTimeout time.Duration `koanf:"operation-timeout"`
	SyncWait         time.Duration `koanf:"sync-wait"`
	DrainTimeout     time.Duration `koanf:"drain-timeout"`
	MaxPackage       int64         `koanf:"max-package"`
	Retention        time.Duration `koanf:"retention"`
	Lease            time.Duration `koanf:"lease"`
	Replica          string        `koanf:"replica"`
	PruneObjects     int           `koanf:"prune-objects"`
	PruneShare       float64       `koanf:"prune-share"`
	StoreQuota       int64         `koanf:"store-quota"`

	KeyFile string    `koanf:"key-file"`
	Keys    nf.Secret `koanf:"-"` // from the environment alone: a flag is for everybody to see

	AccessFile     string        `koanf:"access-file"`
	InsecureNoAuth bool          `koanf:"insecure-no-auth"`
	TLSCert        string        `koanf:"tls-cert"`
	TLSKey         string        `koanf:"tls-key"`
	TLSClientCA    string        `koanf:"tls-client-ca"`
	Hosts          string        `koanf:"hosts"`
	RateLimit      float64       `koanf:"rate-limit"`
	ProtectMetrics bool          `koanf:"protect-metrics"`
	AuditFile      string        `koanf:"audit-file"`
	AuditRetention time.Duration `koanf:"audit-retention"`

	ONAPErrors    string `koanf:"onap-errors"`
	CallbackAllow string `koanf:"callback-allow"`
	RegionAllow   string `koanf:"region-allow"`
	ChartSources  string `koanf:"chart-sources"`

	ChartSourcesPlain string `koanf:"chart-sources-plain"`

	Kud          string `koanf:"kud"`
	KudArtifacts string `koanf:"kud-artifacts"`

	OTLPEndpoint string  `koanf:"otlp-endpoint"`
	OTLPInsecure bool    `koanf:"otlp-insecure"`
	OTLPSample   float64 `koanf:"otlp-sample"`
}

const envPrefix = "K8SPLUGIN_"

// minStoreQuota is the least space that the service can work with: one package of
// the largest default size.
const minStoreQuota = 64 << 20

// configFlags defines a flag for every field; the flags' defaults are the
// configuration's.
func configFlags(flags *pflag.FlagSet) {
	flags.String("config", "", "YAML file with these settings, named as the flags are (env K8SPLUGIN_CONFIG)")
	flags.String("listen", "127.0.0.1:9015", "address to serve on")
	flags.String("data", defaultData(), "folder of the embedded database")
	flags.String("store", "etcd", "database: etcd (embedded), etcd://[user:password@]host:port,… (an outside cluster), mongodb://… or memory (nothing is kept)")
	flags.Int64("store-quota", etcd.DefaultQuota, "largest database file of the embedded store in bytes; above it, writes are refused")
	flags.String("log-level", "info", "debug, info, warn or error")
	flags.String("log-format", "json", "json or text")
	flags.Int("workers", 32, "operations that act at once")
	flags.Duration("operation-timeout", 15*time.Minute, "deadline of an operation whose request names none")
	flags.Duration("sync-wait", 10*time.Minute, "longest time that a request waits for its operation before it is answered 202")
	flags.Duration("drain-timeout", 20*time.Second, "how long running operations and requests may go on after SIGTERM")
	flags.Duration("retention", 30*24*time.Hour, "how long operations are kept after their end")
	flags.Duration("lease", 10*time.Second, "after which the others take a replica for dead that stands still")
	flags.String("replica", defaultReplica(), "name of this replica in the audit log and in traces")
	flags.Int64("max-package", 64<<20, "largest package, in bytes of its archive")
	flags.Int("prune-objects", 10, "a change that deletes more objects than this must be confirmed")
	flags.Float64("prune-share", 0.5, "so must one that deletes more than this part of an instance's objects")
	flags.String("key-file", "", "file of the keys that the store is sealed with (default: the data folder's name with .keys behind it); env K8SPLUGIN_KEYS holds the keys themselves")
	accessFlags(flags)
	apiFlags(flags)
}

// apiFlags say what the APIs may reach, and how they answer.
func apiFlags(flags *pflag.FlagSet) {
	flags.String("onap-errors", "legacy", "how ONAP's API says that something does not exist: legacy, with the 500s that released clients read, or strict, with 404")
	flags.String("callback-allow", "", "hosts, addresses and networks, with commas, that notifications may go to although they are loopback or link-local")
	flags.String("region-allow", "", "hosts, addresses and networks, with commas, that cloud regions may have although they are link-local or, unless the service itself listens on loopback only, loopback")
	flags.String("chart-sources-plain", "", "those of the chart sources that are asked without TLS")
	flags.String("kud", "", "folder of the Ansible collection that sites are built with; empty: sites are built by scripts alone")
	flags.String("kud-artifacts", "", "folder or URL with what sites are built from, unless a site names a URL of its own")
	flags.String("chart-sources", "", "hosts of registries and chart repositories, with commas, that charts may be fetched from; empty: none")
}

// accessFlags say who may come in, and what is told of it.
func accessFlags(flags *pflag.FlagSet) {
	flags.String("access-file", "", "YAML file that says who may do what; without it everybody on this machine may do everything")
	flags.Bool("insecure-no-auth", false, "serve other machines without --access-file: whoever reaches the address may do everything")
	flags.String("tls-cert", "", "certificate of the service, with its chain, in PEM; it is read again when it changes")
	flags.String("tls-key", "", "the certificate's key")
	flags.String("tls-client-ca", "", "authorities that vouch for clients' certificates")
	flags.String("hosts", "", "names, with commas, that requests may be for beside loopback names, while nobody has to prove who he is")
	flags.Float64("rate-limit", 0, "requests a second of one client, twice as many at once; 0: no limit")
	flags.Bool("protect-metrics", false, "with --access-file, let only those read /metrics who may come in")
	flags.String("audit-file", "", "file that every change and every refusal is written to, beside the store")
	flags.Duration("audit-retention", 90*24*time.Hour, "how long the store keeps what is audited")
	flags.String("otlp-endpoint", "", "OpenTelemetry collector that traces are sent to, by HTTP: host:port or a URL")
	flags.Bool("otlp-insecure", false, "speak to the collector without TLS")
	flags.Float64("otlp-sample", 1, "share of the requests that are traced")
}

func defaultReplica() string {
	name, err := os.Hostname()
	if err != nil {
		return "k8splugin"
	}
	return name
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
	cfg.Keys = nf.Secret(getenv(envPrefix + "KEYS"))
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
	for name, into := range map[string]*string{
		"listen": &c.Listen, "data": &c.Data, "store": &c.Store, "log-level": &c.LogLevel, "log-format": &c.LogFormat, "replica": &c.Replica,
		"key-file": &c.KeyFile, "access-file": &c.AccessFile, "tls-cert": &c.TLSCert, "tls-key": &c.TLSKey, "tls-client-ca": &c.TLSClientCA,
		"hosts": &c.Hosts, "audit-file": &c.AuditFile, "otlp-endpoint": &c.OTLPEndpoint,
		"onap-errors": &c.ONAPErrors, "callback-allow": &c.CallbackAllow, "region-allow": &c.RegionAllow, "chart-sources": &c.ChartSources,
		"chart-sources-plain": &c.ChartSourcesPlain, "kud": &c.Kud, "kud-artifacts": &c.KudArtifacts,
	} {
		*into, _ = flags.GetString(name)
	}
	for name, into := range map[string]*time.Duration{
		"operation-timeout": &c.OperationTimeout, "sync-wait": &c.SyncWait, "drain-timeout": &c.DrainTimeout, "retention": &c.Retention,
		"lease": &c.Lease, "audit-retention": &c.AuditRetention,
	} {
		*into, _ = flags.GetDuration(name)
	}
	for name, into := range map[string]*bool{
		"insecure-no-auth": &c.InsecureNoAuth, "protect-metrics": &c.ProtectMetrics, "otlp-insecure": &c.OTLPInsecure,
	} {
		*into, _ = flags.GetBool(name)
	}
	for name, into := range map[string]*float64{"prune-share": &c.PruneShare, "rate-limit": &c.RateLimit, "otlp-sample": &c.OTLPSample} {
		*into, _ = flags.GetFloat64(name)
	}
	c.Workers, _ = flags.GetInt("workers")
	c.PruneObjects, _ = flags.GetInt("prune-objects")
	c.MaxPackage, _ = flags.GetInt64("max-package")
	c.StoreQuota, _ = flags.GetInt64("store-quota")
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
		wrong("store", "%q is none of etcd, etcd://host:port,…, mongodb://… and memory", masked(c.Store))
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
	if c.ONAPErrors != "legacy" && c.ONAPErrors != "strict" {
		wrong("onap-errors", "%q is neither legacy nor strict", c.ONAPErrors)
	}
	if _, err := outbound.ParseHosts(listed(c.CallbackAllow)); err != nil {
		wrong("callback-allow", "%v", err)
	}
	if _, err := c.regionHosts(); err != nil {
		wrong("region-allow", "%v", err)
	}
	if _, err := chartsource.New(chartsource.Config{Allow: listed(c.ChartSources), PlainHTTP: listed(c.ChartSourcesPlain)}); err != nil {
		wrong("chart-sources, chart-sources-plain", "%v", err)
	}
	return errors.Join(append(append(errs, c.validateLimits()...), c.validateAccess()...)...)
}

func (c *Config) validateLimits() []error {
	var errs []error
	wrong := func(name, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...)))
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
	if c.Lease < time.Second || c.Lease > 5*time.Minute {
		wrong("lease", "%s is not between 1s and 5m", c.Lease)
	}
	if c.MaxPackage < 1 || c.MaxPackage > 1<<30 {
		wrong("max-package", "%d is not between 1 byte and 1 GiB", c.MaxPackage)
	}
	if c.StoreQuota < minStoreQuota || c.StoreQuota > etcd.MaxQuota {
		wrong("store-quota", "%d is not between %d (64 MiB) and %d (8 GiB)", c.StoreQuota, minStoreQuota, int64(etcd.MaxQuota))
	}
	if c.AuditRetention < time.Minute {
		wrong("audit-retention", "%s is less than a minute", c.AuditRetention)
	}
	if c.PruneObjects < 1 || c.PruneShare <= 0 || c.PruneShare > 1 {
		wrong("prune-objects, prune-share", "%d is not above 0, or %g is not between 0 and 1", c.PruneObjects, c.PruneShare)
	}
	if c.RateLimit < 0 || c.OTLPSample < 0 || c.OTLPSample > 1 {
		wrong("rate-limit, otlp-sample", "%g is below 0, or %g is not between 0 and 1", c.RateLimit, c.OTLPSample)
	}
	return errs
}

// validateAccess refuses to let everybody in who can reach the address, unless
// that is asked for in so many words.
func (c *Config) validateAccess() []error {
	var errs []error
	if c.AccessFile == "" && !c.InsecureNoAuth && !loopback(c.Listen) {
		errs = append(errs, fmt.Errorf("listen: %s can be reached by other machines, and nobody would have to prove who he is: give --access-file, or --insecure-no-auth", c.Listen))
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		errs = append(errs, errors.New("tls-cert: it takes tls-key, and the other way round"))
	}
	if c.TLSClientCA != "" && c.TLSCert == "" {
		errs = append(errs, errors.New("tls-client-ca: it takes tls-cert"))
	}
	return errs
}

// loopback reports whether an address is this machine's alone.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return true // what is wrong with it is told elsewhere
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// regionHosts returns the addresses that cloud regions may have. While the
// service itself serves this machine only, its clients reach loopback without it.
func (c Config) regionHosts() (outbound.Hosts, error) {
	h, err := outbound.ParseHosts(listed(c.RegionAllow))
	if err == nil && loopback(c.Listen) {
		h = h.WithLoopback()
	}
	return h, err
}

// hosts returns the names that requests may be for.
func (c Config) hosts() []string { return listed(c.Hosts) }

// listed returns what a setting lists, with commas or blanks.
func listed(setting string) []string {
	return strings.FieldsFunc(setting, func(r rune) bool { return r == ',' || r == ' ' })
}

// LogValue shows the configuration with its secrets masked.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("listen", c.Listen), slog.String("data", c.Data), slog.String("store", masked(c.Store)),
		slog.String("log-level", c.LogLevel), slog.String("log-format", c.LogFormat),
		slog.Int("workers", c.Workers), slog.Duration("operation-timeout", c.OperationTimeout), slog.Duration("sync-wait", c.SyncWait),
		slog.Duration("drain-timeout", c.DrainTimeout), slog.Int64("max-package", c.MaxPackage), slog.Int64("store-quota", c.StoreQuota), slog.Duration("retention", c.Retention),
		slog.Duration("lease", c.Lease), slog.String("replica", c.Replica),
		slog.Int("prune-objects", c.PruneObjects), slog.Float64("prune-share", c.PruneShare),
		slog.String("key-file", c.keyFile()), slog.Bool("keys-from-environment", len(c.Keys) > 0),
		slog.String("access-file", c.AccessFile), slog.Bool("insecure-no-auth", c.InsecureNoAuth),
		slog.String("tls-cert", c.TLSCert), slog.String("tls-client-ca", c.TLSClientCA), slog.String("hosts", c.Hosts),
		slog.Float64("rate-limit", c.RateLimit), slog.Bool("protect-metrics", c.ProtectMetrics),
		slog.String("audit-file", c.AuditFile), slog.Duration("audit-retention", c.AuditRetention),
		slog.String("onap-errors", c.ONAPErrors), slog.String("callback-allow", c.CallbackAllow), slog.String("region-allow", c.RegionAllow), slog.String("chart-sources", c.ChartSources),
		slog.String("chart-sources-plain", c.ChartSourcesPlain), slog.String("kud", c.Kud), slog.String("kud-artifacts", c.KudArtifacts),
		slog.String("otlp-endpoint", masked(c.OTLPEndpoint)), slog.Float64("otlp-sample", c.OTLPSample),
	)
}
