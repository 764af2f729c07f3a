package nf

import (
	"encoding/base64"
	"slices"
	"strings"
)

// AppliedAnnotation is the annotation in which kubectl keeps a copy of the
// object that it applied.
const AppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

// TextsOfSecret returns the values of a Secret or of a list of Secrets in their
// JSON form: encoded, decoded, and each of their lines. It leaves out values
// that are too short to be distinguished from other text.
func TextsOfSecret(object map[string]any) []string {
	var found []string
	if items, isList := object["items"].([]any); isList {
		for _, item := range items {
			if secret, ok := item.(map[string]any); ok {
				found = append(found, TextsOfSecret(secret)...)
			}
		}
	}
	meta, _ := object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	found = append(found, linesOf(annotations[AppliedAnnotation])...)
	for _, name := range []string{"data", "stringData"} {
		values, _ := object[name].(map[string]any)
		for _, value := range values {
			found = append(found, linesOf(value)...)
			text, _ := value.(string)
			if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
				found = append(found, linesOf(string(decoded))...)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// linesOf returns a text and its lines, with and without surrounding blanks. It
// leaves out those that are too short.
func linesOf(value any) []string {
	text, _ := value.(string)
	var found []string
	for _, line := range append([]string{text}, strings.Split(text, "\n")...) {
		for _, form := range []string{line, strings.TrimSpace(line)} {
			if len(form) >= minSecret {
				found = append(found, form)
			}
		}
	}
	return found
}
