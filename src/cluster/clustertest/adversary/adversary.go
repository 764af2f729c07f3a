// Package adversary is the API server of a faulty or malicious cloud region: it
// sends endless, slow, oversized, redirected or invalid responses. Every path
// on which the service reads from a region is tested against it.
//
// It serves just enough of the Kubernetes API for a client to request objects:
// the version, discovery, and lists of some kinds. It stores nothing.
package adversary

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// Behavior is one kind of misbehavior of an API server.
type Behavior string

// The behaviors. Each applies to every response to a request for objects.
const (
	Flood     Behavior = "flood"     // an endless response: a list of more and more objects
	Dense     Behavior = "dense"     // few bytes that take much memory when decoded
	Deep      Behavior = "deep"      // deeply nested lists
	Pages     Behavior = "pages"     // endless small pages
	Expired   Behavior = "expired"   // a second page whose continue token has always expired
	Stall     Behavior = "stall"     // a response that starts and does not continue
	Drip      Behavior = "drip"      // an endless response, one byte per second
	Silence   Behavior = "silence"   // no response
	Garbage   Behavior = "garbage"   // a web page
	Fragment  Behavior = "fragment"  // JSON that is not a Kubernetes object, with a secret in it
	Redirect  Behavior = "redirect"  // a redirect to another server
	Patience  Behavior = "patience"  // 503 with Retry-After of one hour
	Refusal   Behavior = "refusal"   // an error that is not a Kubernetes Status, with a secret in it
	Denial    Behavior = "denial"    // an error response that starts and does not continue
	Headers   Behavior = "headers"   // a response with 200 KiB of headers
	Events    Behavior = "events"    // empty lists; watches send endless objects
	Event     Behavior = "event"     // empty lists; watches send one endless object
	Flicker   Behavior = "flicker"   // empty lists; watches end at once
	Blink     Behavior = "blink"     // empty lists; watches end after one bookmark
	Discovery Behavior = "discovery" // valid objects; endless discovery of kinds
	Groups    Behavior = "groups"    // like Discovery, in the form of old servers: many groups to read one by one

	// Behaviors below HTTP: see raw.go.
	Banner    Behavior = "banner"    // the greeting of another protocol, with a secret in it
	Malformed Behavior = "malformed" // an invalid header, with a secret in it
	Trailer   Behavior = "trailer"   // an invalid trailer after a chunked response, with a secret in it
	Phrase    Behavior = "phrase"    // a status line with a secret as its text
	Goodbye   Behavior = "goodbye"   // the end of an HTTP/2 connection, with a secret as the reason
)

// Behaviors returns all behaviors.
func Behaviors() []Behavior {
	return []Behavior{Flood, Dense, Deep, Pages, Expired, Stall, Drip, Silence, Garbage, Fragment, Redirect, Patience, Refusal, Denial,
		Headers, Events, Event, Flicker, Blink, Discovery, Groups, Banner, Malformed, Trailer, Phrase, Goodbye}
}

// Secret is in the responses of some behaviors. No error may quote it.
const Secret = "s3cr3t-of-another-server"

// Server is an http.Handler with one behavior.
type Server struct {
	behavior Behavior
	target   string // of redirects
	all      bool   // the behavior also applies to version and discovery requests
	most     int64  // bytes after which the server stops: a client that reads so much has no limit

	sent     atomic.Int64
	requests atomic.Int64
}

// New returns a server. target is the URL of redirects.
func New(b Behavior, target string) *Server {
	return &Server{behavior: b, target: target, most: 1 << 30}
}

// Everywhere applies the behavior to every response, including version and
// discovery.
func (s *Server) Everywhere() { s.all = true }

// Endless removes the limit of bytes sent.
func (s *Server) Endless() { s.most = math.MaxInt64 }

// Sent returns how many bytes of responses were sent.
func (s *Server) Sent() int64 { return s.sent.Load() }

// Requests returns the number of requests received.
func (s *Server) Requests() int64 { return s.requests.Load() }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	w.Header().Set("Content-Type", "application/json")
	if !s.all && s.plain(w, r) {
		return
	}
	if r.URL.Query().Get("watch") != "" {
		s.watch(w, r)
		return
	}
	s.misbehave(w, r)
}

// plain answers requests for version, readiness, identity and discovery. It
// reports whether it has answered.
func (s *Server) plain(w http.ResponseWriter, r *http.Request) bool {
	switch path := r.URL.Path; {
	case path == "/version":
		s.say(w, `{"major":"1","minor":"37","gitVersion":"v1.37.1"}`)
	case path == "/readyz":
		s.say(w, "ok")
	case strings.HasSuffix(path, "/selfsubjectreviews"):
		w.WriteHeader(http.StatusCreated)
		s.say(w, `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}`)
	case path == "/api" || path == "/apis" || path == "/api/v1" || strings.HasPrefix(path, "/apis/") && strings.Count(path, "/") == 3:
		s.discovery(w, r)
	default:
		return false
	}
	return true
}

func (s *Server) say(w io.Writer, text string) bool {
	n, err := io.WriteString(w, text)
	return s.sent.Add(int64(n)) < s.most && err == nil
}

// misbehave answers a request for objects.
func (s *Server) misbehave(w http.ResponseWriter, r *http.Request) {
	switch s.behavior {
	case Flood:
		s.flood(w)
	case Dense:
		s.say(w, listHead+"{},")
		for s.say(w, strings.Repeat("{},", 10_000)) {
			if s.sent.Load() > 64<<20 {
				break
			}
		}
		s.say(w, "{}]}")
	case Deep:
		s.say(w, listHead+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+"]}")
	case Pages, Expired:
		s.page(w, r)
	case Stall:
		s.say(w, listHead)
		_ = http.NewResponseController(w).Flush() // an error means that the client has gone
		<-r.Context().Done()
	case Drip:
		s.drip(w, r)
	case Silence:
		<-r.Context().Done()
	default:
		s.deceive(w, r)
	}
}

// deceive answers with something other than objects.
func (s *Server) deceive(w http.ResponseWriter, r *http.Request) {
	switch s.behavior {
	case Garbage:
		w.Header().Set("Content-Type", "text/html")
		s.say(w, "<html><body>"+Secret+"</body></html>")
	case Fragment:
		s.say(w, `{"password":"`+Secret+`"}`)
	case Redirect:
		http.Redirect(w, r, s.target, http.StatusTemporaryRedirect)
	case Patience:
		w.Header().Set("Retry-After", "3600")
		http.Error(w, Secret, http.StatusServiceUnavailable)
	case Refusal:
		http.Error(w, "no, and my password is "+Secret, http.StatusTeapot)
	case Denial:
		w.WriteHeader(http.StatusForbidden)
		s.say(w, `{"kind":"Status","message":"`+Secret)
		_ = http.NewResponseController(w).Flush() // an error means that the client has gone
		<-r.Context().Done()
	case Headers:
		for i := range 2000 {
			w.Header().Set(fmt.Sprintf("X-Flood-%d", i), strings.Repeat("x", 100))
		}
		s.say(w, emptyList)
	default:
		if text, ok := raw[s.behavior]; ok {
			s.interrupt(w, text)
		} else if !s.plain(w, r) { // only watches or discovery misbehave
			s.honest(w, r)
		}
	}
}

const (
	listHead  = `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`
	emptyList = listHead + `]}`
)

// flood sends objects of 64 KiB without end.
func (s *Server) flood(w io.Writer) {
	s.say(w, listHead)
	padding := strings.Repeat("x", 64<<10)
	for i := 0; s.say(w, object(i, padding)+","); i++ {
	}
}

func object(i int, padding string) string {
	return fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"flood-%d","namespace":"ns","uid":"uid-%d","resourceVersion":"%d",`+
		`"labels":{"k8splugin.io/rb-instance-id":"vnf-1"}},"data":{"padding":"%s"}}`, i, i, i+1, padding)
}

// page sends one object and a continue token.
func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	if s.behavior == Expired && r.URL.Query().Get("continue") != "" {
		w.WriteHeader(http.StatusGone)
		s.say(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
		return
	}
	s.say(w, fmt.Sprintf(`{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":"page-%d"},"items":[%s]}`,
		s.requests.Load(), object(int(s.requests.Load()), "")))
}

// drip sends one space per second.
func (s *Server) drip(w http.ResponseWriter, r *http.Request) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for s.say(w, " ") && http.NewResponseController(w).Flush() == nil {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// watch answers a watch.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	switch s.behavior {
	case Events:
		for i := 0; s.say(w, `{"type":"ADDED","object":`+object(i, strings.Repeat("x", 1<<10))+"}\n"); i++ {
		}
	case Event, Flood, Dense:
		s.say(w, `{"type":"ADDED","object":{"data":{"padding":"`)
		for s.say(w, strings.Repeat("x", 64<<10)) {
		}
	case Flicker:
	case Blink:
		s.say(w, `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"1"}}}`)
	case Discovery, Groups, Pages, Expired, Stall, Silence, Headers, Drip, Deep:
		_ = http.NewResponseController(w).Flush() // an error means that the client has gone
		<-r.Context().Done()
	default:
		s.deceive(w, r)
	}
}

// honest answers as an API server without objects does.
func (s *Server) honest(w http.ResponseWriter, r *http.Request) {
	switch last := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]; {
	case r.Method == http.MethodGet && plurals[last] != "":
		s.say(w, emptyList)
	case r.Method == http.MethodPatch:
		w.WriteHeader(http.StatusCreated)
		s.say(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"`+last+`","uid":"u","resourceVersion":"1","generation":1}}`)
	case r.Method == http.MethodPost:
		w.WriteHeader(http.StatusCreated)
		s.say(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"made","uid":"u","resourceVersion":"1"}}`)
	default:
		w.WriteHeader(http.StatusNotFound)
		s.say(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}
}
