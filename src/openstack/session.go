package openstack

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/gophercloud/gophercloud/v2"
	sdk "github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// session is a login at a cloud.
type session struct {
	subject                 string // the host of the cloud
	transport               http.RoundTripper
	region                  string // of the catalog; empty: any
	provider                *gophercloud.ProviderClient
	compute, network, image *gophercloud.ServiceClient
}

// login gets a token and reads the catalog.
func (c *Clouds) login(ctx context.Context, o nf.OpenStack) (*session, error) {
	s := &session{subject: hostOf(o), region: o.Region}
	if err := c.cfg.Hosts.Check(o.AuthURL); err != nil {
		return nil, nf.E(nf.Forbidden, "use", "cloud "+s.subject, err)
	}
	inner, err := c.cfg.Connect(o)
	if err != nil {
		return nil, err
	}
	s.transport = inner
	provider, err := sdk.NewClient(o.AuthURL)
	if err != nil {
		return nil, nf.E(nf.Invalid, "use", "cloud "+s.subject, errors.New("its address is not a URL"))
	}
	provider.UserAgent.Prepend("k8splugin")
	provider.HTTPClient = http.Client{
		Transport: careful{inner, o.Insecure}, Timeout: c.cfg.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	s.provider = provider
	err = sdk.Authenticate(ctx, provider, gophercloud.AuthOptions{
		IdentityEndpoint: o.AuthURL, Username: o.Username, Password: string(o.Password), DomainName: cmp.Or(o.UserDomain, nf.DefaultDomain),
		Scope: &gophercloud.AuthScope{ProjectName: o.Project, DomainName: cmp.Or(o.ProjectDomain, nf.DefaultDomain)}, AllowReauth: true,
	})
	if err == nil {
		err = s.services(provider)
	}
	if err != nil {
		s.close()
		return nil, s.wrong(ctx, "log in at", err)
	}
	return s, nil
}

// hostOf returns the host of a cloud. The rest of its URL may have a password.
func hostOf(o nf.OpenStack) string {
	if u, err := url.Parse(o.AuthURL); err == nil && u.Host != "" {
		return u.Host
	}
	return "with an invalid URL"
}

// services finds the services in the catalog.
func (s *session) services(provider *gophercloud.ProviderClient) error {
	result, ok := provider.GetAuthResult().(tokens.CreateResult)
	if !ok {
		return errors.New("the token is not one of Keystone v3")
	}
	catalog, err := result.ExtractServiceCatalog()
	if err != nil {
		return err
	}
	// gophercloud's locator requests the versions of a service without a context.
	provider.EndpointLocator = func(of gophercloud.EndpointOpts) (string, error) { return endpoint(catalog, of) }
	for _, service := range []struct {
		to   **gophercloud.ServiceClient
		make func(*gophercloud.ProviderClient, gophercloud.EndpointOpts) (*gophercloud.ServiceClient, error)
	}{{&s.compute, sdk.NewComputeV2}, {&s.network, sdk.NewNetworkV2}, {&s.image, sdk.NewImageV2}} {
		if *service.to, err = service.make(provider, s.inRegion()); err != nil {
			return err
		}
	}
	return nil
}

// inRegion returns the options to look up a service of the cloud.
func (s *session) inRegion() gophercloud.EndpointOpts {
	return gophercloud.EndpointOpts{Region: s.region}
}

// endpoint returns the first public endpoint of a service, in a region if one is given.
func endpoint(catalog *tokens.ServiceCatalog, of gophercloud.EndpointOpts) (string, error) {
	for _, entry := range catalog.Entries {
		if !slices.Contains(of.Types(), entry.Type) {
			continue
		}
		for _, e := range entry.Endpoints {
			if e.Interface == string(gophercloud.AvailabilityPublic) && (of.Region == "" || e.Region == of.Region || e.RegionID == of.Region) {
				return gophercloud.NormalizeURL(e.URL), nil
			}
		}
	}
	return "", &noService{of.Type, of.Region}
}

// noService is the error of a service that the catalog lacks.
type noService struct{ kind, region string }

func (e *noService) Error() string {
	text := "its catalog has no public endpoint of the type " + e.kind
	if e.region != "" {
		text += " in region " + strconv.Quote(e.region)
	}
	return text
}

// close closes the connections.
func (s *session) close() {
	if t, ok := s.transport.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}

// security returns how the certificate of a cloud is verified.
func security(o nf.OpenStack) (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: o.Insecure} //nolint:gosec // G402: the region says so
	if len(o.CA) > 0 {
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(o.CA) {
			return nil, nf.E(nf.Invalid, "use", "cloud "+hostOf(o), errors.New("its CA holds no PEM certificate"))
		}
	}
	return out, nil
}

// maxResponse is the length in bytes at which a response is cut off.
const maxResponse = 32 << 20

// careful refuses to send a request without TLS, and limits responses.
type careful struct {
	inner http.RoundTripper
	plain bool // requests without TLS are allowed
}

var errPlain = errors.New("it would be sent without TLS; use https, or set cert_verify to false")

// RoundTrip implements http.RoundTripper.
func (c careful) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !c.plain {
		if r.Body != nil {
			_ = r.Body.Close() // as http.RoundTripper demands
		}
		return nil, errPlain
	}
	resp, err := c.inner.RoundTrip(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxResponse)
	}
	return resp, err
}
