package openstack

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// server is a server of Nova.
type server struct {
	id, name, status, key  string
	image, flavor          string
	fault                  string
	metadata               map[string]string
	created, ready, vanish time.Time // vanish is zero unless it is being deleted
}

// serverRequest is the body with which a server is created.
type serverRequest struct {
	Server struct {
		Name     string            `json:"name"`
		Image    string            `json:"imageRef"`
		Flavor   string            `json:"flavorRef"`
		Key      string            `json:"key_name,omitempty"`
		Metadata map[string]string `json:"metadata,omitempty"`
		Networks []struct {
			Port string `json:"port"`
		} `json:"networks"`
	} `json:"server"`
}

// compute adds the calls of Nova.
func (s *Simulator) compute() {
	on := func(pattern string, queries []string, do handle) {
		method, path, _ := strings.Cut(pattern, " ")
		s.on(method+" /compute/v2.1"+path, false, queries, func(r request) response {
			if !microversion(r.http.Header) {
				return refuse(http.StatusNotAcceptable, "the microversion is not supported")
			}
			return do(r)
		})
	}
	on("POST /servers", nil, s.createServer)
	on("GET /servers/detail", []string{"name", "limit", "marker"}, s.listServers)
	on("GET /servers/{id}", nil, func(r request) response {
		if found := s.server(r.http.PathValue("id")); found != nil {
			return response{status: http.StatusOK, body: map[string]any{"server": found.body()}}
		}
		return refuse(http.StatusNotFound, "the server does not exist")
	})
	on("DELETE /servers/{id}", nil, func(r request) response {
		found := s.server(r.http.PathValue("id"))
		if found == nil {
			return refuse(http.StatusNotFound, "the server does not exist")
		}
		if found.vanish.IsZero() {
			found.vanish = s.cfg.Clock().Add(s.cfg.Vanish)
		}
		return response{status: http.StatusNoContent}
	})
	on("GET /flavors/detail", []string{"limit", "marker"}, func(request) response {
		all := []any{}
		for _, f := range s.flavors {
			all = append(all, map[string]any{"id": f.ID, "name": f.Name, "ram": 4096, "disk": 20, "vcpus": 2, "swap": "", "rxtx_factor": 1})
		}
		return response{status: http.StatusOK, body: map[string]any{"flavors": all}}
	})
}

// microversion reports whether Nova has the version that a request names.
func microversion(h http.Header) bool {
	version := h.Get("X-OpenStack-Nova-API-Version")
	if modern, found := strings.CutPrefix(h.Get("OpenStack-API-Version"), "compute "); found {
		version = modern
	}
	minor, found := strings.CutPrefix(cmp.Or(version, "2.1"), "2.")
	n, err := strconv.Atoi(minor)
	return found && err == nil && n >= 1 && n <= 90
}

func (s *Simulator) server(id string) *server {
	if at := slices.IndexFunc(s.servers, func(one *server) bool { return one.id == id }); at >= 0 {
		return s.servers[at]
	}
	return nil
}

func (s *Simulator) createServer(r request) response {
	var body serverRequest
	if err := decode(r, &body); err != nil {
		return refuse(http.StatusBadRequest, "%s", err)
	}
	in := body.Server
	hasID := func(all []Named, id string) bool {
		return slices.ContainsFunc(all, func(one Named) bool { return one.ID == id })
	}
	switch {
	case in.Name == "" || len(in.Name) > 255:
		return refuse(http.StatusBadRequest, "the name is missing or too long")
	case !hasID(s.images, in.Image):
		return refuse(http.StatusBadRequest, "Can not find requested image")
	case !hasID(s.flavors, in.Flavor):
		return refuse(http.StatusBadRequest, "Flavor %s could not be found.", in.Flavor)
	case in.Key != "" && !slices.Contains(s.keys, in.Key):
		return refuse(http.StatusBadRequest, "Invalid key_name provided.")
	case len(in.Networks) == 0:
		return refuse(http.StatusBadRequest, "a server without networks is not simulated")
	case s.cfg.Quota.Servers > 0 && len(s.servers) >= s.cfg.Quota.Servers:
		return refuse(http.StatusForbidden, "Quota exceeded for instances: Requested 1, but already used %d of %d instances", len(s.servers), s.cfg.Quota.Servers)
	}
	var ports []*port
	for _, n := range in.Networks {
		p := s.port(n.Port)
		switch {
		case p == nil:
			return refuse(http.StatusBadRequest, "Port %s could not be found.", n.Port)
		case p.server != "":
			return refuse(http.StatusConflict, "Port %s is still in use.", n.Port)
		}
		ports = append(ports, p)
	}
	now := s.cfg.Clock()
	made := &server{
		id: s.id(), name: in.Name, status: "BUILD", key: in.Key, image: in.Image, flavor: in.Flavor, metadata: in.Metadata, created: now, ready: now.Add(s.cfg.Boot),
	}
	s.servers = append(s.servers, made)
	for _, p := range ports {
		p.server = made.id
	}
	return response{status: http.StatusAccepted, body: map[string]any{"server": map[string]any{"id": made.id, "adminPass": "not-for-logs", "links": []any{}}}}
}

// listServers lists servers whose names match, newest first as Nova does, by pages.
func (s *Simulator) listServers(r request) response {
	query := r.http.URL.Query()
	name, err := regexp.Compile(query.Get("name"))
	if err != nil {
		return refuse(http.StatusBadRequest, "the name is no regular expression")
	}
	all, after := slices.Clone(s.servers), query.Get("marker") == ""
	slices.Reverse(all)
	bodies, last := []any{}, ""
	for _, one := range all {
		switch {
		case after && name.MatchString(one.name):
			if len(bodies) == s.cfg.Page {
				next := base(r) + r.http.URL.Path + "?name=" + query.Get("name") + "&marker=" + last
				return response{status: http.StatusOK, body: map[string]any{"servers": bodies, "servers_links": []any{map[string]any{"rel": "next", "href": next}}}}
			}
			bodies, last = append(bodies, one.body()), one.id
		case one.id == query.Get("marker"):
			after = true
		}
	}
	return response{status: http.StatusOK, body: map[string]any{"servers": bodies}}
}

func (one *server) body() map[string]any {
	out := map[string]any{
		"id": one.id, "name": one.name, "status": one.status, "key_name": one.key, "metadata": one.metadata, "addresses": map[string]any{},
		"image": map[string]any{"id": one.image}, "flavor": map[string]any{"id": one.flavor}, "links": []any{},
		"created": one.created.UTC().Format(time.RFC3339), "updated": one.created.UTC().Format(time.RFC3339),
	}
	if !one.vanish.IsZero() {
		out["OS-EXT-STS:task_state"] = "deleting"
	}
	if one.fault != "" {
		out["fault"] = map[string]any{"code": http.StatusInternalServerError, "created": one.created.UTC().Format(time.RFC3339), "message": one.fault}
	}
	return out
}

// advance lets the time take effect: servers become ACTIVE or ERROR, or are gone.
func (s *Simulator) advance() {
	now := s.cfg.Clock()
	for _, one := range s.servers {
		if one.status == "BUILD" && !now.Before(one.ready) {
			one.status, one.fault = "ACTIVE", s.failing[one.name]
			if one.fault != "" {
				one.status = "ERROR"
			}
		}
	}
	s.servers = slices.DeleteFunc(s.servers, func(one *server) bool {
		gone := !one.vanish.IsZero() && !now.Before(one.vanish)
		if gone {
			s.unbind(one.id)
		}
		return gone
	})
	s.progress()
}

// Fail makes servers of a name fail with a message when they have started; an empty
// message repairs later ones.
func (s *Simulator) Fail(name, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing[name] = message
}

// Lose deletes a server as another client does, at once.
func (s *Simulator) Lose(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.servers {
		if one.name == name {
			one.vanish = s.cfg.Clock()
		}
	}
	s.advance()
}

// Servers returns the names of all servers that are not deleted, each with its status, in
// the order of their names.
func (s *Simulator) Servers() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	out := []string{}
	for _, one := range s.servers {
		out = append(out, one.name+" "+one.status)
	}
	slices.Sort(out)
	return out
}
