package aai

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// operation is one change of a transaction.
type operation struct {
	Action string          `json:"action"`
	URI    string          `json:"uri"`
	Body   json.RawMessage `json:"body"`
}

// operationResponse is the response to one change.
type operationResponse struct {
	Action string `json:"action"`
	URI    string `json:"uri"`
	Status int    `json:"response-status-code"`
	Body   any    `json:"response-body"`
}

var actions = map[string]string{"put": http.MethodPut, "patch": http.MethodPatch, "delete": http.MethodDelete}

// singleTransaction executes all changes or none.
func (s *Simulator) singleTransaction(r request) response {
	if r.method != http.MethodPost {
		return refuseMethod(r.method)
	}
	var body struct {
		Operations []operation `json:"operations"`
	}
	if err := decodeStrict(r.body, &body); err != nil || len(body.Operations) == 0 {
		return response{err: refuse(codeBulkBody, "the body must have operations with action, uri and body")}
	}
	if len(body.Operations) > s.cfg.Limit {
		return response{err: refuse(codeTooMany, "%d operations are more than %d", len(body.Operations), s.cfg.Limit)}
	}
	out := make([]operationResponse, len(body.Operations))
	for i, op := range body.Operations {
		resp := s.operate(r.tx, op)
		if resp.err != nil {
			return resp
		}
		out[i] = operationResponse{Action: op.Action, URI: op.URI, Status: resp.status}
	}
	return response{status: http.StatusCreated, body: map[string]any{"operation-responses": out}}
}

// decodeStrict decodes a bulk body, which has no unknown members.
func decodeStrict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// operate executes one change of a transaction.
func (s *Simulator) operate(tx *transaction, op operation) response {
	method, known := actions[op.Action]
	if !known || op.Body == nil {
		return response{err: refuse(codeBulkBody, "operation %q of %s: the action must be put, patch or delete, and the body must be there", op.Action, op.URI)}
	}
	path, query, _ := strings.Cut(stripPrefix(op.URI), "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return response{err: refuse(codeInvalid, "%s: the query is malformed", op.URI)}
	}
	return s.one(request{tx: tx, method: method, path: path, query: values, body: op.Body})
}

// bulkProcess executes transactions of the older form. Each of them succeeds or
// fails as a whole, and the others continue. A transaction has one verb: with
// several, A&AI repeats operations, which no client may rely on.
func (s *Simulator) bulkProcess(r request) response {
	if r.method != http.MethodPut {
		return refuseMethod(r.method)
	}
	var body struct {
		Transactions []map[string][]operation `json:"transactions"`
	}
	if err := decodeStrict(r.body, &body); err != nil || len(body.Transactions) == 0 {
		return response{err: refuse(codeBulkBody, "the body must have transactions")}
	}
	total := 0
	for _, t := range body.Transactions {
		for _, operations := range t {
			total += len(operations)
		}
	}
	if total > s.cfg.Limit {
		return response{err: refuse(codeTooMany, "%d operations are more than %d", total, s.cfg.Limit)}
	}
	s.graph.commit()
	out := make([]any, len(body.Transactions))
	for i, t := range body.Transactions {
		out[i] = s.bulkTransaction(r.tx, t)
	}
	return response{status: http.StatusCreated, body: map[string]any{"transaction": out}}
}

func (s *Simulator) bulkTransaction(tx *transaction, t map[string][]operation) any {
	if len(t) > 1 {
		tx.violate("a transaction of bulkprocess has several verbs")
	}
	for _, verb := range []string{"put", "delete", "patch"} {
		if operations, has := t[verb]; has {
			return map[string]any{verb: s.bulkOperations(tx, verb, operations)}
		}
	}
	return map[string]any{}
}

// bulkOperations returns the statuses of all operations, or that of the first
// failure.
func (s *Simulator) bulkOperations(tx *transaction, verb string, operations []operation) []any {
	var out []any
	status := func(uri string, code int, body any) any {
		return map[string]any{"uri": uri, "body": map[string]any{strconv.Itoa(code): body}}
	}
	for _, op := range operations {
		if op.Body == nil && verb == "delete" {
			op.Body = json.RawMessage("{}")
		}
		op.Action = verb
		resp := s.operate(tx, op)
		if resp.err != nil {
			s.graph.rollback()
			return []any{status(op.URI, codes[resp.err.code].status, json.RawMessage(resp.err.body(verb, op.URI)))}
		}
		out = append(out, status(op.URI, resp.status, nil))
	}
	s.graph.commit()
	return out
}
