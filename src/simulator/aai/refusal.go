package aai

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// The codes of refusals, by A&AI's names for them without the prefix AAI_.
const (
	codeInvalid         = 3000
	codeUnauthorized    = 3300
	codeRetired         = 3007
	codeEncoding        = 3008
	codeMethod          = 3012
	codeUnknownVersion  = 3016
	codeMalformedPath   = 3017
	codeAppID           = 4009
	codeTransactionID   = 4010
	codeAccept          = 4014
	codeDepth           = 4016
	codeBlocked         = 6110
	codeBulkBody        = 6111
	codeNotFound        = 6114
	codeNoEdgeRule      = 6120
	codeNoTarget        = 6129
	codeVersionMissing  = 6130
	codeVersionOther    = 6131
	codeVersionOnCreate = 6135
	codeMultiplicity    = 6140
	codeContainment     = 6145
	codeTooMany         = 6147
	codeNoRelationship  = 6149
	codeImpliedDelete   = 9109

	// Only scripts send these.
	codeTooDeep  = 3303
	codeUnique   = 6117
	codeStorage  = 6134
	codeTimedOut = 7406

	codeMediaType = 415 // A&AI's server refuses it before A&AI sees it
)

// code describes a refusal on the wire.
type code struct {
	status  int
	message string // "SVC" or "POL", and a number
	shown   string // the last of the variables
}

var codes = map[int]code{
	codeInvalid:         {http.StatusBadRequest, "SVC3000", "ERR.5.2.3000"},
	codeUnauthorized:    {http.StatusForbidden, "POL3300", "ERR.5.1.3300"},
	codeRetired:         {http.StatusGone, "SVC3007", "ERR.5.6.3007"},
	codeEncoding:        {http.StatusBadRequest, "SVC3008", "ERR.5.6.3008"},
	codeMethod:          {http.StatusBadRequest, "SVC3012", "ERR.5.6.3012"},
	codeUnknownVersion:  {http.StatusBadRequest, "SVC3016", "ERR.5.6.3007"},
	codeMalformedPath:   {http.StatusBadRequest, "SVC3016", "ERR.5.6.3007"},
	codeAppID:           {http.StatusBadRequest, "SVC3000", "4.0.4009"},
	codeTransactionID:   {http.StatusBadRequest, "SVC3000", "4.0.4010"},
	codeAccept:          {http.StatusNotAcceptable, "SVC3000", "4.0.4014"},
	codeDepth:           {http.StatusBadRequest, "SVC3000", "4.0.4016"},
	codeBlocked:         {http.StatusBadRequest, "SVC3100", "ERR.5.4.6110"},
	codeBulkBody:        {http.StatusBadRequest, "SVC3000", "ERR.5.4.6111"},
	codeNotFound:        {http.StatusNotFound, "SVC3001", "ERR.5.4.6114"},
	codeNoEdgeRule:      {http.StatusBadRequest, "SVC3000", "ERR.5.4.6120"},
	codeNoTarget:        {http.StatusNotFound, "SVC3003", "ERR.5.4.6129"},
	codeVersionMissing:  {http.StatusPreconditionFailed, "SVC3000", "ERR.5.4.6130"},
	codeVersionOther:    {http.StatusPreconditionFailed, "SVC3000", "ERR.5.4.6131"},
	codeVersionOnCreate: {http.StatusPreconditionFailed, "SVC3000", "ERR.5.4.6135"},
	codeMultiplicity:    {http.StatusBadRequest, "SVC3000", "ERR.5.4.6140"},
	codeContainment:     {http.StatusBadRequest, "SVC3000", "ERR.5.4.6145"},
	codeTooMany:         {http.StatusBadRequest, "SVC3000", "ERR.5.4.6147"},
	codeNoRelationship:  {http.StatusNotFound, "SVC3000", "ERR.5.4.6149"},
	codeImpliedDelete:   {http.StatusForbidden, "SVC3300", "ERR.5.0.9109"},
	codeTooDeep:         {http.StatusForbidden, "POL3300", "ERR.5.1.3303"},
	codeUnique:          {http.StatusBadRequest, "SVC3000", "ERR.5.4.6117"},
	codeStorage:         {http.StatusInternalServerError, "SVC6134", "ERR.5.4.6134"},
	codeTimedOut:        {http.StatusBadRequest, "SVC7406", "ERR.5.4.7406"},
	codeMediaType:       {http.StatusUnsupportedMediaType, "SVC3000", "ERR.5.2.3000"},
}

// refusal is the reason for which A&AI rejects a request.
type refusal struct {
	code int
	text string
}

func refuse(code int, format string, args ...any) *refusal {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// body returns A&AI's document of the refusal of a request.
func (r *refusal) body(method, uri string) []byte {
	c := codes[r.code]
	kind := "serviceException"
	if c.message[:3] == "POL" {
		kind = "policyException"
	}
	out, err := json.Marshal(map[string]any{"requestError": map[string]any{kind: map[string]any{
		"messageId": c.message,
		"text":      "%1 of %2 was rejected (msg=%3) (ec=%4)",
		"variables": []string{method, uri, r.text, c.shown},
	}}})
	if err != nil {
		return nil // texts are always encoded
	}
	return out
}
