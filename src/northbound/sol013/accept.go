package sol013

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// Accepts reports whether the Accept header of a request allows a media type. A request
// without the header accepts all.
func Accepts(r *http.Request, media string) bool {
	header := r.Header.Values("Accept")
	if len(header) == 0 {
		return true
	}
	kind, _, _ := strings.Cut(media, "/")
	for one := range strings.SplitSeq(strings.Join(header, ","), ",") {
		name, parameters, err := mime.ParseMediaType(strings.TrimSpace(one))
		if err != nil {
			continue
		}
		if quality, err := strconv.ParseFloat(parameters["q"], 64); err == nil && quality == 0 {
			continue
		}
		if name == media || name == "*/*" || name == kind+"/*" {
			return true
		}
	}
	return false
}
