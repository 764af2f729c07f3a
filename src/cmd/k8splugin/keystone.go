package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/keystone"
	"github.com/multicloud-k8s/k8splugin/src/peer"
)

// keystoneSettings are the settings of the connection to OpenStack's Keystone. Without a
// URL, Keystone is not used.
type keystoneSettings struct {
	URL     string
	Files   peer.Files
	Project string
	Domain  string
	Names   string
}

// flags defines the flags of the settings.
func (s *keystoneSettings) flags(flags *pflag.FlagSet) {
	flags.StringVar(&s.URL, "keystone-url", "", "URL of OpenStack's Keystone, such as https://keystone.example.org:5000/v3; it validates the tokens of X-Auth-Token; requires access-file")
	flags.StringVar(&s.Files.User, "keystone-user-file", "", "file with the user that validates tokens; like all files for Keystone, reloaded when it changes")
	flags.StringVar(&s.Files.Password, "keystone-password-file", "", "file with the password of the user")
	flags.StringVar(&s.Files.CA, "keystone-ca-file", "", "CA certificates that Keystone's certificate is verified with (default: those of the system)")
	flags.StringVar(&s.Project, "keystone-project", "service", "project in which the user may validate tokens")
	flags.StringVar(&s.Domain, "keystone-domain", "Default", "name of the domain of the user and of its project")
	flags.StringVar(&s.Names, "keystone-names-domain", "Default", "name of the domain whose projects and users have their names in this service; those of other domains have their ids")
}

func (s *keystoneSettings) validate(accessFile string, wrong func(name, format string, args ...any)) {
	if s.URL == "" {
		return
	}
	if u := serverURL(s.URL); u == nil || u.User != nil || u.RawQuery != "" {
		wrong("keystone-url", "must begin with http:// or https://, and contain a host and no user or query")
	}
	if s.Files.User == "" || s.Files.Password == "" {
		wrong("keystone-user-file, keystone-password-file", "are required with keystone-url")
	}
	if accessFile == "" {
		wrong("keystone-url", "requires access-file, which grants permissions to projects and roles")
	}
}

// keystone returns the client that validates tokens; nil: Keystone is not used.
func (c Config) keystone(log *slog.Logger) (access.Keystone, error) {
	s := c.Keystone
	if s.URL == "" {
		return nil, nil
	}
	server, err := peer.New(peer.Config{Name: "Keystone", Files: s.Files, Logger: log})
	if err != nil {
		return nil, fmt.Errorf("cannot use Keystone: %w", err)
	}
	client, err := keystone.New(keystone.Config{
		URL: s.URL, Credentials: server.Credentials, Transport: server.Transport(), Project: s.Project, Domain: s.Domain, Names: s.Names, Logger: log,
	})
	if err != nil {
		return nil, err // not a nil *Client, which would be a non-nil Keystone
	}
	return client, nil
}
