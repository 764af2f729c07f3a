//go:build !race

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	k8splugin "github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
)

// goWords are words of Go and of its libraries. A reader of a response does
// not have to know the language of the service.
var goWords = regexp.MustCompile(`runtime error|goroutine|\.go:|reflect|strconv|[Uu]nmarshal|invalid character|parsing "|parsing time|` +
	`\bEOF\b|mime: |multipart: |(^|[^.\w])(json|yaml|gzip|zip|flate|tar|hex|base64|http|ssh|pem|tls|x509|asn1|age|net/\w+): |archive/|illegal base64|` +
	`converting YAML|decoding JSON|%!\w\(|doesn't match|invalid URL escape|missing protocol|parse "|no such host|(dial|read|write) tcp|context deadline|interface {}|map\[`)

// plainPages are no part of the APIs, and take nothing from a request: the metrics
// of the process and the documentation.
var plainPages = []string{"/metrics", "/", "/docs", "/openapi.yaml", "/openapi.json", "/swagger.yaml", "/swagger.json"}

// TestAnswersHaveNoWordsOfGo makes requests of every operation in swagger.yaml
// that cannot be understood: their bodies, queries, headers and paths are
// malformed in every way that readers fail at. The error is in the service's own
// words. It makes thousands of requests, one after another: with the race detector, they take
// many times as long, and it sees the same code in other tests.
func TestAnswersHaveNoWordsOfGo(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromData(k8splugin.Swagger)
	if err != nil {
		t.Fatal(err)
	}
	w := newAccessWorld(t)
	rules, tried := routeAccess(), 0
	for _, route := range malformedRoutes(doc) {
		method, path, _ := strings.Cut(route, " ")
		if slices.Contains(plainPages, path) {
			continue
		}
		item, object := doc.Paths.Value(path), w.native[0]
		if lenient, _ := item.GetOperation(method).Extensions["x-lenient"].(bool); lenient {
			object = w.onap[0]
		}
		if strings.HasPrefix(path, "/v1/sites/") {
			object = object.with("operation_id", object.vars["site_operation"])
		}
		base, told := "", map[string]bool{}
		if r := rules[route]; len(r) > 0 {
			base = object.filled(r[0].body)
		}
		for _, m := range malformedRequests(method, item, base) {
			m.path = object.filled(path) + m.query
			if m.variable != "" {
				m.path = object.with(m.variable, m.value).filled(path)
			}
			got := w.malformed(method, m)
			tried++
			words := goWords.FindString(string(got.body))
			if words == "" || told[words] {
				continue
			}
			told[words] = true
			t.Errorf("%s with %s: %d, %q in %s", got.request, m.reason, got.status, words, bytes.TrimSpace(got.body))
		}
	}
	if tried < 5000 {
		t.Errorf("only %d requests were made", tried)
	}
}

// with returns the object with another value of a variable.
func (o accessObject) with(name, value string) accessObject {
	out := accessObject{scope: o.scope, vars: maps.Clone(o.vars)}
	out.vars[name] = value
	return out
}

// malformed makes a request as an identity with all permissions, unless the request
// says otherwise.
func (w *accessWorld) malformed(method string, m malformed) answer {
	w.t.Helper()
	headers := []string{"Authorization", "Bearer " + accesstest.Token(admin), "Prefer", "respond-async"}
	for _, name := range slices.Sorted(maps.Keys(m.header)) {
		headers = append(headers, name, m.header[name])
	}
	if m.torn {
		return w.torn(method, m, headers)
	}
	return w.send(w.t.Context(), method, m.path, m.body, headers...)
}

// torn sends a request byte by byte as it is: no client of HTTP would.
func (w *accessWorld) torn(method string, m malformed, headers []string) answer {
	w.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s HTTP/1.1\r\nHost: localhost\r\n", method, m.path)
	for i := 0; i < len(headers); i += 2 {
		fmt.Fprintf(&text, "%s: %s\r\n", headers[i], headers[i+1])
	}
	fmt.Fprintf(&text, "\r\n%s", m.body)
	if _, err := io.WriteString(conn, text.String()); err != nil {
		w.t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		w.t.Fatal(err)
	}
	got := answer{request: method + " " + m.path}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return got // the service may hang up on such a client
	}
	defer resp.Body.Close()
	got.status = resp.StatusCode
	if got.body, err = io.ReadAll(resp.Body); err != nil {
		w.t.Fatal(err)
	}
	return got
}

// malformedRoutes returns the operations of the contract: first those that only
// read, and last those that remove something.
func malformedRoutes(doc *openapi3.T) []string {
	byMethod := map[string][]string{}
	for _, path := range doc.Paths.InMatchingOrder() {
		for method := range doc.Paths.Value(path).Operations() {
			byMethod[method] = append(byMethod[method], method+" "+path)
		}
	}
	return slices.Concat(byMethod[http.MethodGet], byMethod[http.MethodPost], byMethod[http.MethodPut], byMethod[http.MethodPatch], byMethod[http.MethodDelete])
}
