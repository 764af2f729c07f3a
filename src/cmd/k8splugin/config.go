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

	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/multicloud-k8s/k8splugin/src/chartsource"
	"github.com/multicloud-k8s/k8splugin/src/cmd/k8splugin/cli"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
	"github.com/multicloud-k8s/k8splugin/src/store/etcd"
)

// Config is the configuration of the service. Precedence, highest first: flags,
// environment, file, defaults.
type Config struct {
	Listen    string `koanf:"listen"`
	Data      string `koanf:"data"`
	Store     string `koanf:"store"`
	LogLevel  string `koanf:"log-level"`
	LogFormat string `koanf:"log-format"`

	Workers          int           `koanf:"workers"`
	OperationTimeout time.Duration `koanf:"operation-timeout"`
	SyncWait         time.Duration `koanf:"sync-timeout"`
	DrainTimeout     time.Duration `koanf:"drain-timeout"`
	MaxPackage       int64         `koanf:"max-package-bytes"`
	Retention        time.Duration `koanf:"operation-retention"`
	Lease            time.Duration `koanf:"lease-duration"`
	Replica          string        `koanf:"replica-name"`
	PruneObjects     int           `koanf:"prune-objects"`
	PruneShare       float64       `koanf:"prune-share"`
	StoreQuota       int64         `koanf:"store-quota"`

	KeyFile string    `koanf:"encryption-key-file"`
	Keys    nf.Secret `koanf:"-"` // from the environment only, because flags are visible to other users

	AccessFile     string        `koanf:"access-file"`
	InsecureNoAuth bool          `koanf:"insecure-no-auth"`
	TLSCert        string        `koanf:"tls-cert"`
	TLSKey         string        `koanf:"tls-key"`
	TLSClientCA    string        `koanf:"tls-client-ca"`
	Hosts          string        `koanf:"allowed-hosts"`
	RateLimit      float64       `koanf:"rate-limit"`
	ProtectMetrics bool          `koanf:"protect-metrics"`
	AuditFile      string        `koanf:"audit-file"`
	AuditRetention time.Duration `koanf:"audit-retention"`
	Istio          istioConfig   `koanf:"-"` // its settings have flags of their own

	ONAPErrors    string `koanf:"onap-errors"`
	CallbackAllow string `koanf:"allowed-callbacks"`
	RegionAllow   string `koanf:"allowed-region-hosts"`
	ChartSources  string `koanf:"allowed-chart-hosts"`

	ChartSourcesPlain string `koanf:"plain-http-chart-hosts"`
	// CSARAuthorities is a file with the certificates of the authorities that sign CSARs.
	CSARAuthorities string `koanf:"csar-ca-file"`
	ReadinessRules  string `koanf:"readiness-rules"`

	Kud          string `koanf:"kud-dir"`
	KudArtifacts string `koanf:"kud-artifacts"`

	OTLPEndpoint string  `koanf:"otlp-endpoint"`
	OTLPInsecure bool    `koanf:"otlp-insecure"`
	OTLPSample   float64 `koanf:"otlp-sample-ratio"`

	AAI        aaiSettings       `koanf:"-"`
	AAIRegions aaiRegionSettings `koanf:"-"`
	NFVO       nfvoSettings      `koanf:"-"`
	SDC        sdcSettings       `koanf:"-"`
	Keystone   keystoneSettings  `koanf:"-"`
	VNFNotify  vnfNotifySettings `koanf:"-"`
}

const envPrefix = "K8SPLUGIN_"

// largestPackage is the maximum of the limit on the size of a package's archive, in
// bytes.
const largestPackage = 1 << 40

// minStoreQuota is the minimum store quota in bytes: room for one package of
// the default maximum size.
const minStoreQuota = 64 << 20

// configFlags defines a flag for every field, with the default of the setting.
func configFlags(flags *pflag.FlagSet) {
	flags.String("config", "", "YAML file with these settings, named like the flags (env K8SPLUGIN_CONFIG)")
	flags.String("listen", "127.0.0.1:9015", "host:port to listen on")
	flags.String("data", defaultData(), "folder of the embedded database")
	flags.String("store", "etcd", "database: "+storeUsage)
	flags.Int64("store-quota", etcd.DefaultQuota, "maximum size in bytes of the embedded store's database file; above it, writes fail")
	flags.String("log-level", "info", "log level: debug, info, warn or error")
	flags.String("log-format", "json", "log format: json or text")
	flags.Int("workers", 32, "maximum number of operations that act concurrently")
	flags.Duration("operation-timeout", 15*time.Minute, "timeout of an operation whose request sets none")
	flags.Duration("sync-timeout", 10*time.Minute, "maximum time that a request waits for its operation before the response is 202")
	flags.Duration("drain-timeout", 20*time.Second, "time that running operations and requests have to finish after SIGTERM")
	flags.Duration("operation-retention", 30*24*time.Hour, "time that operations are kept after they end")
	flags.Duration("lease-duration", 10*time.Second, "time without a heartbeat before a replica is considered dead")
	flags.String("replica-name", defaultReplica(), "name of this replica in the audit log and in traces")
	flags.Int64("max-package-bytes", 64<<20, "maximum size of a package's archive in bytes")
	flags.Int("prune-objects", 10, "maximum number of objects that a change may delete without confirmation")
	flags.Float64("prune-share", 0.5, "maximum share of an instance's objects that a change may delete without confirmation, if it deletes more than two objects")
	flags.String("encryption-key-file", "", "file with the keys that encrypt the store (default: the data folder's name with .keys appended); env K8SPLUGIN_KEYS contains the keys themselves")
	accessFlags(flags)
	keystoneFlags(flags)
	vnfNotifyFlags(flags)
	istioFlags(flags)
	apiFlags(flags)
	aaiFlags(flags)
	sdcFlags(flags)
	aaiRegionFlags(flags)
	nfvoFlags(flags)
}

// apiFlags defines the flags for what the APIs may reach and how they respond.
func apiFlags(flags *pflag.FlagSet) {
	flags.String("onap-errors", "legacy", "response of ONAP's API if an object does not exist: legacy (500, as released clients expect) or strict (404)")
	flags.String("allowed-callbacks", "", "comma-separated hosts, addresses and networks that notifications may be sent to although they are loopback or link-local")
	flags.String("allowed-region-hosts", "", "comma-separated hosts, addresses and networks that cloud regions may have although they are link-local or loopback; loopback is always allowed if the service itself listens on loopback only")
	flags.String("plain-http-chart-hosts", "", "comma-separated chart sources that are accessed without TLS")
	flags.String("csar-ca-file", "", "CA certificates of the authorities that sign CSARs; a CSAR that none of them has signed is rejected (default: signatures are optional)")
	flags.String("readiness-rules", "", "YAML file with rules that determine when custom resources are ready, in addition to the shipped ones")
	flags.String("kud-dir", "", "folder of the Ansible collection that builds sites; if empty, only scripts build sites")
	flags.String("kud-artifacts", "", "folder or URL of the files that sites are built from, unless a site names its own URL")
	flags.String("allowed-chart-hosts", "", "comma-separated hosts of registries and chart repositories that charts may be fetched from; if empty, none")
}

// accessFlags defines the flags for access control, TLS and the audit log.
func accessFlags(flags *pflag.FlagSet) {
	flags.String("access-file", "", "YAML file with the access rules; without it, anyone on this machine can do everything")
	flags.Bool("insecure-no-auth", false, "serve other machines without --access-file: anyone who can reach the address can do everything")
	flags.String("tls-cert", "", "PEM file with the service's certificate and its chain; reloaded when it changes")
	flags.String("tls-key", "", "private key of the certificate")
	flags.String("tls-client-ca", "", "CA certificates that client certificates are verified with")
	flags.String("allowed-hosts", "", "comma-separated host names that requests may address in addition to loopback names, if access rules are not set")
	flags.Float64("rate-limit", 0, "maximum requests per second per client, with bursts of twice that; 0 means no limit")
	flags.Bool("protect-metrics", true, "with --access-file, require region:read for all cloud regions to read /metrics, which names them")
	flags.String("audit-file", "", "file that every change and every denied request is written to, in addition to the store")
	flags.Duration("audit-retention", 90*24*time.Hour, "time that the store keeps audit entries")
	flags.String("otlp-endpoint", "", "OpenTelemetry collector that traces are sent to over HTTP: host:port or a URL")
	flags.Bool("otlp-insecure", false, "connect to the collector without TLS")
	flags.Float64("otlp-sample-ratio", 1, "share of requests that are traced, from 0 to 1")
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

// loadConfig reads and validates the configuration. The error names every
// invalid setting and its source.
func loadConfig(flags *pflag.FlagSet, getenv func(string) string) (Config, error) {
	k := koanf.New(".")
	settings := map[string]string{} // name → source of the value
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

// take copies the flags' values into the configuration.
func (c *Config) take(flags *pflag.FlagSet) {
	for name, into := range map[string]*string{
		"listen": &c.Listen, "data": &c.Data, "store": &c.Store, "log-level": &c.LogLevel, "log-format": &c.LogFormat, "replica-name": &c.Replica,
		"encryption-key-file": &c.KeyFile, "access-file": &c.AccessFile, "tls-cert": &c.TLSCert, "tls-key": &c.TLSKey, "tls-client-ca": &c.TLSClientCA,
		"allowed-hosts": &c.Hosts, "audit-file": &c.AuditFile, "otlp-endpoint": &c.OTLPEndpoint,
		"onap-errors": &c.ONAPErrors, "allowed-callbacks": &c.CallbackAllow, "allowed-region-hosts": &c.RegionAllow, "allowed-chart-hosts": &c.ChartSources,
		"plain-http-chart-hosts": &c.ChartSourcesPlain, "csar-ca-file": &c.CSARAuthorities, "readiness-rules": &c.ReadinessRules, "kud-dir": &c.Kud, "kud-artifacts": &c.KudArtifacts,
	} {
		*into, _ = flags.GetString(name)
	}
	for name, into := range map[string]*time.Duration{
		"operation-timeout": &c.OperationTimeout, "sync-timeout": &c.SyncWait, "drain-timeout": &c.DrainTimeout, "operation-retention": &c.Retention,
		"lease-duration": &c.Lease, "audit-retention": &c.AuditRetention,
	} {
		*into, _ = flags.GetDuration(name)
	}
	for name, into := range map[string]*bool{
		"insecure-no-auth": &c.InsecureNoAuth, "protect-metrics": &c.ProtectMetrics, "otlp-insecure": &c.OTLPInsecure,
	} {
		*into, _ = flags.GetBool(name)
	}
	for name, into := range map[string]*float64{"prune-share": &c.PruneShare, "rate-limit": &c.RateLimit, "otlp-sample-ratio": &c.OTLPSample} {
		*into, _ = flags.GetFloat64(name)
	}
	c.Istio.take(flags)
	c.Workers, _ = flags.GetInt("workers")
	c.PruneObjects, _ = flags.GetInt("prune-objects")
	c.MaxPackage, _ = flags.GetInt64("max-package-bytes")
	c.StoreQuota, _ = flags.GetInt64("store-quota")
	c.AAI.take(flags)
	c.SDC.take(flags)
	c.Keystone.take(flags)
	c.VNFNotify.take(flags)
	c.AAIRegions.take(flags)
	c.NFVO.take(flags)
}

func (c *Config) validate() error {
	var errs []error
	wrong := func(name, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...)))
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		wrong("listen", "must be host:port, got %q", c.Listen)
	}
	if kind, location, outside := strings.Cut(c.Store, "://"); stores()[kind] == nil || outside && location == "" {
		wrong("store", "must be %s, got %q", storeForms, masked(c.Store))
	}
	if c.Data == "" && c.Store == "etcd" {
		wrong("data", "the embedded database requires a folder")
	}
	if err := new(slog.Level).UnmarshalText([]byte(c.LogLevel)); err != nil {
		wrong("log-level", "must be debug, info, warn or error, got %q", c.LogLevel)
	}
	if c.LogFormat != "json" && c.LogFormat != "text" {
		wrong("log-format", "must be json or text, got %q", c.LogFormat)
	}
	if c.ONAPErrors != "legacy" && c.ONAPErrors != "strict" {
		wrong("onap-errors", "must be legacy or strict, got %q", c.ONAPErrors)
	}
	if _, err := c.callbackHosts(); err != nil {
		wrong("allowed-callbacks", "%v", err)
	}
	if _, err := c.regionHosts(); err != nil {
		wrong("allowed-region-hosts", "%v", err)
	}
	if _, err := chartsource.New(chartsource.Config{Allow: listed(c.ChartSources), PlainHTTP: listed(c.ChartSourcesPlain)}); err != nil {
		wrong("allowed-chart-hosts, plain-http-chart-hosts", "%v", err)
	}
	c.AAI.validate(wrong)
	c.SDC.validate(wrong)
	c.Keystone.validate(c.AccessFile, wrong)
	c.VNFNotify.validate(wrong)
	c.AAIRegions.validate(c.AAI.URL, c.SDC.Kafka, wrong)
	c.NFVO.validate(wrong)
	return errors.Join(append(append(errs, c.validateLimits()...), c.validateAccess()...)...)
}

func (c *Config) validateLimits() []error {
	var errs []error
	wrong := func(name, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...)))
	}
	if c.Workers < 1 || c.Workers > 1024 {
		wrong("workers", "must be between 1 and 1024, got %d", c.Workers)
	}
	for name, d := range map[string]time.Duration{"operation-timeout": c.OperationTimeout, "sync-timeout": c.SyncWait, "drain-timeout": c.DrainTimeout} {
		if d <= 0 || d > 24*time.Hour {
			wrong(name, "must be above 0 and at most 24h, got %s", d)
		}
	}
	if c.Retention < time.Minute {
		wrong("operation-retention", "must be at least 1m, got %s", c.Retention)
	}
	if c.Lease < time.Second || c.Lease > 5*time.Minute {
		wrong("lease-duration", "must be between 1s and 5m, got %s", c.Lease)
	}
	if c.MaxPackage < 1 || c.MaxPackage > largestPackage {
		wrong("max-package-bytes", "must be between 1 byte and 1 TiB, got %d", c.MaxPackage)
	}
	if c.StoreQuota < minStoreQuota || c.StoreQuota > etcd.MaxQuota {
		wrong("store-quota", "must be between %d (64 MiB) and %d (8 GiB), got %d", minStoreQuota, int64(etcd.MaxQuota), c.StoreQuota)
	}
	if c.AuditRetention < time.Minute {
		wrong("audit-retention", "must be at least 1m, got %s", c.AuditRetention)
	}
	if c.PruneObjects < 1 || c.PruneShare <= 0 || c.PruneShare > 1 {
		wrong("prune-objects, prune-share", "must be above 0, and the share at most 1, got %d and %g", c.PruneObjects, c.PruneShare)
	}
	if c.RateLimit < 0 || c.OTLPSample < 0 || c.OTLPSample > 1 {
		wrong("rate-limit, otlp-sample-ratio", "must be at least 0, and the share of traces at most 1, got %g and %g", c.RateLimit, c.OTLPSample)
	}
	return errs
}

// validateAccess rejects open access on an address that other machines can
// reach, unless it is requested explicitly. It also checks that the TLS
// settings are complete.
func (c *Config) validateAccess() []error {
	errs := []error{c.Istio.validate()}
	if c.AccessFile == "" && !c.InsecureNoAuth && !loopback(c.Listen) {
		errs = append(errs, fmt.Errorf("listen: other machines can reach %s without authentication; give --access-file or --insecure-no-auth", c.Listen))
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		errs = append(errs, errors.New("tls-cert, tls-key: must be set together"))
	}
	if c.TLSClientCA != "" && c.TLSCert == "" {
		errs = append(errs, errors.New("tls-client-ca: requires tls-cert"))
	}
	return errs
}

// loopback reports whether an address is a loopback address.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return true // an invalid address is reported elsewhere
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// regionHosts returns the addresses that cloud regions may have. If the service
// listens on loopback only, regions may too: its clients are on this machine
// and can reach loopback themselves.
func (c Config) regionHosts() (outbound.Hosts, error) {
	h, err := outbound.ParseHosts(listed(c.RegionAllow))
	if err == nil && loopback(c.Listen) {
		h = h.WithLoopback()
	}
	return h, err
}

// callbackHosts returns the addresses that URLs of requests may have, such as those of
// callbacks.
func (c Config) callbackHosts() (outbound.Hosts, error) {
	return outbound.ParseHosts(listed(c.CallbackAllow))
}

// hosts returns the host names that requests may be for.
func (c Config) hosts() []string { return listed(c.Hosts) }

// listed splits a setting at commas and blanks.
func listed(setting string) []string {
	return strings.FieldsFunc(setting, func(r rune) bool { return r == ',' || r == ' ' })
}

// LogValue returns the configuration with secrets masked.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("listen", c.Listen), slog.String("data", c.Data), slog.String("store", masked(c.Store)),
		slog.String("log-level", c.LogLevel), slog.String("log-format", c.LogFormat),
		slog.Int("workers", c.Workers), slog.String("operation-timeout", c.OperationTimeout.String()), slog.String("sync-timeout", c.SyncWait.String()),
		slog.String("drain-timeout", c.DrainTimeout.String()), slog.Int64("max-package-bytes", c.MaxPackage), slog.Int64("store-quota", c.StoreQuota), slog.String("operation-retention", c.Retention.String()),
		slog.String("lease-duration", c.Lease.String()), slog.String("replica-name", c.Replica), slog.Int("prune-objects", c.PruneObjects), slog.Float64("prune-share", c.PruneShare),
		slog.String("encryption-key-file", c.keyFile()), slog.Bool("keys-from-environment", len(c.Keys) > 0),
		slog.String("access-file", c.AccessFile), slog.Bool("insecure-no-auth", c.InsecureNoAuth),
		slog.String("tls-cert", c.TLSCert), slog.String("tls-client-ca", c.TLSClientCA), slog.String("allowed-hosts", c.Hosts),
		slog.Any("istio", &c.Istio), slog.Float64("rate-limit", c.RateLimit), slog.Bool("protect-metrics", c.ProtectMetrics), slog.String("audit-file", c.AuditFile), slog.String("audit-retention", c.AuditRetention.String()),
		slog.String("onap-errors", c.ONAPErrors), slog.String("allowed-callbacks", c.CallbackAllow), slog.String("allowed-region-hosts", c.RegionAllow), slog.String("allowed-chart-hosts", c.ChartSources),
		slog.String("plain-http-chart-hosts", c.ChartSourcesPlain), slog.String("csar-ca-file", c.CSARAuthorities), slog.String("readiness-rules", c.ReadinessRules), slog.String("kud-dir", c.Kud), slog.String("kud-artifacts", c.KudArtifacts),
		slog.String("otlp-endpoint", masked(c.OTLPEndpoint)), slog.Float64("otlp-sample-ratio", c.OTLPSample),
		slog.Any("aai", c.AAI), slog.Any("aai-regions", c.AAIRegions), slog.Any("sdc", c.SDC), slog.Any("keystone", c.Keystone), slog.Any("vnf-notifications", c.VNFNotify), slog.Any("nfvo", c.NFVO),
	)
}
