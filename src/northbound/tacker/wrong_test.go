package tacker_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/tacker"
)

// TestWrongRequests sends wrong requests, and compares the whole answers.
func TestWrongRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.vim("a VIM", "POST", all, body("there", "is_default=true"))
	w.vim("a renamed VIM", "POST", all, body("other"))
	w.vim("an OpenStack VIM", "POST", all, body("os", `type="openstack"`, `auth_cred={"username": "u", "password": "s3cret"}`))
	there, renamed, cloud := all+"/"+nf.Region{ID: "there"}.VIMID(), all+"/"+nf.Region{ID: "other"}.VIMID(), all+"/"+nf.Region{ID: "os"}.VIMID()
	w.vim("it is renamed", "PUT", renamed, `{"vim": {"name": "renamed"}}`)
	if err := w.Hold(t.Context(), nf.Holding{Region: "there", Holder: nf.Holder{Subject: nf.Subject{Kind: nf.InstanceSubject, ID: "vnf-1"}}}); err != nil {
		t.Fatal(err)
	}
	const invalid, use = "InvalidInput", `cannot use VIM "v": `
	cred := func(text string) string { return body("v", "auth_cred="+text) }
	cases := map[string]struct {
		reason, method, path, body string
		status                     int
		kind, message              string
	}{
		"NotJSON":     {"the body is no JSON", "POST", all, "vim:", 400, invalid, "cannot read the request: the body is not JSON: line 1, column 1: 'v' cannot be here"},
		"Empty":       {"there is no body", "POST", all, "", 400, invalid, "cannot read the request: the body is empty"},
		"NoVIM":       {"the envelope is missing", "POST", all, `{"name": "x"}`, 400, invalid, "cannot read the request: name: is not a known field; vim: is missing"},
		"NoName":      {"a VIM has a name", "POST", all, body("", `name="(none)"`), 400, invalid, "cannot read the request: vim.name: is missing"},
		"Unknown":     {"an unknown field is not ignored", "POST", all, body("v", `region="x"`), 400, invalid, "cannot read the request: vim.region: is not a known field"},
		"Type":        {"there are two types", "POST", all, body("v", `type="vmware"`), 400, invalid, "cannot read the request: vim.type: must be one of kubernetes, openstack"},
		"NoURL":       {"a VIM has a URL", "POST", all, body("v", `auth_url="(none)"`), 400, invalid, "cannot read the request: vim.auth_url: is missing"},
		"URL":         {"it is a URL", "POST", all, body("v", `auth_url="ftp://x"`), 400, invalid, use + "auth_url: is not an http or https URL"},
		"UserInURL":   {"a URL is shown, and has no secrets", "POST", all, body("v", `auth_url="https://u:s3cret@x"`), 400, invalid, use + "auth_url: holds a user name; use username"},
		"Outbound":    {"the operator's rules hold", "POST", all, body("v", `type="openstack"`, `auth_url="http://169.254.169.254"`, `auth_cred={"username": "u", "password": "s3cret"}`), 400, invalid, use + "auth_url: is not allowed"},
		"NoCred":      {"a VIM has a credential", "POST", all, cred(`{"ssl_ca_cert": "None"}`), 400, invalid, use + "auth_cred: has no credential; give bearer_token, username and password, oidc_token_url, client_certificate and client_key, or kubeconfig"},
		"HalfBasic":   {"a user has a password", "POST", all, cred(`{"username": "u"}`), 400, invalid, use + "auth_cred.username: needs password, and the other way round"},
		"CA":          {"a CA is PEM", "POST", all, cred(`{"bearer_token": "s3cret", "ssl_ca_cert": "s3cret-ca"}`), 400, invalid, use + "auth_cred.ssl_ca_cert: is not PEM"},
		"CABroken":    {"a CA is a certificate", "POST", all, cred(`{"bearer_token": "s3cret", "ssl_ca_cert": "-----BEGIN CERTIFICATE----- QUJD -----END CERTIFICATE-----"}`), 400, invalid, use + "auth_cred.ssl_ca_cert: holds no PEM certificate"},
		"OIDC":        {"OIDC needs a client and TLS", "POST", all, cred(`{"oidc_token_url": "http://x", "username": "u", "password": "s3cret"}`), 400, invalid, use + "auth_cred.oidc_token_url: is not an https URL; auth_cred.client_id: is missing"},
		"Pair":        {"a certificate needs its key", "POST", all, cred(`{"client_certificate": "-----BEGIN CERTIFICATE----- QUJD -----END CERTIFICATE-----"}`), 400, invalid, use + "auth_cred.client_certificate: needs client_key, and the other way round"},
		"Two":         {"which one counts", "POST", all, cred(`{"bearer_token": "s3cret", "client_key": "s3cret"}`), 400, invalid, use + "auth_cred.client_key: is not PEM"},
		"File":        {"a kubeconfig goes alone", "POST", all, cred(`{"bearer_token": "s3cret", "kubeconfig": "s3cret"}`), 400, invalid, use + "auth_cred.kubeconfig: contradicts the other fields of auth_cred; it goes alone"},
		"FileServer":  {"the kubeconfig is that of another server", "POST", all, body("v", `auth_url="https://10.0.0.2"`, `auth_cred={"kubeconfig": "s3cret"}`), 400, invalid, use + "auth_url: is not the server of the kubeconfig's current context"},
		"Mask":        {"a mask is no secret", "POST", all, cred(`{"bearer_token": "***"}`), 400, invalid, use + "auth_cred.bearer_token: is the mask of a hidden value; send the value"},
		"Namespace":   {"the project is a namespace", "POST", all, body("v", `vim_project={"name": "No_Namespace"}`), 400, invalid, use + `vim_project.name: "No_Namespace" is not a namespace name: 1 to 63 lower-case letters, digits or '-', a letter or digit at both ends`},
		"Domain":      {"a namespace has no domain", "POST", all, body("v", `vim_project={"name": "a", "project_domain_name": "b"}`), 400, invalid, use + "vim_project.project_domain_name: is not possible for a VIM of the type kubernetes"},
		"Verify":      {"Kubernetes has the CA instead", "POST", all, cred(`{"bearer_token": "s3cret", "cert_verify": "False"}`), 400, invalid, use + "auth_cred.cert_verify: is not possible for a VIM of the type kubernetes; use ssl_ca_cert"},
		"Helm":        {"Tacker's Helm needs both", "POST", all, body("v", `extra={"use_helm": true}`), 400, invalid, use + "extra.use_helm: needs auth_cred.bearer_token, and auth_cred.ssl_ca_cert with a certificate"},
		"HelmText":    {"it is a boolean", "POST", all, body("v", `extra={"use_helm": "yes"}`), 400, invalid, use + "extra.use_helm: is not true or false"},
		"ExtraLarge":  {"a dictionary has a limit", "POST", all, body("v", `extra={"helm_info": {"a": "`+strings.Repeat("x", 16<<10)+`"}}`), 400, invalid, use + "extra.helm_info: is longer than 16384 bytes"},
		"ExtraMask":   {"a mask is no password", "POST", all, body("v", `extra={"db_password": "***"}`), 400, invalid, use + "extra.db_password: is the mask of a hidden value; send the value"},
		"PutMask":     {"it is not stored in the place of one", "PUT", there, `{"vim": {"extra": {"helm_info": "***"}}}`, 400, invalid, `cannot use VIM "there": extra.helm_info: is the mask of a hidden value; send the value`},
		"Cloud":       {"OpenStack needs a user and a project", "POST", all, body("v", `type="openstack"`, `auth_cred={}`, `vim_project="(none)"`), 400, invalid, use + "auth_cred.username: is missing; auth_cred.password: is missing; vim_project.name: is missing"},
		"CloudCA":     {"its CA is PEM", "POST", all, body("v", `type="openstack"`, `auth_cred={"username": "u", "password": "s3cret", "ssl_ca_cert": "s3cret-ca"}`), 400, invalid, use + "auth_cred.ssl_ca_cert: is not PEM"},
		"CloudCANone": {"and a certificate", "POST", all, body("v", `type="openstack"`, `auth_cred={"username": "u", "password": "s3cret", "ssl_ca_cert": "-----BEGIN CERTIFICATE----- QUJD -----END CERTIFICATE-----"}`), 400, invalid, use + "auth_cred.ssl_ca_cert: holds no PEM certificate"},
		"CloudToken":  {"OpenStack has no token here", "POST", all, body("v", `type="openstack"`, `auth_cred={"username": "u", "password": "s3cret", "bearer_token": "s3cret"}`), 400, invalid, use + "auth_cred.bearer_token: is not possible for a VIM of the type openstack"},
		"Down":        {"the cluster is down", "POST", all, body("v", `auth_url="https://down"`), 502, "VimConnectionException", "cannot register cloud region v: cannot reach API server https://down: it refuses"},
		"Refused":     {"nothing is stored", "POST", all, cred(`{"bearer_token": "s3cret-wrong"}`), 502, "VimUnauthorizedException", "cannot register cloud region v: cannot reach API server https://10.0.0.1:6443: it refuses"},
		"CloudRegion": {"a region has a name", "POST", all, body("v", `type="openstack"`, `auth_cred={"username": "u", "password": "s3cret"}`, `extra={"region": 2}`), 400, invalid, use + "extra.region: is not a text"},
		"FixedRegion": {"and stays", "PUT", cloud, `{"vim": {"extra": {"region": "RegionTwo"}}}`, 400, invalid, `cannot use VIM "os": extra.region: cannot be changed; register another VIM`},
		"CloudDown":   {"the cloud is down", "POST", all, body("v", `type="openstack"`, `auth_url="https://down"`, `auth_cred={"username": "u", "password": "s3cret"}`), 502, "VimConnectionException", "cannot register cloud region v: cannot log in at cloud down: it refuses"},
		"CloudWrong":  {"nothing is stored", "POST", all, body("v", `type="openstack"`, `auth_cred={"username": "u", "password": "s3cret-wrong"}`), 502, "VimUnauthorizedException", "cannot register cloud region v: cannot log in at cloud: it refuses"},
		"CloudChange": {"a VIM keeps the password that works", "PUT", cloud, `{"vim": {"auth_cred": {"password": "s3cret-wrong"}}}`, 502, "VimUnauthorizedException", "cannot update cloud region os: cannot log in at cloud: it refuses"},
		"Again":       {"the name is taken", "POST", all, body("there"), 409, "DuplicateEntity", `cannot register VIM "there": a VIM or a cloud region has this name already`},
		"AgainLater":  {"by a VIM that was renamed", "POST", all, body("renamed"), 409, "DuplicateEntity", `cannot name VIM "renamed": another VIM has this name`},
		"Rename":      {"by another VIM", "PUT", renamed, `{"vim": {"name": "there"}}`, 409, "DuplicateEntity", `cannot name VIM "there": another VIM has this name`},
		"Used":        {"an instance uses it", "DELETE", there, "", 409, "VimInUseException", "cannot remove cloud region there: is used by VNF instance vnf-1"},
		"FixedType":   {"a type stays", "PUT", there, `{"vim": {"type": "openstack"}}`, 400, invalid, `cannot use VIM "there": type: cannot be changed; register another VIM`},
		"FixedURL":    {"a URL stays", "PUT", there, `{"vim": {"auth_url": "https://x"}}`, 400, invalid, `cannot use VIM "there": auth_url: cannot be changed; register another VIM`},
		"FixedCloud":  {"likewise of OpenStack", "PUT", cloud, `{"vim": {"auth_url": "https://x"}}`, 400, invalid, `cannot use VIM "os": auth_url: cannot be changed; register another VIM`},
		"Parameter":   {"a misspelled filter would select all", "GET", all + "?nam=x", "", 400, invalid, "cannot list VIMs: nam: is not a known query parameter; use fields, id, name, type, status, is_default or tenant_id"},
		"NoUUID":      {"a name is no id", "GET", all + "/there", "", 404, "VimNotFoundException", "cannot find VIM there: it does not exist"},
		"PutNone":     {"there is none", "PUT", all + "/none", `{"vim": {}}`, 404, "VimNotFoundException", "cannot find VIM none: it does not exist"},
		"DeleteNone":  {"there is none", "DELETE", all + "/none.json", "", 404, "VimNotFoundException", "cannot find VIM none: it does not exist"},
		"Path":        {"there is only one resource", "GET", "/v1.0/vnfs.json", "", 404, "HTTPNotFound", "cannot find the path: of Tacker's v1.0 API, the service has /v1.0/vims"},
		"Method":      {"VIMs are changed by PUT", "PATCH", there, "{}", 405, "HTTPMethodNotAllowed", "cannot answer the request: only GET, PUT, DELETE is possible here"},
		"Large":       {"a document has a limit", "POST", all, strings.Repeat(" ", 1<<20+1), http.StatusRequestEntityTooLarge, "", ""},
		"Description": {"a text has a limit", "POST", all, body("v", `description="`+strings.Repeat("x", 1025)+`"`), 400, invalid, "cannot read the request: vim.description: must not be longer than 1024 characters"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w.t = t
			if tc.kind == "" {
				if status, text := w.ask(tc.method, tc.path, tc.body); status != tc.status {
					t.Errorf("%s: %d %s", tc.reason, status, text)
				}
				return
			}
			w.fails(tc.reason, tc.method, tc.path, tc.body, tc.status, tc.kind, tc.message)
		})
	}
	if regions, err := w.Regions(t.Context()); err != nil || len(regions) != 3 {
		t.Errorf("%d regions are stored, %v", len(regions), err)
	}
}

// TestBelow checks which paths are Tacker's.
func TestBelow(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{"/v1.0": true, "/v1.0/vims": true, "/v1.0/x/y": true, "/v1": false, "/v1.01/vims": false, "/": false} {
		if got := (&tacker.API{}).Below(path); got != want {
			t.Errorf("%s is below: %t", path, got)
		}
	}
}
