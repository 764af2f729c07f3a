package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/cmd/k8splugin/cli"
	"github.com/multicloud-k8s/k8splugin/src/keystone"
	"github.com/multicloud-k8s/k8splugin/src/migration"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/peer"
	"github.com/multicloud-k8s/k8splugin/src/tackerimport"
)

func importTackerCommand(p process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "tacker", Short: "Import from OpenStack Tacker", Args: cobra.NoArgs,
		Long: `Import the VIMs and VNF packages of an OpenStack Tacker into the store, through
Tacker's REST API. A VIM becomes a cloud region; the service connects to it. A VNF
package keeps its id, and its content is checked as in an upload.

Tacker does not show the credentials of its VIMs. Give them with --credentials: a
YAML file that maps the name or the id of a VIM to its auth_cred, as a file for
"openstack vim register" has it. A VIM without credentials is reported.

Tacker is only read. Existing VIMs and packages do not change: a repeated import
adds missing ones, and reports those that differ. The exit code is 1 if anything
differs or could not be imported; the report lists it with the reason. VNF
instances are not imported.

The command opens the store itself: stop a service that uses the embedded
database first. With --dry-run nothing is written, and packages are not
downloaded.

The environment contains secrets: OS_TOKEN for admin_token, and OS_PASSWORD for
http_basic and password.`,
		Example: `  k8splugin import tacker --url http://tacker:9890 --credentials vims.yaml --dry-run
  OS_PASSWORD=… k8splugin import tacker --url http://tacker:9890 --credentials vims.yaml --os-auth-type password \
    --os-auth-url https://keystone:5000/v3 --os-username admin --os-project-name admin`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runImportTacker(cmd, p) },
	}
	flags := cmd.Flags()
	storeFlags(flags)
	flags.String("url", "", "URL of Tacker, without /v1.0 and /vnfpkgm")
	flags.String("credentials", "", "YAML file with the auth_cred of VIMs, by their names or ids")
	flags.String("project", "", "project of the packages (default: the default project)")
	flags.String("os-auth-type", "none", "authentication at Tacker: none, admin_token, http_basic or password (Keystone)")
	flags.String("os-auth-url", "", "URL of Keystone, for password")
	flags.String("os-username", "", "user, for http_basic and password")
	flags.String("os-project-name", "", "project of the user, for password")
	flags.String("os-domain-name", "Default", "domain of the user and of the project, for password")
	flags.String("os-cacert", "", "CA certificates that Tacker and Keystone are verified with (default: those of the system)")
	flags.Bool("dry-run", false, "report the import without writing anything")
	flags.StringP("output", "o", "table", "format of the report: table or json")
	return cmd
}

func runImportTacker(cmd *cobra.Command, p process) error {
	o, err := storeOrderOf(cmd, p)
	if err != nil {
		return err
	}
	text := func(name string) string { value, _ := cmd.Flags().GetString(name); return value }
	cfg := tackerimport.Config{Project: text("project"), Dry: o.dry}
	if cfg.From, err = tackerOf(text, p.getenv); err != nil {
		return cli.Usage(err)
	}
	if cfg.Credentials, err = vimCredentials(text("credentials")); err != nil {
		return cli.Usage(err)
	}
	report, err := o.runTacker(cmd.Context(), p, cfg)
	return o.print(p, report, err)
}

// tackerOf returns the API that the flags name.
func tackerOf(text func(string) string, getenv func(string) string) (tackerimport.API, error) {
	if u := serverURL(text("url")); u == nil || u.User != nil || u.RawQuery != "" {
		return tackerimport.API{}, errors.New("--url is required: it must begin with http:// or https://, and contain a host and no user or query")
	}
	server, err := peer.New(peer.Config{Name: "Tacker", Files: peer.Files{CA: text("os-cacert")}})
	if err != nil {
		return tackerimport.API{}, fmt.Errorf("--os-cacert: %w", err)
	}
	client := &http.Client{Transport: server.Transport(), CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // it would carry the credentials to another host
	}}
	out := tackerimport.API{URL: text("url"), Client: client}
	user, password, token := text("os-username"), getenv("OS_PASSWORD"), getenv("OS_TOKEN")
	switch kind := text("os-auth-type"); {
	case kind == "none":
	case kind == "admin_token" && token != "":
		out.Authorize = func(_ context.Context, r *http.Request) error { r.Header.Set("X-Auth-Token", token); return nil }
	case kind == "http_basic" && user != "" && password != "":
		out.Authorize = func(_ context.Context, r *http.Request) error { r.SetBasicAuth(user, password); return nil }
	case kind == "password" && user != "" && password != "" && text("os-project-name") != "":
		tokens, err := keystone.New(keystone.Config{
			URL: text("os-auth-url"), Project: text("os-project-name"), Domain: text("os-domain-name"), Transport: server.Transport(),
			Credentials: func(context.Context) (string, nf.Secret) { return user, nf.Secret(password) },
		})
		if err != nil {
			return out, fmt.Errorf("--os-auth-url: %w", err)
		}
		out.Authorize = func(ctx context.Context, r *http.Request) error {
			token, err := tokens.Token(ctx)
			r.Header.Set("X-Auth-Token", token)
			return err
		}
	case kind == "admin_token" || kind == "http_basic" || kind == "password":
		return out, errors.New("--os-auth-type: admin_token requires OS_TOKEN; http_basic requires --os-username and OS_PASSWORD; password also requires --os-project-name and --os-auth-url")
	default:
		return out, errors.New("--os-auth-type: must be none, admin_token, http_basic or password")
	}
	return out, nil
}

// vimCredentials reads a file with the credentials of VIMs. Its errors do not quote it.
func vimCredentials(file string) (map[string]map[string]any, error) {
	if file == "" {
		return nil, nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--credentials: %w", err)
	}
	var out map[string]map[string]any
	if yaml.UnmarshalStrict(content, &out) != nil {
		return nil, fmt.Errorf("--credentials: %s must be YAML that maps names of VIMs to mappings such as {bearer_token: …, ssl_ca_cert: …}", file)
	}
	return out, nil
}

// runTacker executes the import. The report is nil if it did not start.
func (o importOrder) runTacker(ctx context.Context, p process, cfg tackerimport.Config) (*migration.Report, error) {
	return o.within(ctx, p, func(_ *secureStore, parts *service) (*migration.Report, error) {
		cfg.To = tackerimport.API{URL: "http://localhost", Client: &http.Client{Transport: inProcess{parts.handler}}}
		return tackerimport.Import(ctx, cfg)
	})
}

// inProcess sends requests to a handler in this process.
type inProcess struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper. The body of the response is in memory.
func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	out := &response{header: http.Header{}, status: http.StatusOK}
	in := r.Clone(r.Context())
	in.RequestURI, in.RemoteAddr = r.URL.RequestURI(), "127.0.0.1:0"
	if in.Body == nil {
		in.Body = http.NoBody
	}
	t.handler.ServeHTTP(out, in)
	return &http.Response{
		Status: http.StatusText(out.status), StatusCode: out.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: out.header, Body: io.NopCloser(&out.body), ContentLength: int64(out.body.Len()), Request: r,
	}, nil
}

// response keeps a response.
type response struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (r *response) Header() http.Header { return r.header }

// Write implements http.ResponseWriter.
func (r *response) Write(b []byte) (int, error) { return r.body.Write(b) }

// WriteHeader implements http.ResponseWriter.
func (r *response) WriteHeader(status int) { r.status = status }
