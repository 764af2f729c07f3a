package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// contexts is the configuration file of the command line: servers by name.
type contexts struct {
	path string

	Current  string         `json:"current_context,omitempty"`
	Contexts []contextEntry `json:"contexts"`
}

// contextEntry is a context. It has no secrets: they are in files of their own. Names
// of files are relative to the folder of the configuration file.
type contextEntry struct {
	Name                 string     `json:"name"`
	Server               string     `json:"server"`
	CertificateAuthority string     `json:"certificate_authority,omitempty"`
	InsecureSkipVerify   bool       `json:"insecure_skip_verify,omitempty"`
	ClientCertificate    string     `json:"client_certificate,omitempty"`
	ClientKey            string     `json:"client_key,omitempty"`
	TokenFile            string     `json:"token_file,omitempty"`
	User                 string     `json:"user,omitempty"`
	PasswordFile         string     `json:"password_file,omitempty"`
	OIDC                 *loginOIDC `json:"oidc,omitempty"`
}

// contextsPath returns the name of the configuration file.
func (c *connection) contextsPath() (string, error) {
	if path := c.getenv("K8SPLUGIN_CONFIG"); path != "" {
		return path, nil
	}
	folder := c.getenv("XDG_CONFIG_HOME")
	if home := c.getenv("HOME"); folder == "" && home != "" {
		folder = filepath.Join(home, ".config")
	}
	if folder == "" {
		return "", errors.New("cannot find the configuration file: set K8SPLUGIN_CONFIG or HOME")
	}
	return filepath.Join(folder, "k8splugin", "config.yaml"), nil
}

// readContexts reads the configuration file. Without one there are no contexts.
func (c *connection) readContexts() (*contexts, error) {
	path, err := c.contextsPath()
	if err != nil {
		return &contexts{}, nil //nolint:nilerr // commands do not need the file
	}
	out := &contexts{path: path}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err == nil {
		err = yaml.UnmarshalStrict(text, out)
	}
	if err == nil {
		err = out.check()
	}
	if err != nil {
		return nil, usagef("cannot use the configuration file %s: %w", path, err)
	}
	return out, nil
}

// check returns an error for the first field that is wrong.
func (f *contexts) check() error {
	for i, one := range f.Contexts {
		field := fmt.Sprintf("contexts[%d]", i)
		if err := checkContextName(one.Name); err != nil {
			return fmt.Errorf("%s.name: %w", field, err)
		}
		if slices.IndexFunc(f.Contexts, func(other contextEntry) bool { return other.Name == one.Name }) < i {
			return fmt.Errorf("%s.name: there is another context %q", field, one.Name)
		}
		if _, err := parseServer(one.Server); err != nil {
			return fmt.Errorf("%s.server: %w", field, err)
		}
		if one.OIDC != nil && (one.OIDC.Issuer == "" || one.OIDC.ClientID == "") {
			return fmt.Errorf("%s.oidc: needs issuer and client_id", field)
		}
	}
	return nil
}

// checkContextName allows names that can be names of files.
func checkContextName(name string) error {
	if name == "" || strings.HasPrefix(name, ".") || strings.ContainsAny(name, "/\\:") || len(name) > 100 {
		return fmt.Errorf("%q is not a valid name: it must have 1 to 100 characters, no slash, backslash or colon, and not begin with a dot", name)
	}
	return nil
}

// find returns the context with the name.
func (f *contexts) find(name string) (*contextEntry, error) {
	at := slices.IndexFunc(f.Contexts, func(one contextEntry) bool { return one.Name == name })
	if at < 0 {
		return nil, &exitError{exitNotFound, fmt.Errorf("no context is named %q in %s; to list them: k8splugin context list", name, f.path)}
	}
	return &f.Contexts[at], nil
}

// endpoint returns the endpoint that a context describes.
func (f *contexts) endpoint(one contextEntry) endpoint {
	e := endpoint{
		server: one.Server, user: one.User, insecure: one.InsecureSkipVerify,
		passwordFile: f.beside(one.PasswordFile), tokenFile: f.beside(one.TokenFile),
		caFile: f.beside(one.CertificateAuthority), certFile: f.beside(one.ClientCertificate), keyFile: f.beside(one.ClientKey),
	}
	if one.OIDC != nil {
		e.login = &login{loginOIDC: *one.OIDC, context: one.Name, path: f.tokenPath(one.Name)}
	}
	return e
}

// beside returns the path of a file that is named relative to the configuration file.
func (f *contexts) beside(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(f.path), name)
}

// tokenPath returns the name of the file with a context's tokens.
func (f *contexts) tokenPath(context string) string {
	return filepath.Join(filepath.Dir(f.path), "tokens", context+".json")
}

// write writes the configuration file.
func (f *contexts) write() error {
	text, err := yaml.Marshal(f)
	if err == nil {
		err = writePrivate(f.path, text)
	}
	if err != nil {
		return fmt.Errorf("cannot write the configuration file: %w", err)
	}
	return nil
}

// writePrivate replaces a file that only its owner may read.
func writePrivate(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // with mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

func contextCommand(s *session) *cobra.Command {
	return s.noun("context", "Manage the servers that the command line knows", contextList(s), contextUse(s), contextSet(s), contextDelete(s))
}

// edit adapts a function that changes the configuration file to cobra.
func (s *session) edit(change func(cmd *cobra.Command, f *contexts, name string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if _, err := s.connection.contextsPath(); err != nil {
			return err
		}
		f, err := s.connection.readContexts()
		if err != nil {
			return err
		}
		if err := change(cmd, f, args[0]); err != nil {
			return err
		}
		return f.write()
	}
}

func contextList(s *session) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls", "get"},
		Short:   "List the contexts",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			f, err := s.connection.readContexts()
			if err != nil {
				return err
			}
			current := cmp.Or(s.connection.either(s.connection.context, "K8SPLUGIN_CONTEXT"), f.Current)
			return printAll(s.out, pageOf("contexts", f.Contexts), contextColumns(current))
		},
	}
}

func contextColumns(current string) func(clock) []column[contextEntry] {
	return func(clock) []column[contextEntry] {
		return []column[contextEntry]{
			{"NAME", false, func(one contextEntry) string { return one.Name }},
			{"CURRENT", false, func(one contextEntry) string {
				if one.Name == current {
					return "yes"
				}
				return ""
			}},
			{"SERVER", false, func(one contextEntry) string { return one.Server }},
			{"CREDENTIALS", false, contextEntry.credentials},
		}
	}
}

// credentials says how a context authenticates.
func (one contextEntry) credentials() string {
	var out []string
	for what, given := range map[string]bool{
		"client certificate": one.ClientCertificate != "", "token": one.TokenFile != "", "user " + one.User: one.User != "", "login": one.OIDC != nil,
	} {
		if given {
			out = append(out, what)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func contextUse(s *session) *cobra.Command {
	return &cobra.Command{
		Use:               "use NAME",
		Aliases:           []string{"use-context"},
		Short:             "Make a context the current one",
		Args:              oneName,
		ValidArgsFunction: s.contextNames,
		RunE: s.edit(func(_ *cobra.Command, f *contexts, name string) error {
			if _, err := f.find(name); err != nil {
				return err
			}
			f.Current = name
			return nil
		}),
	}
}

func contextDelete(s *session) *cobra.Command {
	return &cobra.Command{
		Use:               "delete NAME",
		Aliases:           []string{"remove", "rm"},
		Short:             "Delete a context and its tokens",
		Args:              oneName,
		ValidArgsFunction: s.contextNames,
		RunE: s.edit(func(_ *cobra.Command, f *contexts, name string) error {
			if _, err := f.find(name); err != nil {
				return err
			}
			f.Contexts = slices.DeleteFunc(f.Contexts, func(one contextEntry) bool { return one.Name == name })
			if f.Current == name {
				f.Current = ""
			}
			if err := os.Remove(f.tokenPath(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("cannot delete the tokens of context %q: %w", name, err)
			}
			return nil
		}),
	}
}

func contextSet(s *session) *cobra.Command {
	var oidc loginOIDC
	cmd := &cobra.Command{
		Use:   "set NAME --server URL",
		Short: "Create or replace a context",
		Long: `Create or replace a context, with the server and the credentials of the flags. The
file contains no secrets: credentials are in the files that the flags name. With
--oidc-issuer and --oidc-client-id, "k8splugin login" gets a token.

The first context becomes the current one.`,
		Example: "  k8splugin context set lab --server https://lab.example.com:9015 --certificate-authority ca.pem --token-file token\n" +
			"  k8splugin context set prod --server https://nfv.example.com --oidc-issuer https://sso.example.com --oidc-client-id k8splugin",
		Args:              oneName,
		ValidArgsFunction: s.contextNames,
	}
	cmd.Flags().StringVar(&oidc.Issuer, "oidc-issuer", "", "URL of an OpenID Connect provider, for login")
	cmd.Flags().StringVar(&oidc.ClientID, "oidc-client-id", "", "client of the provider; it must allow the device flow")
	cmd.Flags().StringSliceVar(&oidc.Scopes, "oidc-scope", nil, "additional scope to request, such as groups; can be repeated")
	cmd.RunE = s.edit(func(cmd *cobra.Command, f *contexts, name string) error {
		e := s.connection.flags
		if len(s.connection.bare) > 0 || e.server == "" {
			return misused(cmd, errors.New("--server is required, and secrets must be in files"))
		}
		one := contextEntry{Name: name, Server: e.server, User: e.user, InsecureSkipVerify: e.insecure}
		if oidc.Issuer != "" || oidc.ClientID != "" {
			one.OIDC = &oidc
		}
		for to, path := range map[*string]string{
			&one.CertificateAuthority: e.caFile, &one.ClientCertificate: e.certFile, &one.ClientKey: e.keyFile,
			&one.TokenFile: e.tokenFile, &one.PasswordFile: e.passwordFile,
		} {
			if path == "" {
				continue
			}
			whole, err := filepath.Abs(path)
			if err != nil || path == "-" {
				return usagef("cannot use %s: a context needs a file", strconv.Quote(path))
			}
			*to = whole
		}
		if f.Current == "" {
			f.Current = name
		}
		f.Contexts = append(slices.DeleteFunc(f.Contexts, func(other contextEntry) bool { return other.Name == name }), one)
		if err := f.check(); err != nil {
			return Usage(err)
		}
		return nil
	})
	return cmd
}

// contextNames completes names of contexts.
func (s *session) contextNames(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	f, err := s.connection.readContexts()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	for _, one := range f.Contexts {
		names = append(names, cobra.CompletionWithDesc(one.Name, one.Server))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
