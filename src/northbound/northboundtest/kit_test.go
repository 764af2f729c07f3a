package northboundtest

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const swagger = `
openapi: 3.0.3
info: {title: test, version: '1'}
paths:
  /things/{id}:
    put:
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
      responses:
        '200': {description: it, content: {application/json: {schema: {$ref: '#/components/schemas/Thing'}}}}
        '204': {description: nothing}
        default: {description: no, content: {application/problem+json: {schema: {$ref: '#/components/schemas/Problem'}}}}
  /v1/bundles/{id}:
    get:
      x-lenient: true
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
      responses: {'200': {description: it}}
components:
  schemas:
    Thing: {type: object, additionalProperties: false, required: [id], properties: {id: {type: string}, size: {type: integer}}}
    Problem: {type: object, required: [title], properties: {title: {type: string}}}
`

// complaints is a testing.TB that records the reports.
type complaints struct {
	testing.TB

	said []string
}

func (c *complaints) Helper() {}

func (c *complaints) Errorf(format string, args ...any) {
	c.said = append(c.said, fmt.Sprintf(format, args...))
}

func TestClientChecksAnswers(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		path   string
		status int
		media  string
		body   string
		fails  bool
	}{
		"Right":          {"what is described is right", "/things/a", 200, "application/json", `{"id": "a"}`, false},
		"Parameters":     {"whatever the parameters of the media type", "/things/a", 200, "application/json; charset=utf-8", `{"id": "a"}`, false},
		"UnknownField":   {"a field that is not described", "/things/a", 200, "application/json", `{"id": "a", "colour": "red"}`, true},
		"MissingField":   {"a field that is missing", "/things/a", 200, "application/json", `{}`, true},
		"Media":          {"another media type", "/things/a", 200, "text/plain", `{"id": "a"}`, true},
		"NotJSON":        {"a body that is not what it says", "/things/a", 200, "application/json", `{`, true},
		"Empty":          {"no body where none is described", "/things/a", 204, "", ``, false},
		"Problem":        {"a problem is right", "/things/a", 404, "application/problem+json", `{"title": "no"}`, false},
		"BadProblem":     {"half a problem is not", "/things/a", 404, "application/problem+json", `{}`, true},
		"UnknownPath":    {"a problem answers an unknown path", "/nothing", 404, "application/problem+json", `{"title": "no"}`, false},
		"UnknownPathOdd": {"and nothing else does", "/nothing", 404, "text/plain", `no`, true},
		"Stray":          {"below lenient paths, a line of text does", "/v1/bundles/a/b", 404, "text/plain; charset=utf-8", "404 page not found\n", false},
		"StrayMethod":    {"and no body for a method", "/v1/bundles/a", 405, "", "", false},
		"StrayProblem":   {"and no problem", "/v1/bundles/a/b", 404, "application/problem+json", `{"title": "no"}`, true},
		"StrayElsewhere": {"which is so nowhere else", "/v1/bundle", 404, "text/plain; charset=utf-8", "404 page not found\n", true},
		"StrayRefused":   {"what does not reach the API is a problem", "/v1/bundles/a/b", 401, "application/problem+json", `{"title": "no"}`, false},
		"UnknownPathBad": {"and it is a whole one", "/nothing", 404, "application/problem+json", `{}`, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.media)
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer server.Close()
			told := &complaints{TB: t}
			client := Client(told, []byte(swagger))
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.URL+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if body, err := io.ReadAll(res.Body); err != nil || string(body) != c.body {
				t.Errorf("the test itself reads %q, %v", body, err)
			}
			if (len(told.said) > 0) != c.fails {
				t.Errorf("%s: complaints %q", c.reason, told.said)
			}
		})
	}
}

// TestExchange plays single exchanges against a server that answers with the
// object that the path names.
func TestExchange(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := strings.TrimPrefix(r.URL.Path, "/things/")
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Location", "/things/"+id)
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, `{"id": %q, "size": %d}`, id+r.Header.Get("Suffix"), len(body))
	}))
	t.Cleanup(server.Close)
	cases := map[string]struct {
		reason string
		text   string
		fails  bool
	}{
		"Right":        {"header and body are sent and compared", "PUT /things/${ID}\nSuffix: +\n\nabc\n\n=> 200\nLocation: /things/a\n\n{\"id\": \"a+\", \"size\": 3}\n", false},
		"Status":       {"the status counts", "PUT /things/a\n\n=> 204\n", true},
		"Header":       {"the header counts", "PUT /things/a\n\n=> 200\nLocation: /things/b\n\n...\n", true},
		"Body":         {"the body counts", "PUT /things/a\n\n=> 200\n\n{\"id\": \"b\", \"size\": 0}\n", true},
		"BodyUnsaid":   {"a body that is not expected counts", "PUT /things/a\n\n=> 200\n", true},
		"BodyAny":      {"three dots are any body", "PUT /things/a\n\n=> 200\n\n...\n", false},
		"Forward":      {"a capture is known before the place where it stands", "PUT /things/a\n\n=> 200\nLocation: /things/${id}\n\n{\"id\": \"<<id>>\", \"...\": \"\"}\n", false},
		"ForwardWrong": {"and is compared there", "PUT /things/a\nSuffix: +\n\n=> 200\nLocation: /things/${id}\n\n{\"id\": \"<<id>>\", \"...\": \"\"}\n", true},
		"Unknown":      {"a variable must be known", "PUT /things/${none}\n\n=> 200\n\n...\n", true},
		"UnknownWant":  {"in the answer as well", "PUT /things/a\n\n=> 200\n\n{\"id\": \"${none}\", \"...\": \"\"}\n", true},
		"NoAnswer":     {"an exchange has an answer", "PUT /things/a\n", true},
		"NoMethod":     {"and a method", "things\n\n=> 200\n\n...\n", true},
		"BadHeader":    {"and header lines", "PUT /things/a\nSuffix\n\n=> 200\n\n...\n", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &playing{Player: Player{Client: Client(t, []byte(swagger)), Server: server.URL}, vars: map[string]string{"ID": "a"}}
			if err := p.exchange(t, c.text); (err != nil) != c.fails {
				t.Errorf("%s: %v", c.reason, err)
			}
		})
	}
}

func TestPlay(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.HasPrefix(string(body), "PK") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"id": "made"}`)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "x.txtar")
	text := "Two exchanges and a file.\n-- send an archive --\nPUT /things/${FIRST}\n\n@zip web\n\n=> 200\n\n{\"id\": \"<<id>>\"}\n" +
		"-- use what was captured --\nPUT /things/${id}\n\n=> 204\n-- web/a.yaml --\na: b\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{"FIRST": "a"}
	Player{Client: Client(t, []byte(swagger)), Server: server.URL, Vars: vars}.Play(t, file)
	if len(vars) != 1 {
		t.Errorf("playing changed the caller's variables: %v", vars)
	}
}

func TestZip(t *testing.T) {
	t.Parallel()
	p := &playing{files: map[string][]byte{"web/a.yaml": []byte("a"), "web/sub/b.yaml": []byte("b"), "website/c.yaml": []byte("c")}}
	body, err := p.body("@zip web")
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range archive.File {
		names = append(names, f.Name)
	}
	if got := strings.Join(names, " "); got != "a.yaml sub/b.yaml" {
		t.Errorf("the archive holds %s", got)
	}
}
