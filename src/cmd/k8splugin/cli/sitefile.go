package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// siteFile reads a site description, and replaces the files that it names by
// their content.
func (in input) siteFile(name string) (map[string]any, error) {
	text, err := in.readFile(name)
	if err != nil {
		return nil, err
	}
	body := map[string]any{}
	if err := yaml.UnmarshalStrict(text, &body); err != nil {
		return nil, fmt.Errorf("cannot read %s: it must be a YAML map: %w", name, err)
	}
	for _, one := range []struct{ in, file, field string }{
		{"credential", "private_key_file", "private_key"}, {"credential", "password_file", "password"},
		{"credential", "become_password_file", "become_password"}, {"script", "file", "content"}, {"script", "remove_file", "remove"},
	} {
		fields, ok := body[one.in].(map[string]any)
		if !ok {
			continue
		}
		from, named := fields[one.file].(string)
		if !named {
			continue
		}
		if _, both := fields[one.field]; both {
			return nil, fmt.Errorf("%s.%s and %s.%s are mutually exclusive", one.in, one.file, one.in, one.field)
		}
		if !filepath.IsAbs(from) && name != "-" {
			from = filepath.Join(filepath.Dir(name), from)
		}
		content, err := in.readFile(from)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", one.in, one.field, err)
		}
		delete(fields, one.file)
		fields[one.field] = string(content)
		if strings.Contains(one.field, "password") {
			fields[one.field] = strings.TrimRight(string(content), "\r\n") // added by editors
		}
	}
	return body, nil
}

// sorted joins the names in sorted order.
func sorted(names []string) string {
	names = slices.Clone(names)
	slices.Sort(names)
	return strings.Join(names, ", ")
}
