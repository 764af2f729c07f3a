package openstack

import (
	"fmt"
	"net/http"
	"slices"
)

// port is a port of Neutron.
type port struct {
	id, name, description, network, server, address string
	groups                                          []string
}

// portRequest is the body with which a port is created.
type portRequest struct {
	Port struct {
		Network     string    `json:"network_id"`
		Name        string    `json:"name,omitempty"`
		Description string    `json:"description,omitempty"`
		Groups      *[]string `json:"security_groups,omitempty"`
	} `json:"port"`
}

// refuseNetwork returns an error in Neutron's form.
func refuseNetwork(status int, kind, format string, args ...any) response {
	return response{status: status, body: map[string]any{"NeutronError": map[string]any{"type": kind, "message": fmt.Sprintf(format, args...), "detail": ""}}}
}

// network adds the calls of Neutron.
func (s *Simulator) network() {
	s.on("GET /network/v2.0/networks", false, []string{"name", "id"}, func(r request) response {
		found := []any{}
		for _, n := range s.networks {
			if matches(r, map[string]string{"name": n.Name, "id": n.ID}) {
				found = append(found, map[string]any{"id": n.ID, "name": n.Name, "status": "ACTIVE", "admin_state_up": true, "subnets": []string{}})
			}
		}
		return response{status: http.StatusOK, body: map[string]any{"networks": found}}
	})
	s.on("GET /network/v2.0/security-groups", false, []string{"name", "id"}, func(r request) response {
		found := []any{}
		for _, g := range s.groups {
			if matches(r, map[string]string{"name": g.Name, "id": g.ID}) {
				found = append(found, map[string]any{"id": g.ID, "name": g.Name, "security_group_rules": []any{}})
			}
		}
		return response{status: http.StatusOK, body: map[string]any{"security_groups": found}}
	})
	s.on("GET /network/v2.0/ports", false, []string{"description", "name", "device_id"}, func(r request) response {
		found := []any{}
		for _, p := range s.ports {
			if matches(r, map[string]string{"description": p.description, "name": p.name, "device_id": p.server}) {
				found = append(found, p.body())
			}
		}
		return response{status: http.StatusOK, body: map[string]any{"ports": found}}
	})
	s.on("POST /network/v2.0/ports", false, nil, s.createPort)
	s.on("DELETE /network/v2.0/ports/{id}", false, nil, func(r request) response {
		gone := s.port(r.http.PathValue("id"))
		if gone == nil {
			return refuseNetwork(http.StatusNotFound, "PortNotFound", "the port does not exist")
		}
		s.ports = slices.DeleteFunc(s.ports, func(p *port) bool { return p == gone })
		return response{status: http.StatusNoContent}
	})
}

// matches reports whether the queries of a request are those of an object.
func matches(r request, fields map[string]string) bool {
	for name, wanted := range r.http.URL.Query() {
		if !slices.Contains(wanted, fields[name]) {
			return false
		}
	}
	return true
}

func (s *Simulator) port(id string) *port {
	if at := slices.IndexFunc(s.ports, func(p *port) bool { return p.id == id }); at >= 0 {
		return s.ports[at]
	}
	return nil
}

func (s *Simulator) createPort(r request) response {
	var body portRequest
	if err := decode(r, &body); err != nil {
		return refuseNetwork(http.StatusBadRequest, "HTTPBadRequest", "%s", err)
	}
	in := body.Port
	at := slices.IndexFunc(s.networks, func(n Network) bool { return n.ID == in.Network })
	switch {
	case at < 0:
		return refuseNetwork(http.StatusNotFound, "NetworkNotFound", "Network %s could not be found.", in.Network)
	case len(in.Description) > 255 || len(in.Name) > 255:
		return refuseNetwork(http.StatusBadRequest, "HTTPBadRequest", "a text is longer than 255")
	case s.cfg.Quota.Ports > 0 && len(s.ports) >= s.cfg.Quota.Ports:
		return refuseNetwork(http.StatusConflict, "OverQuota", "Quota exceeded for resources: ['port'].")
	}
	made := &port{name: in.Name, description: in.Description, network: in.Network}
	if in.Groups != nil {
		made.groups = *in.Groups
	}
	for _, id := range made.groups {
		if !slices.ContainsFunc(s.groups, func(g Named) bool { return g.ID == id }) {
			return refuseNetwork(http.StatusNotFound, "SecurityGroupNotFound", "Security group %s does not exist", id)
		}
	}
	made.id = s.id()
	made.address = fmt.Sprint(s.networks[at].Prefix, s.last%250+3)
	s.ports = append(s.ports, made)
	return response{status: http.StatusCreated, body: map[string]any{"port": made.body()}}
}

func (p *port) body() map[string]any {
	return map[string]any{
		"id": p.id, "name": p.name, "description": p.description, "network_id": p.network, "device_id": p.server, "status": "ACTIVE", "admin_state_up": true,
		"mac_address": "fa:16:3e:00:00:" + p.id[len(p.id)-2:], "security_groups": p.groups, "fixed_ips": []any{map[string]any{"subnet_id": "subnet-" + p.network, "ip_address": p.address}},
	}
}

// unbind frees the ports of a server.
func (s *Simulator) unbind(server string) {
	for _, p := range s.ports {
		if p.server == server {
			p.server = ""
		}
	}
}

// Ports returns the names of all ports, in their order.
func (s *Simulator) Ports() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []string{}
	for _, p := range s.ports {
		out = append(out, p.name)
	}
	slices.Sort(out)
	return out
}
