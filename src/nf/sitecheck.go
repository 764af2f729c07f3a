package nf

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

var (
	hostNamePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	addressPattern  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)
	userPattern     = regexp.MustCompile(`^[a-z_][a-z0-9_.-]{0,31}$`)
	hostKeyPattern  = regexp.MustCompile(`^[a-z0-9@.-]+ [A-Za-z0-9+/]+={0,2}$`)
	siteRolePattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)
	variablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,126}$`)
)

// Limits on the size of a site.
const (
	MaxSiteHosts  = 256
	MaxSiteScript = 256 << 10 // bytes
)

// Validate returns nf.Invalid with a violation for every field that is wrong.
// Field names are those of the native API.
func (r SiteRequest) Validate() error {
	s := r.Site
	v := CheckID("site_id", s.ID)
	v = append(v, CheckID("cloud_region_id", s.Region)...)
	if s.Project != "" {
		v = append(v, CheckID("project", s.Project)...)
	}
	if s.Owner != "" {
		v = append(v, CheckID("cloud_owner", s.Owner)...)
	}
	v = append(v, CheckLabels("labels", s.Labels)...)
	if s.Machines != nil {
		v = append(v, s.machineViolations()...)
	} else {
		v = append(v, checkHosts("hosts", s.Hosts, s.FirstUse)...)
	}
	if s.Machines == nil && len(s.Hosts) > 0 && !slices.ContainsFunc(s.Hosts, func(h SiteHost) bool { return h.Role == ControlPlane }) {
		v = append(v, Violation{Field: "hosts", Message: "must include a host with the role control_plane"})
	}
	v = append(v, s.violations()...)
	if s.EveryHost && s.Driver != SiteByScript {
		v = append(v, Violation{Field: "driver", Message: "must be script: only a script runs on every host"})
	}
	v = append(v, r.Secrets.Violations(s.Driver)...)
	v = append(v, checkTimeout(r.Timeout)...)
	return invalid("build", "site "+s.ID, v)
}

// Validate returns nf.Invalid with a violation for every field that is wrong,
// except those that the edits change. Site.Check checks the latter.
func (r SiteChangeRequest) Validate(firstUse bool) error {
	v := checkHosts("add_hosts", r.Add, firstUse)
	for i, h := range r.Add {
		if h.Role != Worker {
			v = append(v, Violation{Field: fmt.Sprintf("add_hosts[%d].role", i), Message: "must be worker; the control plane cannot be changed"})
		}
		if slices.Contains(r.Remove, h.Name) {
			v = append(v, Violation{Field: fmt.Sprintf("add_hosts[%d].name", i), Message: fmt.Sprintf("%q is also in remove_hosts", h.Name)})
		}
	}
	v = append(v, validWorkers(r.Workers)...)
	return invalid("change", "the site", append(v, checkTimeout(r.Timeout)...))
}

// Check returns nf.Invalid with a violation for every field that a change may
// have made invalid.
func (s Site) Check() error { return invalid("change", "site "+s.ID, s.violations()) }

func (s Site) violations() Violations {
	v := CheckText("description", s.Description)
	for i, role := range s.Roles {
		if !siteRolePattern.MatchString(role) {
			v = append(v, Violation{Field: fmt.Sprintf("roles[%d]", i), Message: fmt.Sprintf("%q is not the name of a role: lower-case letters, digits and '_'", role)})
		}
	}
	for name := range s.Parameters {
		v = append(v, checkVariable("parameters", name)...)
	}
	v = append(v, checkNumbers("parameters", s.Parameters)...)
	v = append(v, checkProxy("proxy.http", s.Proxy.HTTP)...)
	v = append(v, checkProxy("proxy.https", s.Proxy.HTTPS)...)
	return append(v, CheckText("proxy.no_proxy", s.Proxy.None)...)
}

// Violations returns the violations of a site's secret part.
func (m SiteSecrets) Violations(driver SiteDriver) Violations {
	var v Violations
	if len(m.PrivateKey) == 0 && len(m.Password) == 0 && len(m.Hosts) == 0 {
		v = append(v, Violation{Field: "credential", Message: "needs a private_key or a password"})
	}
	if len(m.Passphrase) > 0 && len(m.PrivateKey) == 0 {
		v = append(v, Violation{Field: "credential.passphrase", Message: "requires a private_key"})
	}
	for name := range m.Secrets {
		v = append(v, checkVariable("secrets", name)...)
	}
	switch {
	case driver == SiteByScript && len(m.Script) == 0:
		v = append(v, Violation{Field: "script.content", Message: "is missing"})
	case driver != SiteByScript && (len(m.Script) > 0 || len(m.Options) > 0 || len(m.RemoveScript) > 0):
		v = append(v, Violation{Field: "script", Message: "is not used by this driver"})
	}
	for field, content := range map[string]Secret{"script.content": m.Script, "script.remove": m.RemoveScript} {
		if len(content) > MaxSiteScript {
			v = append(v, Violation{Field: field, Message: fmt.Sprintf("is longer than %d bytes", MaxSiteScript)})
		}
	}
	for i, option := range m.Options {
		if len(option) > MaxText || strings.ContainsRune(option, 0) {
			v = append(v, Violation{Field: fmt.Sprintf("script.options[%d]", i), Message: fmt.Sprintf("is longer than %d bytes, or contains a zero byte", MaxText)})
		}
	}
	return v
}

// CheckHosts returns a violation for each field of hosts that is wrong. Their keys are
// required.
func CheckHosts(field string, hosts []SiteHost) Violations { return checkHosts(field, hosts, false) }

func checkHosts(field string, hosts []SiteHost, firstUse bool) Violations {
	var v Violations
	if field == "hosts" && len(hosts) == 0 {
		v = append(v, Violation{Field: field, Message: "are missing"})
	}
	if len(hosts) > MaxSiteHosts {
		return append(v, Violation{Field: field, Message: fmt.Sprintf("are more than %d", MaxSiteHosts)})
	}
	names, places := map[string]bool{}, map[string]bool{}
	for i, h := range hosts {
		at := fmt.Sprintf("%s[%d]", field, i)
		place := fmt.Sprintf("%s:%d", h.Address, h.Port)
		if names[h.Name] {
			v = append(v, Violation{Field: at + ".name", Message: fmt.Sprintf("%q is also the name of another host", h.Name)})
		}
		if places[place] {
			v = append(v, Violation{Field: at + ".address", Message: fmt.Sprintf("%s is also the address and port of another host", place)})
		}
		names[h.Name], places[place] = true, true
		v = append(v, checkHost(at, h, firstUse)...)
	}
	return v
}

// checkHost is strict: the values go without escaping into an inventory, a file
// of known hosts and the arguments of ssh.
func checkHost(at string, h SiteHost, firstUse bool) Violations {
	var v Violations
	wrong := func(field, message string) { v = append(v, Violation{Field: at + field, Message: message}) }
	if !hostNamePattern.MatchString(h.Name) {
		wrong(".name", fmt.Sprintf("%q is not a host's name: 1 to 63 lower-case letters, digits or '-', a letter or digit at both ends", h.Name))
	}
	if _, err := netip.ParseAddr(h.Address); (err != nil || strings.Contains(h.Address, "%")) && !addressPattern.MatchString(h.Address) {
		wrong(".address", fmt.Sprintf("%q is neither an IP address nor a name", h.Address))
	}
	if h.Port < 1 || h.Port > 65535 {
		wrong(".port", "must be between 1 and 65535")
	}
	if !userPattern.MatchString(h.User) {
		wrong(".user", fmt.Sprintf("%q is not a user's name", h.User))
	}
	switch {
	case h.Key == "" && !firstUse:
		wrong(".host_key", "is missing: give the host's public key, or trust_on_first_use")
	case h.Key != "" && !hostKeyPattern.MatchString(h.Key):
		wrong(".host_key", "is not a public key such as ssh-ed25519 AAAA…")
	}
	if h.Role != ControlPlane && h.Role != Worker {
		wrong(".role", "must be control_plane or worker")
	}
	return v
}

func checkVariable(field, name string) Violations {
	if variablePattern.MatchString(name) && !strings.HasPrefix(name, "ansible_") {
		return nil
	}
	return Violations{{Field: field, Message: fmt.Sprintf("%q is not a variable's name: letters, digits and '_', and not ansible_…", name)}}
}

func checkProxy(field, address string) Violations {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return Violations{{Field: field, Message: "is not a URL of http or https"}} // without the value, which may contain a password
	}
	return nil
}

func checkTimeout(d time.Duration) Violations {
	if d < 0 || d > MaxTimeout {
		return Violations{{Field: "timeout", Message: "must be between 0 and 24h"}}
	}
	return nil
}
