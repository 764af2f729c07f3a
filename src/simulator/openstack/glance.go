package openstack

import (
	"net/http"
	"slices"
)

// image adds the calls of Glance.
func (s *Simulator) image() {
	s.on("GET /image/v2/images", false, []string{"name", "limit", "marker"}, func(r request) response {
		found := []any{}
		for _, i := range s.images {
			if name := r.http.URL.Query().Get("name"); name == "" || name == i.Name {
				found = append(found, imageBody(i))
			}
		}
		return response{status: http.StatusOK, body: map[string]any{"images": found, "schema": "/v2/schemas/images"}}
	})
	s.on("GET /image/v2/images/{id}", false, nil, func(r request) response {
		at := slices.IndexFunc(s.images, func(i Named) bool { return i.ID == r.http.PathValue("id") })
		if at < 0 {
			return response{status: http.StatusNotFound}
		}
		return response{status: http.StatusOK, body: imageBody(s.images[at])}
	})
}

func imageBody(i Named) map[string]any {
	return map[string]any{
		"id": i.ID, "name": i.Name, "status": "active", "visibility": "public", "min_disk": 0, "min_ram": 0, "protected": false,
		"created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
	}
}
