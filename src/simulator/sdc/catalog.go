package sdc

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

var (
	serviceFilters  = []string{"distributionStatus", "category", "version"}
	resourceFilters = []string{"resourceType", "category", "subCategory"}
)

var notFound = response{status: http.StatusNotFound, code: "SVC4642"}

// get returns the response to a request for a path below /sdc/v1. The caller holds the
// lock.
func (s *Simulator) get(path []string, r *http.Request) response {
	switch {
	case len(path) == 1 && path[0] == "artifactTypes":
		return response{status: http.StatusOK, document: artifactTypes}
	case len(path) == 1 && path[0] == "distributionKafkaData":
		return response{status: http.StatusOK, document: map[string]string{
			"kafkaBootStrapServer": s.Brokers()[0], "distrNotificationTopicName": s.topic("NOTIF"), "distrStatusTopicName": s.topic("STATUS"),
		}}
	case len(path) == 2 && path[0] == "catalog" && path[1] == "services":
		return s.listServices(r)
	case len(path) == 2 && path[0] == "catalog" && path[1] == "resources":
		return s.listResources(r)
	case len(path) >= 4 && path[0] == "catalog" && path[1] == "services":
		return s.ofService(path[2:])
	case len(path) >= 4 && path[0] == "catalog" && path[1] == "resources":
		return s.ofResource(path[2:])
	}
	return response{status: http.StatusNotFound, code: "SVC4000"}
}

// checkQuery records the parameters that SDC does not know.
func (s *Simulator) checkQuery(r *http.Request, known []string) {
	for name := range r.URL.Query() {
		if !slices.Contains(known, name) {
			s.violate("%s has the unknown parameter %s", r.URL.Path, name)
		}
	}
}

func (s *Simulator) listServices(r *http.Request) response {
	s.checkQuery(r, serviceFilters)
	var out []map[string]any
	query := r.URL.Query()
	for _, service := range s.sorted() {
		status, version := query.Get("distributionStatus"), query.Get("version")
		if status != "" && status != "DISTRIBUTED" || version != "" && version != service.Version {
			continue
		}
		out = append(out, service.summary())
	}
	if len(out) == 0 {
		return notFound
	}
	return response{status: http.StatusOK, document: out}
}

func (s *Simulator) listResources(r *http.Request) response {
	s.checkQuery(r, resourceFilters)
	var out []map[string]any
	for _, service := range s.sorted() {
		for _, resource := range service.Resources {
			if kind := r.URL.Query().Get("resourceType"); kind == "" || kind == resource.Type {
				out = append(out, resource.summary())
			}
		}
	}
	if len(out) == 0 {
		return notFound
	}
	return response{status: http.StatusOK, document: out}
}

// sorted returns the services by their names and UUIDs.
func (s *Simulator) sorted() []Service {
	return slices.SortedFunc(maps.Values(s.services), func(a, b Service) int { return slices.Compare([]string{a.Name, a.UUID}, []string{b.Name, b.UUID}) })
}

func (s Service) summary() map[string]any {
	return map[string]any{
		"uuid": s.UUID, "invariantUUID": s.InvariantUUID, "name": s.Name, "version": s.Version, "toscaModelURL": "/sdc/v1/catalog/services/" + s.UUID + "/toscaModel",
		"category": "Network Service", "lifecycleState": "CERTIFIED", "distributionStatus": "DISTRIBUTED", "lastUpdaterUserId": "cs0008",
	}
}

func (r Resource) summary() map[string]any {
	return map[string]any{
		"uuid": r.UUID, "invariantUUID": r.InvariantUUID, "name": r.Name, "version": "1.0", "toscaModelURL": "/sdc/v1/catalog/resources/" + r.UUID + "/toscaModel",
		"category": "Generic", "subCategory": "Abstract", "resourceType": r.Type, "lifecycleState": "CERTIFIED", "lastUpdaterUserId": "cs0008",
	}
}

// ofService returns the response for a path below services. Paths of notifications have
// the name and the version of a service, and the names of artifacts, where those of the
// external API have UUIDs.
func (s *Simulator) ofService(path []string) response {
	if service, ok := s.services[path[0]]; ok {
		return service.get(path[1:])
	}
	for _, service := range s.services {
		for _, a := range service.all() {
			if a.url == "/sdc/v1/catalog/services/"+strings.Join(path, "/") {
				return response{status: http.StatusOK, file: &a}
			}
		}
	}
	return notFound
}

func (s Service) get(path []string) response {
	at := "/sdc/v1/catalog/services/" + s.UUID
	switch {
	case len(path) == 1 && path[0] == "metadata":
		out := s.summary()
		out["artifacts"], out["resources"] = external(s.Artifacts, at), s.instances(at)
		return response{status: http.StatusOK, document: []any{out}}
	case len(path) == 1 && path[0] == "toscaModel":
		return response{status: http.StatusOK, file: &Artifact{Name: "service-" + s.Name + "-csar.csar", Content: []byte("a CSAR")}}
	case len(path) == 2 && path[0] == "artifacts":
		return file(s.Artifacts, path[1])
	case len(path) == 4 && path[0] == "resourceInstances" && path[2] == "artifacts":
		for _, r := range s.Resources {
			if normalized(r.Instance) == path[1] {
				return file(r.Artifacts, path[3])
			}
		}
	}
	return notFound
}

func (s Service) instances(at string) []map[string]any {
	out := []map[string]any{}
	for _, r := range s.Resources {
		out = append(out, map[string]any{
			"resourceInstanceName": r.Instance, "resourceName": r.Name, "resourceVersion": "1.0", "resoucreType": r.Type, "resourceUUID": r.UUID,
			"resourceInvariantUUID": r.InvariantUUID, "artifacts": external(r.Artifacts, at+"/resourceInstances/"+normalized(r.Instance)),
		})
	}
	return out
}

func (s *Simulator) ofResource(path []string) response {
	for _, service := range s.services {
		for _, r := range service.Resources {
			if r.UUID != path[0] {
				continue
			}
			switch {
			case len(path) == 2 && path[1] == "metadata":
				out := r.summary()
				out["artifacts"] = external(r.Artifacts, "/sdc/v1/catalog/resources/"+r.UUID)
				return response{status: http.StatusOK, document: []any{out}}
			case len(path) == 3 && path[1] == "artifacts":
				return file(r.Artifacts, path[2])
			}
		}
	}
	return notFound
}

// external returns artifacts as metadata describes them.
func external(artifacts []Artifact, at string) []map[string]any {
	out := []map[string]any{}
	for _, a := range artifacts {
		out = append(out, map[string]any{
			"artifactName": a.Name, "artifactType": a.Type, "artifactURL": at + "/artifacts/" + a.UUID, "artifactChecksum": a.checksum(),
			"artifactUUID": a.UUID, "artifactVersion": "1", "artifactLabel": normalized(a.Name), "artifactGroupType": "DEPLOYMENT", "artifactDescription": a.Name,
		})
	}
	return out
}

func file(artifacts []Artifact, id string) response {
	for _, a := range artifacts {
		if a.UUID == id {
			return response{status: http.StatusOK, file: &a}
		}
	}
	return notFound
}

// all returns the artifacts of a service and of its resources.
func (s Service) all() []Artifact {
	out := slices.Clone(s.Artifacts)
	for _, r := range s.Resources {
		out = append(out, r.Artifacts...)
	}
	return out
}
