package ansible

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/site"
)

// variables returns the extra variables of a run, as YAML: the site's
// parameters and secrets, the variables that kud requires, and the passwords.
// They go through a pipe.
func (r *Runner) variables(job site.Job, f *folder) ([]byte, error) {
	in, secret := job.Site, job.Secrets
	vars := maps.Clone(r.cfg.Vars)
	if vars == nil {
		vars = map[string]any{}
	}
	maps.Copy(vars, in.Parameters)
	if from, _ := in.Parameters["kud_artifacts"].(string); from != "" && !strings.HasPrefix(from, "http://") && !strings.HasPrefix(from, "https://") {
		return nil, nf.E(nf.Invalid, "run", "playbooks", nf.Violations{{Field: "parameters.kud_artifacts", Message: "must be a URL; folders on the service's machine are not allowed"}})
	}
	for name, value := range secret.Secrets {
		vars[name] = string(value)
	}
	if in.Proxy != (nf.SiteProxy{}) {
		vars["kud_proxy"] = map[string]any{"http": in.Proxy.HTTP, "https": in.Proxy.HTTPS, "no_proxy": in.Proxy.None}
	}
	vars["kud_roles"] = roles(in.Roles)
	vars["kud_site"], vars["region_id"] = in.ID, in.Region
	vars["region_register"] = false // the service registers it, after everything else has succeeded
	vars["region_kubeconfig"] = f.path("kubeconfig")
	if job.Action != site.Build {
		vars["kud_remove"] = true
	}
	if job.Action == site.Shrink {
		vars["kud_dead"] = append([]string{}, job.Dead...)
	}
	if len(secret.PrivateKey) == 0 {
		vars["ansible_password"] = string(secret.Password)
	}
	if len(secret.BecomePassword) > 0 {
		vars["ansible_become_password"] = string(secret.BecomePassword)
	}
	var b strings.Builder
	if err := write(&b, vars); err != nil {
		return nil, fmt.Errorf("cannot write the variables of the run: %w", err)
	}
	b.WriteString("\n")
	return []byte(b.String()), nil
}

// roles returns the site's roles, with region last, which produces the
// kubeconfig.
func roles(wanted []string) []string {
	return append(slices.DeleteFunc(slices.Clone(wanted), func(name string) bool { return name == "region" }), "region")
}

// write writes a value as YAML in which no text is a template: Ansible would
// run what is between its braces on this machine.
func write(b *strings.Builder, v any) error {
	switch v := v.(type) {
	case map[string]any:
		b.WriteString("{")
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b.WriteString(", ")
			}
			// Keys are not tagged: a tagged key cannot be the name of a variable.
			// Top-level keys are names, and Ansible does not look for templates in
			// others.
			if err := literal(b, name); err != nil {
				return err
			}
			b.WriteString(": ")
			if err := write(b, v[name]); err != nil {
				return err
			}
		}
		b.WriteString("}")
	case []any:
		return list(b, v)
	case []string:
		return list(b, v)
	case string:
		b.WriteString("!unsafe ")
		return literal(b, v)
	default:
		return literal(b, v)
	}
	return nil
}

func list[T any](b *strings.Builder, items []T) error {
	b.WriteString("[")
	for i, item := range items {
		if i > 0 {
			b.WriteString(", ")
		}
		if err := write(b, any(item)); err != nil {
			return err
		}
	}
	b.WriteString("]")
	return nil
}

// literal writes a value as JSON. JSON is YAML, except for a few characters
// that it may leave unescaped.
func literal(b *strings.Builder, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	for _, r := range string(text) {
		if r == 0x7f || r >= 0x80 && r <= 0x9f || r == 0xfeff || r >= 0xd800 && r <= 0xdfff || r == 0xfffe || r == 0xffff {
			fmt.Fprintf(b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return nil
}
