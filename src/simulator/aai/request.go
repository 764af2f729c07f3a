package aai

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// request is one change or read, alone or as a part of a transaction.
type request struct {
	tx     *transaction
	method string
	path   string // escaped, below /aai/vN
	query  url.Values
	body   []byte
}

// one executes a request for one object, collection or relationship.
func (s *Simulator) one(r request) response {
	at, err := s.schema.locate(r.tx.version, r.path)
	if err != nil {
		return response{err: err}
	}
	if r.method != http.MethodGet {
		if err := s.permit(r.path); err != nil {
			return response{err: err}
		}
	}
	switch at.form {
	case formObject:
		return r.onObject(at.node)
	case formCollection:
		return r.onCollection(at)
	case formEdges:
		return r.onEdges(at.node)
	default:
		return r.onEdge(at.node)
	}
}

// permit rejects a change below a path that is denied.
func (s *Simulator) permit(path string) *refusal {
	for _, prefix := range s.denied {
		if strings.HasPrefix("/"+strings.Trim(path, "/"), prefix) {
			return refuse(codeUnauthorized, "the account may not change objects below %s", prefix)
		}
	}
	return nil
}

func (r request) onObject(n *node) response {
	if r.method == http.MethodGet {
		q, err := parseQuery(r.query, nil)
		if err != nil {
			return response{err: err}
		}
		doc, err := r.tx.object(n, q)
		return response{status: http.StatusOK, body: doc, err: err}
	}
	if r.method == http.MethodDelete {
		var version *string
		if r.query.Has(versionName) {
			value := r.query.Get(versionName)
			version = &value
		}
		return response{status: http.StatusNoContent, err: r.tx.remove(n, version)}
	}
	return r.write(n)
}

// write executes a PUT or a PATCH of an object.
func (r request) write(n *node) response {
	if r.method != http.MethodPut && r.method != http.MethodPatch {
		return refuseMethod(r.method)
	}
	body, err := decode(r.body)
	if err != nil {
		return response{err: err}
	}
	resp := response{status: http.StatusOK}
	if r.method == http.MethodPatch {
		resp.err = r.tx.patch(n, body)
	} else {
		var created bool
		if created, resp.err = r.tx.put(n, body); created {
			resp.status = http.StatusCreated
		}
	}
	if v := r.tx.graph.vertices[n.uri]; v != nil {
		resp.header = map[string]string{"vertex-id": strconv.Itoa(v.number)}
	}
	return resp
}

func (r request) onCollection(at place) response {
	if r.method != http.MethodGet {
		return refuseMethod(r.method)
	}
	q, err := parseQuery(r.query, at.object)
	if err != nil {
		return response{err: err}
	}
	list, total, err := r.tx.collection(at.node, at.object, q)
	if err != nil {
		return response{err: err}
	}
	resp := response{status: http.StatusOK, body: map[string]any{at.object.Type: list}}
	if q.count {
		size := max(q.size, 1)
		resp.header = map[string]string{"total-results": strconv.Itoa(total), "total-pages": strconv.Itoa((total + size - 1) / size)}
	}
	return resp
}

func (r request) onEdges(n *node) response {
	switch {
	case r.method != http.MethodGet:
		return refuseMethod(r.method)
	case r.tx.graph.vertices[n.uri] == nil:
		return response{err: notFound(n)}
	}
	edges := r.tx.relationships(n)
	if len(edges) == 0 {
		return response{err: refuse(codeNoRelationship, "%s has no relationship", n.uri)}
	}
	return response{status: http.StatusOK, body: map[string]any{edgeName: edges}}
}

func (r request) onEdge(n *node) response {
	if r.method != http.MethodPut && r.method != http.MethodDelete {
		return refuseMethod(r.method)
	}
	body, err := decode(r.body)
	if err != nil {
		return response{err: err}
	}
	if r.method == http.MethodDelete {
		return response{status: http.StatusNoContent, err: r.tx.unrelate(n, body)}
	}
	return response{status: http.StatusOK, err: r.tx.relate(n, body)}
}

func refuseMethod(method string) response {
	return response{err: refuse(codeMethod, "%s is not a function of this path", method)}
}
