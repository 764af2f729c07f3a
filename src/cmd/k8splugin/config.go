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
	Listen    string
	Data      string
	Store     string
	LogLevel  string
	LogFormat string

	Workers          int
	OperationTimeout time.Duration
	SyncWait         time.Duration
	DrainTimeout     time.Duration
	MaxPackage       int64
	Retention        time.Duration
	Lease            time.Duration
	Replica          string
	PruneObjects     int
	PruneShare       float64
	StoreQuota       int64

	KeyFile string
	Keys    nf.Secret // from the environment only, because flags are visible to other users
	KMS     string    // endpoint of the service that encrypts the keys; empty: they are plaintext

	AccessFile     string
	InsecureNoAuth bool
	TLSCert        string
	TLSKey         string
	TLSClientCA    string
	Hosts          string
	RateLimit      float64
	ProtectMetrics bool
	AuditFile      string
	AuditRetention time.Duration
	Istio          istioConfig

	ONAPErrors    string
	CallbackAllow string
	RegionAllow   string
	ChartSources  string

	ChartSourcesPlain string
	// CSARAuthorities is a file with the certificates of the authorities that sign CSARs.
	CSARAuthorities string
	ReadinessRules  string

	Kud          string
	KudArtifacts string

	OTLPEndpoint string
	OTLPInsecure bool
	OTLPSample   float64

	AAI        aaiSettings
	AAIRegions aaiRegionSettings
	NFVO       nfvoSettings
	SDC        sdcSettings
	Keystone   keystoneSettings
	VNFNotify  vnfNotifySettings

	logged []slog.Attr // all settings, for the log
}

const envPrefix = "K8SPLUGIN_"

// largestPackage is the maximum of the limit on the size of a package's archive, in
// bytes.
const largestPackage = 1 << 40

// minStoreQuota is the minimum store quota in bytes: room for one package of
// the default maximum size.
const minStoreQuota = 64 << 20

// configFlags defines the flags of the settings.
func configFlags(flags *pflag.FlagSet) { new(Config).flags(flags) }

// flags defines a flag for every field, with the default of the setting.
func (c *Config) flags(flags *pflag.FlagSet) {
	flags.String("config", "", "YAML file with these settings, named like the flags (env K8SPLUGIN_CONFIG)")
	flags.StringVar(&c.Listen, "listen", "127.0.0.1:9015", "host:port to listen on")
	flags.StringVar(&c.Data, "data", defaultData(), "folder of the embedded database")
	flags.StringVar(&c.Store, "store", "etcd", "database: "+storeUsage)
	flags.Int64Var(&c.StoreQuota, "store-quota", etcd.DefaultQuota, "maximum size in bytes of the embedded store's database file; above it, writes fail")
	flags.StringVar(&c.LogLevel, "log-level", "info", "log level: debug, info, warn or error")
	flags.StringVar(&c.LogFormat, "log-format", "json", "log format: json or text")
	flags.IntVar(&c.Workers, "workers", 32, "maximum number of operations that act concurrently")
	flags.DurationVar(&c.OperationTimeout, "operation-timeout", 15*time.Minute, "timeout of an operation whose request sets none")
	flags.DurationVar(&c.SyncWait, "sync-timeout", 10*time.Minute, "maximum time that a request waits for its operation before the response is 202")
	flags.DurationVar(&c.DrainTimeout, "drain-timeout", 20*time.Second, "time that running operations and requests have to finish after SIGTERM")
	flags.DurationVar(&c.Retention, "operation-retention", 30*24*time.Hour, "time that operations are kept after they end")
	flags.DurationVar(&c.Lease, "lease-duration", 10*time.Second, "time without a heartbeat before a replica is considered dead")
	flags.StringVar(&c.Replica, "replica-name", defaultReplica(), "name of this replica in the audit log and in traces")
	flags.Int64Var(&c.MaxPackage, "max-package-bytes", 64<<20, "maximum size of a package's archive in bytes")
	flags.IntVar(&c.PruneObjects, "prune-objects", 10, "maximum number of objects that a change may delete without confirmation")
	flags.Float64Var(&c.PruneShare, "prune-share", 0.5, "maximum share of an instance's objects that a change may delete without confirmation, if it deletes more than two objects")
	flags.StringVar(&c.KeyFile, "encryption-key-file", "", "file with the keys that encrypt the store (default: the data folder's name with .keys appended); env K8SPLUGIN_KEYS contains the keys themselves")
	flags.StringVar(&c.KMS, kmsFlag, "", kmsUsage)
	c.accessFlags(flags)
	c.Keystone.flags(flags)
	c.VNFNotify.flags(flags)
	c.Istio.flags(flags)
	c.apiFlags(flags)
	c.AAI.flags(flags)
	c.SDC.flags(flags)
	c.AAIRegions.flags(flags)
	c.NFVO.flags(flags)
}

// apiFlags defines the flags for what the APIs may reach and how they respond.
func (c *Config) apiFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.ONAPErrors, "onap-errors", "legacy", "response of ONAP's API if an object does not exist: legacy (500, as released clients expect) or strict (404)")
	flags.StringVar(&c.CallbackAllow, "allowed-callbacks", "", "comma-separated hosts, addresses and networks that notifications, webhooks of VNF packages, handed-over kubeconfigs and token requests for callbacks may be sent to although they are loopback, link-local, multicast or cloud metadata addresses")
	flags.StringVar(&c.RegionAllow, "allowed-region-hosts", "", "comma-separated hosts, addresses and networks that cloud regions may have although they are link-local or loopback; loopback is always allowed if the service itself listens on loopback only")
	flags.StringVar(&c.ChartSourcesPlain, "plain-http-chart-hosts", "", "comma-separated chart sources that are accessed without TLS")
	flags.StringVar(&c.CSARAuthorities, "csar-ca-file", "", "CA certificates of the authorities that sign CSARs; a CSAR that none of them has signed is rejected (default: signatures are optional)")
	flags.StringVar(&c.ReadinessRules, "readiness-rules", "", "YAML file with rules that determine when custom resources are ready, in addition to the shipped ones")
	flags.StringVar(&c.Kud, "kud-dir", "", "folder of the Ansible collection that builds sites; if empty, only scripts build sites")
	flags.StringVar(&c.KudArtifacts, "kud-artifacts", "", "folder or URL of the files that sites are built from, unless a site names its own URL")
	flags.StringVar(&c.ChartSources, "allowed-chart-hosts", "", "comma-separated hosts of registries and chart repositories that charts may be fetched from; if empty, none")
}

// accessFlags defines the flags for access control, TLS and the audit log.
func (c *Config) accessFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.AccessFile, "access-file", "", "YAML file with the access rules; without it, anyone on this machine can do everything")
	flags.BoolVar(&c.InsecureNoAuth, "insecure-no-auth", false, "serve other machines without --access-file: anyone who can reach the address can do everything")
	flags.StringVar(&c.TLSCert, "tls-cert", "", "PEM file with the service's certificate and its chain; reloaded when it changes")
	flags.StringVar(&c.TLSKey, "tls-key", "", "private key of the certificate")
	flags.StringVar(&c.TLSClientCA, "tls-client-ca", "", "CA certificates that client certificates are verified with")
	flags.StringVar(&c.Hosts, "allowed-hosts", "", "comma-separated host names that requests may address in addition to loopback names, if access rules are not set")
	flags.Float64Var(&c.RateLimit, "rate-limit", 0, "maximum requests per second per client, with bursts of twice that; 0 means no limit")
	flags.BoolVar(&c.ProtectMetrics, "protect-metrics", true, "with --access-file, require region:read for all cloud regions to read /metrics, which names them")
	flags.StringVar(&c.AuditFile, "audit-file", "", "file that every change and denied requests are written to, in addition to the store")
	flags.DurationVar(&c.AuditRetention, "audit-retention", 90*24*time.Hour, "time that the store keeps audit entries")
	flags.StringVar(&c.OTLPEndpoint, "otlp-endpoint", "", "OpenTelemetry collector that traces are sent to over HTTP: host:port or a URL")
	flags.BoolVar(&c.OTLPInsecure, "otlp-insecure", false, "connect to the collector without TLS")
	flags.Float64Var(&c.OTLPSample, "otlp-sample-ratio", 1, "share of requests that are traced, from 0 to 1")
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

// loadConfig reads and validates the configuration. It also gives the command's own flags
// the values that the environment or the file has for them. The error names every invalid
// setting and its source.
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
	set := func(f *pflag.Flag, value string) {
		if err := f.Value.Set(value); err != nil {
			errs = append(errs, fmt.Errorf("%s, from %s: %w", f.Name, settings[f.Name], err))
		}
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Changed && f.Name != "config" && k.Exists(f.Name) {
			set(f, k.String(f.Name))
		}
	})
	bound := pflag.NewFlagSet("", pflag.ContinueOnError)
	cfg.flags(bound)
	bound.VisitAll(func(f *pflag.Flag) {
		value := flags.Lookup(f.Name).Value.String()
		set(f, value)
		cfg.logged = append(cfg.logged, slog.String(f.Name, masked(value)))
	})
	if err := errors.Join(errs...); err != nil {
		return cfg, cli.Usage(fmt.Errorf("cannot use the configuration: %w", err))
	}
	cfg.Keys = nf.Secret(getenv(envPrefix + "KEYS"))
	if err := cfg.validate(); err != nil {
		return cfg, cli.Usage(fmt.Errorf("cannot use the configuration: %w", err))
	}
	return cfg, nil
}

func (c *Config) validate() error {
	var errs []error
	wrong := func(name, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...)))
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		wrong("listen", "must be host:port, got %q", c.Listen)
	}
	if _, err := keyService(c.KMS); err != nil {
		wrong(kmsFlag, "%v", err)
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

// LogValue returns the settings as they were loaded, by the names of their flags, with
// passwords of URLs masked.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(append(c.logged, slog.Bool("keys-from-environment", len(c.Keys) > 0))...)
}
