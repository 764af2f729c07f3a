package aairegion

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Rules say which credentials of A&AI are used. Parse and Check are required.
type Rules struct {
	Types    []string // cloud types of Kubernetes clusters, compared without case; default k8s
	Secrets  string   // folder of the kubeconfigs that A&AI refers to; empty: none
	Insecure bool     // credentials may demand that the cluster's certificate is not verified

	Parse func(kubeconfig nf.Secret) (nf.Access, error) // its errors quote nothing of the kubeconfig
	Check func(nf.Access) error                         // whether an access may be used
}

// Credentials are the credentials of a cloud region.
type Credentials struct {
	Access    nf.Access
	Namespace string // default namespace; empty: A&AI names none
	Place     string // that they were read from
	Reference bool   // A&AI has only the name of a kubeconfig, which may change without A&AI
}

// maxSystems is the maximum number of systems of a cloud region that are read.
const maxSystems = 32

// form is a form of credentials.
type form struct {
	of   func(Rules, aai.System) (Credentials, error)
	name string
}

// forms are the forms of credentials in a system, best first.
func forms() []form {
	return []form{
		{Rules.reference, "remote-path"},
		{Rules.kubeconfig, "password"},
		{Rules.token, "service-url, password"},
	}
}

// errNone says that a place does not have a form of credentials.
var errNone = errors.New("it has no credentials of this form")

// IsCluster reports whether a cloud region of A&AI is a Kubernetes cluster.
func (r Rules) IsCluster(c aai.CloudRegion) bool {
	types := r.Types
	if len(types) == 0 {
		types = []string{"k8s"}
	}
	return slices.ContainsFunc(types, func(t string) bool { return strings.EqualFold(t, c.Type) })
}

// Find returns the credentials of a cloud region: the first that are complete and may be
// used, in the order of forms. If there are none, the error is nf.Violations that name the
// attributes that are missing or cannot be used.
func (r Rules) Find(c aai.CloudRegion) (Credentials, error) {
	if !r.IsCluster(c) {
		return Credentials{}, nf.Violations{{Field: "cloud-type", Message: "is not that of a Kubernetes cluster"}}
	}
	var wrong nf.Violations
	systems, skipped := usable(c.Systems)
	for _, f := range forms() {
		for _, s := range systems {
			found, err := f.of(r, s)
			place := fmt.Sprintf("esr-system-info %s: %s", nf.Clip(s.ID, maxShown), f.name)
			if err == nil {
				err = r.Check(found.Access)
			}
			if err == nil {
				found.Place = place
				return found, nil
			}
			wrong = append(wrong, violation(place, err)...)
		}
	}
	found, err := r.extra(c.Extra)
	if err == nil {
		return found, nil
	}
	wrong = append(append(wrong, skipped...), violation("cloud-extra-info", err)...)
	if len(wrong) == 0 {
		wrong = nf.Violations{{Field: "esr-system-info-list", Message: "is empty, and cloud-extra-info has no credentials"}}
	}
	return Credentials{}, wrong
}

// maxShown is how much of an id of A&AI is shown, in bytes.
const maxShown = 64

// violation returns the violation of a place whose credentials cannot be used; none if it
// does not have any.
func violation(place string, err error) nf.Violations {
	if errors.Is(err, errNone) {
		return nil
	}
	return nf.Violations{{Field: place, Message: err.Error()}}
}

// usable returns the systems whose credentials may be used, best first, and why the others
// may not.
func usable(all []aai.System) ([]aai.System, nf.Violations) {
	var out []aai.System
	var skipped nf.Violations
	for _, s := range all[:min(len(all), maxSystems)] {
		if strings.EqualFold(s.Status, "abnormal") {
			skipped = append(skipped, nf.Violation{Field: "esr-system-info " + nf.Clip(s.ID, maxShown), Message: "is not used, because its system-status is abnormal"})
			continue
		}
		out = append(out, s)
	}
	rank := func(s aai.System) int {
		if strings.EqualFold(s.SystemType, "VIM") || strings.EqualFold(s.SystemType, "k8s") {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(out, func(a, b aai.System) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.ID, b.ID))
	})
	return out, skipped
}

// extra returns the credentials in a cloud-extra-info, which other parties write, too.
func (r Rules) extra(text nf.Secret) (Credentials, error) {
	var keys map[string]json.RawMessage
	if json.Unmarshal(text, &keys) != nil {
		return r.whole(text)
	}
	value := func(key string) string {
		var out string
		_ = json.Unmarshal(keys[key], &out) // another type counts as absent
		return out
	}
	var wrong nf.Violations
	if kubeconfig := value("kubeconfig"); kubeconfig != "" {
		found, err := r.checked("cloud-extra-info: kubeconfig", func() (nf.Access, error) { return r.parse(kubeconfig) })
		if err == nil {
			return found, nil
		}
		wrong = append(wrong, violation("kubeconfig", err)...)
	}
	if server := value("k8s-apiserver"); server != "" || keys["k8s-apitoken"] != nil {
		found, err := r.checked("cloud-extra-info: k8s-apiserver, k8s-apitoken", login{
			r, server, value("k8s-apitoken"), value("k8s-cacert"), r.Insecure, names{"k8s-apiserver", "k8s-apitoken", "k8s-cacert"},
		}.access)
		if err == nil {
			found.Namespace = value("k8s-namespace")
			return found, nil
		}
		wrong = append(wrong, violation("k8s-apiserver, k8s-apitoken", err)...)
	}
	if len(wrong) > 0 {
		return Credentials{}, wrong
	}
	return r.whole(text)
}

// whole returns the credentials of a text that is a kubeconfig as a whole.
func (r Rules) whole(text nf.Secret) (Credentials, error) {
	if !isKubeconfig(text) {
		return Credentials{}, errNone
	}
	return r.checked("cloud-extra-info", func() (nf.Access, error) { return r.Parse(text) })
}

func (r Rules) checked(place string, read func() (nf.Access, error)) (Credentials, error) {
	access, err := read()
	if err == nil {
		err = r.Check(access)
	}
	if err != nil {
		return Credentials{}, err
	}
	return Credentials{Access: access, Place: place}, nil
}
