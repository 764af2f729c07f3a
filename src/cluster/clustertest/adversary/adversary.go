// Package adversary is the API server of a cloud region that misbehaves: it
// floods, stalls, lies about what follows, redirects, and answers garbage. Every
// path on which the service reads from a region is tested against it.
//
// It serves just enough of the Kubernetes API for a client to get to its
// objects: the version, discovery, and a list of kinds. It stores nothing.
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

// Behavior is one way in which an API server misbehaves.
type Behavior string

// The behaviors. Each is that of every answer to a request for objects.
const (
	Flood     Behavior = "flood"     // one answer that does not end: a list of ever more objects
	Dense     Behavior = "dense"     // few bytes that take much memory once they are decoded
	Deep      Behavior = "deep"      // lists within lists
	Pages     Behavior = "pages"     // small pages, of which none is the last
	Expired   Behavior = "expired"   // a second page that has always expired
	Stall     Behavior = "stall"     // an answer that begins and does not go on
	Drip      Behavior = "drip"      // an answer that goes on for ever, a byte at a time
	Silence   Behavior = "silence"   // no answer at all
	Garbage   Behavior = "garbage"   // an answer that is a web page
	Fragment  Behavior = "fragment"  // JSON that is no object, with a secret in it
	Redirect  Behavior = "redirect"  // to somewhere else
	Patience  Behavior = "patience"  // come again in an hour
	Refusal   Behavior = "refusal"   // an error that is a web page, with a secret in it
	Headers   Behavior = "headers"   // an answer with a header of 200 KiB
	Events    Behavior = "events"    // lists are empty; watches tell of ever more objects
	Event     Behavior = "event"     // lists are empty; watches tell of one object that does not end
	Flicker   Behavior = "flicker"   // lists are empty; watches end at once
	Discovery Behavior = "discovery" // objects are as they should be; the kinds that are served do not end
	Groups    Behavior = "groups"    // as Discovery, in the form of old servers: ever more groups to be asked for
)

// Behaviors returns all of them.
func Behaviors() []Behavior {
	return []Behavior{Flood, Dense, Deep, Pages, Expired, Stall, Drip, Silence, Garbage, Fragment, Redirect, Patience, Refusal,
		Headers, Events, Event, Flicker, Discovery, Groups}
}

// Secret is in what some behaviors answer. No error may repeat it.
const Secret = "s3cr3t-of-another-server"

// Server is an http.Handler that misbehaves in one way.
type Server struct {
	behavior Behavior
	target   string // of redirects
	most     int64  // bytes after which an answer is given up: who reads so much never stops

	sent     atomic.Int64
	requests atomic.Int64
}

// New returns a server. Redirects lead to the target, a URL.
func New(b Behavior, target string) *Server {
	return &Server{behavior: b, target: target, most: 1 << 30}
}

// Endless takes away the bound on what is sent.
func (s *Server) Endless() { s.most = math.MaxInt64 }

// Sent returns how many bytes of answers about objects were taken by clients.
func (s *Server) Sent() int64 { return s.sent.Load() }

// Requests returns how many requests there were.
func (s *Server) Requests() int64 { return s.requests.Load() }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	w.Header().Set("Content-Type", "application/json")
	if s.plain(w, r) {
		return
	}
	if r.URL.Query().Get("watch") != "" {
		s.watch(w, r)
		return
	}
	s.misbehave(w, r)
}

// plain answers what leads to objects.
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
		_ = http.NewResponseController(w).Flush() // who does not read it is gone
		<-r.Context().Done()
	case Drip:
		s.drip(w, r)
	case Silence:
		<-r.Context().Done()
	default:
		s.deceive(w, r)
	}
}

// deceive answers with something else than objects.
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
	case Headers:
		for i := range 2000 {
			w.Header().Set(fmt.Sprintf("X-Flood-%d", i), strings.Repeat("x", 100))
		}
		s.say(w, emptyList)
	default: // it is the watches, or discovery, that misbehave
		s.honest(w, r)
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

// page sends one object, and says that there are more.
func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	if s.behavior == Expired && r.URL.Query().Get("continue") != "" {
		w.WriteHeader(http.StatusGone)
		s.say(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
		return
	}
	s.say(w, fmt.Sprintf(`{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":"page-%d"},"items":[%s]}`,
		s.requests.Load(), object(int(s.requests.Load()), "")))
}

// drip sends a blank each second.
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
	case Discovery, Groups, Pages, Expired, Stall, Silence, Headers, Drip, Deep:
		_ = http.NewResponseController(w).Flush() // who does not read it is gone
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
