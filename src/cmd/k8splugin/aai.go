package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/aaisource"
	"github.com/multicloud-k8s/k8splugin/src/peer"
)

// aaiSettings are the settings of the connection to A&AI. Without a URL, nothing is
// sent or stored.
type aaiSettings struct {
	URL     string
	Version int
	AppID   string
	Files   peer.Files
	Rate    float64

	Write    bool
	Objects  string
	Service  string // URL of this service in links
	Interval time.Duration
	Sweep    time.Duration
	Parallel int
	Tenants  bool // missing ones are created
}

// flags defines the flags of the settings.
func (s *aaiSettings) flags(flags *pflag.FlagSet) {
	flags.StringVar(&s.URL, "aai-url", "", "URL of ONAP's inventory A&AI, without /aai; if empty, A&AI is not used")
	flags.IntVar(&s.Version, "aai-version", 30, "version of A&AI's API, at least 24")
	flags.StringVar(&s.AppID, "aai-app-id", "k8splugin", "name of this service in A&AI; services that use the same A&AI need different names")
	flags.StringVar(&s.Files.User, "aai-user-file", "", "file with the user for A&AI; like all files for A&AI, reloaded when it changes")
	flags.StringVar(&s.Files.Password, "aai-password-file", "", "file with the password for A&AI")
	flags.StringVar(&s.Files.CA, "aai-ca-file", "", "CA certificates that A&AI's certificate is verified with (default: those of the system)")
	flags.StringVar(&s.Files.Certificate, "aai-cert-file", "", "PEM file with the client certificate for A&AI and its chain")
	flags.StringVar(&s.Files.Key, "aai-key-file", "", "private key of the client certificate for A&AI")
	flags.Float64Var(&s.Rate, "aai-rate", 5, "maximum requests per second that are sent to A&AI")
	flags.BoolVar(&s.Write, "aai-write", false, "write the objects of VNF instances, networks and flavors to A&AI, as aai-objects says")
	flags.StringVar(&s.Objects, "aai-objects", "k8s-resource,network", "comma-separated objects that are written to A&AI: k8s-resource (objects and pods), vserver (pods with their addresses), network, flavor (classes of the nodes of cloud regions, with their features)")
	flags.StringVar(&s.Service, "aai-service-url", "", "URL of this service in the links of objects in A&AI; required with --aai-write")
	flags.DurationVar(&s.Interval, "aai-interval", 30*time.Second, "interval at which changes of pods, and of operations of other replicas, are looked for")
	flags.DurationVar(&s.Sweep, "aai-sweep", time.Hour, "interval at which everything in A&AI is compared")
	flags.BoolVar(&s.Tenants, "aai-create-tenant", false, "create a tenant in A&AI if one is needed and missing; the service does not delete it")
	flags.IntVar(&s.Parallel, "aai-parallel", 2, "maximum number of VNF instances, networks and cloud regions that are written to A&AI at once")
}

func (s *aaiSettings) validate(wrong func(name, format string, args ...any)) {
	if s.URL == "" {
		if s.Write {
			wrong("aai-write", "requires aai-url")
		}
		return
	}
	switch u := serverURL(s.URL); {
	case u == nil || u.User != nil:
		wrong("aai-url", "must begin with http:// or https://, and contain a host and no user")
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "":
		wrong("aai-url", "must not have a path, because the service appends /aai/v%d", s.Version)
	}
	if s.Version < aai.OldestVersion {
		wrong("aai-version", "must be at least %d, which has k8s-resources, got %d", aai.OldestVersion, s.Version)
	}
	if s.AppID == "" || strings.ContainsAny(s.AppID, " \t\r\n") {
		wrong("aai-app-id", "must not be empty or contain blanks")
	}
	if (s.Files.Certificate == "") != (s.Files.Key == "") {
		wrong("aai-cert-file, aai-key-file", "must be set together")
	}
	if s.Rate <= 0 {
		wrong("aai-rate", "must be above 0, got %g", s.Rate)
	}
	if s.Write {
		s.validateWrite(wrong)
	} else if s.Tenants {
		wrong("aai-create-tenant", "requires aai-write, because a tenant is created with the first object in it")
	}
}

func (s *aaiSettings) validateWrite(wrong func(name, format string, args ...any)) {
	if _, err := s.written(); err != nil {
		wrong("aai-objects", "%v", err)
	}
	if serverURL(s.Service) == nil {
		wrong("aai-service-url", "must begin with http:// or https://, and contain a host; links in A&AI need it")
	}
	if s.Interval < time.Second {
		wrong("aai-interval", "must be at least 1s, got %s", s.Interval)
	}
	if s.Sweep < time.Minute {
		wrong("aai-sweep", "must be at least 1m, got %s", s.Sweep)
	}
	if s.Parallel < 1 || s.Parallel > 64 {
		wrong("aai-parallel", "must be between 1 and 64, got %d", s.Parallel)
	}
}

// serverURL returns the URL of a server, or nil if a text is none.
func serverURL(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil
	}
	return u
}

// written returns the objects that are written.
func (s *aaiSettings) written() (out aaisource.Written, err error) {
	for _, name := range listed(s.Objects) {
		switch name {
		case "k8s-resource":
			out.Resources = true
		case "vserver":
			out.Servers = true
		case "network":
			out.Networks = true
		case "flavor":
			out.Flavors = true
		default:
			return out, fmt.Errorf("must name k8s-resource, vserver, network or flavor, got %q", name)
		}
	}
	if out == (aaisource.Written{}) {
		return out, errors.New("must name at least one of k8s-resource, vserver, network and flavor")
	}
	return out, nil
}

// writer returns what writes to A&AI.
func (s aaiSettings) writer(client *aai.Client) *aai.Writer {
	w := aai.NewWriter(client, s.AppID, 0)
	if s.Tenants {
		return w.WithTenants()
	}
	return w
}

// client returns the client of A&AI, or nil if A&AI is not used. It sends nothing yet. The
// mesh, which may be nil, applies if no files are set.
func (s aaiSettings) client(log *slog.Logger, mesh *tls.Config) (*aai.Client, error) {
	if s.URL == "" {
		return nil, nil
	}
	server, err := peer.New(peer.Config{Name: "A&AI", Files: s.Files, TLS: mesh, Logger: log})
	if err != nil {
		return nil, err
	}
	return aai.NewClient(aai.ClientConfig{
		URL: s.URL, Version: s.Version, AppID: s.AppID, Credentials: server.Credentials, Transport: server.Transport(), NewID: newID, Rate: s.Rate,
	})
}
