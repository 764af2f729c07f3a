package tackerimport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	maxDocument = 16 << 20 // bytes of a document
	maxPages    = 10000
	maxMessage  = 500 // bytes of a message of a server

	vims     = "/v1.0/vims"
	packages = "/vnfpkgm/v1/vnf_packages"
)

// API is the REST API of a Tacker, or of a service that serves the same. URL and Client are
// required.
type API struct {
	URL       string // without /v1.0 and /vnfpkgm
	Client    *http.Client
	Authorize func(ctx context.Context, r *http.Request) error // adds credentials; nil: requests have none
}

// vim is a VIM as responses and requests have it.
type vim struct {
	ID          string         `json:"id,omitempty"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Type        string         `json:"type"`
	AuthURL     string         `json:"auth_url"`
	Credentials map[string]any `json:"auth_cred,omitempty"`
	Project     map[string]any `json:"vim_project,omitempty"`
	Default     bool           `json:"is_default"`
	Extra       map[string]any `json:"extra,omitempty"`
}

// vnfPackage is a VNF package as responses have it.
type vnfPackage struct {
	ID          string         `json:"id"`
	VNFD        string         `json:"vnfdId"`
	Product     string         `json:"vnfProductName"`
	Onboarding  string         `json:"onboardingState"`
	Operational string         `json:"operationalState"`
	UserData    map[string]any `json:"userDefinedData"`
}

// onboarded reports whether the package has content.
func (p vnfPackage) onboarded() bool { return p.Onboarding == "ONBOARDED" }

// vims returns all VIMs.
func (a API) vims(ctx context.Context) ([]vim, error) {
	var out struct {
		VIMs []vim `json:"vims"`
	}
	_, err := a.document(ctx, http.MethodGet, vims, nil, &out)
	return out.VIMs, err
}

// register creates a VIM.
func (a API) register(ctx context.Context, v vim) error {
	_, err := a.document(ctx, http.MethodPost, vims, map[string]any{"vim": v}, nil)
	return err
}

// packages returns all VNF packages.
func (a API) packages(ctx context.Context) ([]vnfPackage, error) {
	var out []vnfPackage
	query := "?all_fields"
	for range maxPages {
		var raw json.RawMessage
		header, err := a.document(ctx, http.MethodGet, packages+query, nil, &raw)
		if err != nil {
			return nil, err
		}
		page, err := pageOf(raw)
		if err != nil {
			return nil, err
		}
		out = append(out, page...)
		next, more := nextPage(header.Get("Link"))
		if !more {
			return out, nil
		}
		query = next
	}
	return nil, fmt.Errorf("the list of VNF packages has more than %d pages", maxPages)
}

// pageOf reads a page of packages: a list, or a mapping with one.
func pageOf(raw json.RawMessage) ([]vnfPackage, error) {
	var list []vnfPackage
	if json.Unmarshal(raw, &list) == nil {
		return list, nil
	}
	var mapping struct {
		Packages *[]vnfPackage `json:"vnf_packages"`
	}
	if json.Unmarshal(raw, &mapping) != nil || mapping.Packages == nil {
		return nil, errors.New("the response is no list of VNF packages")
	}
	return *mapping.Packages, nil
}

// nextPage returns the query of the next page, which a Link header names.
func nextPage(link string) (query string, more bool) {
	address, parameters, found := strings.Cut(strings.TrimPrefix(strings.TrimSpace(link), "<"), ">")
	u, err := url.Parse(address)
	if !found || err != nil || u.RawQuery == "" || !strings.Contains(strings.ReplaceAll(parameters, `"`, ""), "rel=next") {
		return "", false
	}
	return "?" + u.RawQuery, true
}

// pkg returns one VNF package, or nf.NotFound.
func (a API) pkg(ctx context.Context, id string) (vnfPackage, error) {
	var out vnfPackage
	_, err := a.document(ctx, http.MethodGet, packages+"/"+url.PathEscape(id), nil, &out)
	return out, err
}

// change changes the state and the user data of a package.
func (a API) change(ctx context.Context, id string, to map[string]any) error {
	_, err := a.document(ctx, http.MethodPatch, packages+"/"+url.PathEscape(id), to, nil)
	return err
}

// content passes the content of a package to into.
func (a API) content(ctx context.Context, id string, into func(content io.Reader) error) error {
	response, err := a.send(ctx, http.MethodGet, packages+"/"+url.PathEscape(id)+"/package_content", "", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return into(response.Body)
}

// upload gives a package its content.
func (a API) upload(ctx context.Context, id string, content io.Reader) error {
	response, err := a.send(ctx, http.MethodPut, packages+"/"+url.PathEscape(id)+"/package_content", "application/zip", content)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// document sends a document and reads one; both may be nil.
func (a API) document(ctx context.Context, method, path string, body, into any) (http.Header, error) {
	var content io.Reader
	media := ""
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("cannot write a request: %w", err)
		}
		content, media = bytes.NewReader(encoded), "application/json"
	}
	response, err := a.send(ctx, method, path, media, content)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if into == nil {
		return response.Header, nil
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the response to %s %s: %w", method, path, err)
	case len(raw) > maxDocument:
		return nil, fmt.Errorf("the response to %s %s is longer than %d bytes", method, path, maxDocument)
	case json.Unmarshal(raw, into) != nil: // its error may quote the response
		return nil, fmt.Errorf("the response to %s %s is not the expected JSON", method, path)
	}
	return response.Header, nil
}

// send sends a request. The caller closes the body of the response, which is successful.
func (a API) send(ctx context.Context, method, path, media string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(a.URL, "/")+path, body)
	if err != nil {
		return nil, fmt.Errorf("cannot create a request: %w", err)
	}
	if media != "" {
		r.Header.Set("Content-Type", media)
	}
	if a.Authorize != nil {
		if err := a.Authorize(ctx, r); err != nil {
			return nil, fmt.Errorf("cannot authenticate at Tacker: %w", err)
		}
	}
	response, err := a.Client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("cannot send %s %s: %w", method, path, err)
	}
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	defer response.Body.Close()
	raw, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10)) // what was read may be a message
	kind := nf.Failed
	if response.StatusCode == http.StatusNotFound {
		kind = nf.NotFound
	}
	return nil, nf.E(kind, strings.ToLower(method), path, fmt.Errorf("status %d%s", response.StatusCode, messageOf(raw)))
}

// messageOf returns the message of an error's document, in the forms that Tacker has.
func messageOf(raw []byte) string {
	var document struct {
		Detail string `json:"detail"`
		Tacker struct {
			Message string `json:"message"`
		} `json:"TackerError"`
	}
	if json.Unmarshal(raw, &document) != nil {
		return ""
	}
	message := document.Detail
	if message == "" {
		message = document.Tacker.Message
	}
	if message == "" {
		return ""
	}
	return ": " + nf.Clip(message, maxMessage)
}
