package northbound

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
)

//go:embed docs/index.html docs/docs.css docs/docs.js
var docs embed.FS

// page is the page under /docs. It is one document that requests only
// /openapi.json, and its content security policy allows no other script.
type page struct {
	content []byte
	policy  string
}

// newPage returns the page, which shows the version of the program.
func newPage(version string) (page, error) {
	var parts [3][]byte
	for i, name := range []string{"index.html", "docs.css", "docs.js"} {
		content, err := docs.ReadFile("docs/" + name)
		if err != nil {
			return page{}, fmt.Errorf("cannot read the page under /docs: %w", err)
		}
		parts[i] = content
	}
	document, style, script := parts[0], parts[1], parts[2]
	document = bytes.Replace(document, []byte("<!--version-->"), []byte(html.EscapeString(version)), 1)
	document = bytes.Replace(document, []byte("/*docs.css*/"), style, 1)
	document = bytes.Replace(document, []byte("/*docs.js*/"), script, 1)
	return page{content: document, policy: "default-src 'none'; connect-src 'self'; style-src " + hash(style) + "; script-src " + hash(script) +
		"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"}, nil
}

// hash returns the source expression of a text in a content security policy.
func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// ServeHTTP serves the page.
func (p page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", p.policy)
	static("text/html; charset=utf-8", p.content).ServeHTTP(w, r)
}
