package keystone_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/keystone"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// answers is a Keystone whose validations have one response.
type answers string

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	out := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(a))), Request: r}
	if r.Method == http.MethodPost {
		out.StatusCode = http.StatusCreated
		out.Header.Set("X-Subject-Token", "own")
		out.Body = io.NopCloser(strings.NewReader(`{"token": {"expires_at": "2100-01-01T00:00:00.000000Z"}}`))
	}
	return out, nil
}

// FuzzAnswer reads any response to a validation.
func FuzzAnswer(f *testing.F) {
	f.Add(`{"token": {"expires_at": "2100-01-01T00:00:00.000000Z", "user": {"id": "u", "name": "ann", "domain": {"name": "Default"}}, "project": {"id": "p", "name": "blue", "domain": {"name": "Default"}}, "roles": [{"name": "member"}]}}`)
	f.Add(`{"token": {"expires_at": "2000-01-01T00:00:00Z", "user": {"id": "\u0000"}}}`)
	f.Add(`{"token": null}`)
	f.Fuzz(func(t *testing.T, body string) {
		c, err := keystone.New(keystone.Config{
			URL: "https://keystone.example.org/v3", Transport: answers(body), Clock: func() time.Time { return time.Unix(1e9, 0) },
			Credentials: func(context.Context) (string, nf.Secret) { return "u", nf.Secret("p") },
		})
		if err != nil {
			t.Fatal(err)
		}
		id, err := c.Identity(t.Context(), "token")
		if err == nil && (id.Name == "" || id.Kind != "keystone" || id.Project != "" && nf.CheckID("project", id.Project) != nil || id.Project == "" && len(id.Groups) > 0) {
			t.Errorf("identity %+v of %s", id, body)
		}
	})
}
