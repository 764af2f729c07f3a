package main

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/multicloud-k8s/k8splugin/src/kafka"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/peer"
)

// The values of sdcSettings.Mode.
const (
	sdcOff          = "off"
	sdcOnDemand     = "on-demand"
	sdcDistribution = "distribution"
)

// sdcSettings are the settings of the connection to SDC and its Kafka. If the mode is off
// or without a URL, nothing is sent or stored.
type sdcSettings struct {
	URL         string
	Mode        string
	Consumer    string
	Group       string
	Environment string
	Files       peer.Files
	Poll        time.Duration
	Kafka       kafkaSettings
}

// kafkaSettings are the settings of the connection to Kafka.
type kafkaSettings struct {
	Brokers      string
	Security     string
	UserFile     string
	PasswordFile string
	JAASFile     string
	CAFile       string
}

// flags defines the flags of the settings.
func (s *sdcSettings) flags(flags *pflag.FlagSet) {
	flags.StringVar(&s.URL, "sdc-url", "", "URL of ONAP's design catalog SDC, without /sdc")
	flags.StringVar(&s.Mode, "sdc-mode", sdcOff, "use of SDC: off, on-demand (fetch definitions that a request names) or distribution (also follow notifications)")
	flags.StringVar(&s.Consumer, "sdc-consumer", "multicloud-k8s", "id of this consumer in SDC")
	flags.StringVar(&s.Group, "sdc-group", "multicloud", "group of Kafka that receives SDC's notifications")
	flags.StringVar(&s.Environment, "sdc-environment", "AUTO", "environment in the names of SDC's topics")
	flags.DurationVar(&s.Poll, "sdc-poll", time.Hour, "interval at which the services that SDC has distributed are compared with those that were received, if sdc-mode is distribution")
	flags.StringVar(&s.Files.User, "sdc-user-file", "", "file with the user for SDC; like all files for SDC and Kafka, reloaded when it changes")
	flags.StringVar(&s.Files.Password, "sdc-password-file", "", "file with the password for SDC")
	flags.StringVar(&s.Files.CA, "sdc-ca-file", "", "CA certificates that SDC's certificate is verified with (default: those of the system)")
	flags.StringVar(&s.Kafka.Brokers, "kafka-brokers", "", "comma-separated host:port of Kafka's brokers (default: those that SDC names; required for events of A&AI)")
	flags.StringVar(&s.Kafka.Security, "kafka-security", kafka.SASLPlaintext, "security of Kafka: "+strings.Join(kafka.Securities(), ", ")+"; SASL is SCRAM-SHA-512")
	flags.StringVar(&s.Kafka.UserFile, "kafka-user-file", "", "file with the user for Kafka")
	flags.StringVar(&s.Kafka.PasswordFile, "kafka-password-file", "", "file with the password for Kafka")
	flags.StringVar(&s.Kafka.JAASFile, "kafka-jaas-file", "", "file with the user and the password for Kafka as sasl.jaas.config, instead of the two files")
	flags.StringVar(&s.Kafka.CAFile, "kafka-ca-file", "", "CA certificates that the brokers' certificates are verified with (default: those of the system)")
}

// used reports whether SDC is used at all.
func (s *sdcSettings) used() bool { return s.Mode == sdcOnDemand || s.Mode == sdcDistribution }

func (s *sdcSettings) validate(wrong func(name, format string, args ...any)) {
	if !slices.Contains([]string{sdcOff, sdcOnDemand, sdcDistribution}, s.Mode) {
		wrong("sdc-mode", "must be off, on-demand or distribution, got %q", s.Mode)
	}
	if !s.used() {
		return
	}
	if u := serverURL(s.URL); u == nil || u.User != nil || u.RawQuery != "" {
		wrong("sdc-url", "must begin with http:// or https://, and contain a host and no user or query")
	}
	if s.Consumer == "" || strings.ContainsAny(s.Consumer, " \t\r\n") {
		wrong("sdc-consumer", "must not be empty or contain blanks")
	}
	if s.Mode != sdcDistribution {
		return
	}
	if s.Group == "" || s.Environment == "" {
		wrong("sdc-group, sdc-environment", "must not be empty")
	}
	if s.Poll < time.Minute {
		wrong("sdc-poll", "must be at least 1m, got %s", s.Poll)
	}
	s.Kafka.validate(wrong)
}

func (k *kafkaSettings) validate(wrong func(name, format string, args ...any)) {
	for _, broker := range listed(k.Brokers) {
		if _, _, err := net.SplitHostPort(broker); err != nil {
			wrong("kafka-brokers", "must be host:port, got %q", broker)
		}
	}
	if !slices.Contains(kafka.Securities(), k.Security) {
		wrong("kafka-security", "must be one of %s, got %q", strings.Join(kafka.Securities(), ", "), k.Security)
	}
	two := k.UserFile != "" && k.PasswordFile != ""
	either := k.UserFile != "" || k.PasswordFile != ""
	if strings.HasPrefix(k.Security, "SASL") && (k.JAASFile == "" && !two || k.JAASFile != "" && either) {
		wrong("kafka-jaas-file, kafka-user-file, kafka-password-file", "either the first or both others must be set")
	}
}

// access reads Kafka's files.
func (k kafkaSettings) access(log *slog.Logger) (*peer.Peer, error) {
	return peer.New(peer.Config{
		Name: "Kafka", Logger: log, ParseLogin: kafka.ParseJAAS,
		Files: peer.Files{User: k.UserFile, Password: k.PasswordFile, Login: k.JAASFile, CA: k.CAFile},
	})
}

// config returns the configuration of a client that has a name in its group, or "".
func (k kafkaSettings) config(access *peer.Peer, member string) kafka.Config {
	return kafka.Config{
		Member:   member,
		Security: k.Security, Roots: access.Roots,
		Credentials: func(ctx context.Context) (string, nf.Secret, error) {
			user, password := access.Credentials(ctx)
			return user, password, nil
		},
	}
}
