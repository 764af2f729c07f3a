package aai

import (
	"cmp"
	"crypto/subtle"
	"mime"
	"net/http"
	"slices"
	"strings"
)

const (
	typeJSON  = "application/json"
	typePatch = "application/merge-patch+json"
)

// caller is the identity that the headers of a request give.
type caller struct{ appID, transactionID string }

// callerOf returns the caller that the headers name, of which some may be missing.
func callerOf(h http.Header) caller {
	partner := h.Get("X-ONAP-PartnerName")
	if len(strings.Split(partner, ".")) < 2 {
		partner = ""
	}
	return caller{
		appID:         cmp.Or(h.Get("X-FromAppId"), h.Get("X-SourceOfTruth"), partner),
		transactionID: cmp.Or(h.Get("X-ONAP-RequestID"), h.Get("X-RequestID"), h.Get("X-TransactionId"), h.Get("X-ECOMP-RequestID")),
	}
}

// checkHeaders rejects a request whose headers A&AI rejects.
func (s *Simulator) checkHeaders(r *http.Request, method string) *refusal {
	c := callerOf(r.Header)
	user, password, _ := r.BasicAuth()
	want, known := s.cfg.Users[user]
	switch {
	case !accepts(r.Header.Get("Accept")):
		return refuse(codeAccept, "Accept must contain %s", typeJSON)
	case c.appID == "":
		return refuse(codeAppID, "X-FromAppId is missing")
	case c.transactionID == "":
		return refuse(codeTransactionID, "X-TransactionId is missing")
	case !known || subtle.ConstantTimeCompare([]byte(password), []byte(want)) != 1:
		return refuse(codeUnauthorized, "the credentials are missing or unknown")
	}
	types := map[string]string{http.MethodPut: typeJSON, http.MethodPost: typeJSON, http.MethodPatch: typePatch}
	if want := types[method]; want != "" && mediaType(r.Header.Get("Content-Type")) != want {
		return refuse(codeMediaType, "Content-Type must be %s", want)
	}
	return nil
}

// accepts reports whether a client asks for JSON explicitly; otherwise, A&AI may
// respond with XML.
func accepts(header string) bool {
	return slices.ContainsFunc(strings.Split(header, ","), func(part string) bool { return mediaType(part) == typeJSON })
}

func mediaType(header string) string {
	name, _, err := mime.ParseMediaType(header)
	if err != nil {
		return ""
	}
	return name
}

// methodOf returns the method of a request, which a header may replace.
func methodOf(r *http.Request) string {
	if r.Method == http.MethodPost && r.Header.Get("X-HTTP-Method-Override") == http.MethodPatch {
		return http.MethodPatch
	}
	return r.Method
}
