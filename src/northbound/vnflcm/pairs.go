package vnflcm

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// maxText limits a text in a map of key-value pairs, in characters.
const maxText = 1024

// maxParams limits the parameters of an occurrence, which are stored with it: bytes of
// their JSON form.
const maxParams = 256 << 10

var pairKey = regexp.MustCompile(`^[a-zA-Z0-9_:. /-]{1,255}$`)

// checkPairs returns the violations of a map of key-value pairs.
func checkPairs(field string, pairs map[string]any) nf.Violations {
	var wrong nf.Violations
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		at := field + "." + nf.Clip(key, maxQuote)
		if !pairKey.MatchString(key) {
			wrong = append(wrong, nf.Violation{Field: at, Message: "has a key that is not 1 to 255 letters, digits, spaces, '-', '_', ':', '.' or '/'"})
		}
		if text, ok := pairs[key].(string); ok && utf8.RuneCountInString(text) > maxText {
			wrong = append(wrong, nf.Violation{Field: at, Message: "must not be longer than " + strconv.Itoa(maxText) + " characters"})
		}
		if len(wrong) >= maxWrong {
			break
		}
	}
	return wrong
}

const (
	maxQuote = 128
	maxWrong = 50
)

// checkStored does the same for a map that becomes a part of the VNF.
func checkStored(field string, pairs map[string]any) nf.Violations {
	if wrong := checkPairs(field, pairs); wrong != nil {
		return wrong
	}
	return nf.CheckUserData(field, pairs)
}

// invalid returns nf.Invalid, or nil without violations.
func invalid(wrong nf.Violations) error {
	if len(wrong) == 0 {
		return nil
	}
	return nf.E(nf.Invalid, "read", "the request", wrong)
}

// unprocessable returns nf.Unsupported, or nil without violations.
func unprocessable(wrong nf.Violations) error {
	if len(wrong) == 0 {
		return nil
	}
	return nf.E(nf.Unsupported, "carry out", "the request", wrong)
}

func undecodable(err error) error {
	return fmt.Errorf("cannot decode a document that was decoded before: %w", err)
}

func index(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// public returns the content of a request as it is stored and shown: of connections to
// VIMs only their ids, types and addresses, and no values of attributes that are named as
// secrets are.
func public(content map[string]any) (json.RawMessage, error) {
	out := map[string]any{}
	for name, value := range content {
		if name == "vimConnectionInfo" {
			value = publicVIMs(value)
		}
		out[name] = northbound.Mask(value, nf.Masked)
	}
	document, err := json.Marshal(out)
	switch {
	case err != nil:
		return nil, undecodable(err)
	case len(document) > maxParams:
		return nil, nf.E(nf.TooLarge, "read", "the request", fmt.Errorf("its parameters are longer than %d bytes", maxParams))
	}
	return document, nil
}

// publicVIMs returns what is shown of connections to VIMs, in either form.
func publicVIMs(vims any) any {
	switch vims := vims.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, c := range vims {
			out[key] = publicVIM(c)
		}
		return out
	case []any:
		out := make([]any, len(vims))
		for i, c := range vims {
			out[i] = publicVIM(c)
		}
		return out
	}
	return nil
}

func publicVIM(connection any) any {
	given, _ := connection.(map[string]any)
	out := map[string]any{}
	for _, name := range []string{"id", "vimId", "vimType", "extra"} {
		if value, found := given[name]; found {
			out[name] = value
		}
	}
	address, _ := given["interfaceInfo"].(map[string]any)
	if text, ok := address["endpoint"].(string); ok && !strings.Contains(text, "@") {
		out["interfaceInfo"] = map[string]any{"endpoint": text}
	}
	return out
}
