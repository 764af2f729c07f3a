package nf

import (
	"fmt"
	"strings"
)

// SubjectKind is a kind of objects that operations change: lower-case letters and
// underscores.
type SubjectKind string

// The kinds of subjects.
const (
	InstanceSubject SubjectKind = "vnf_instance"
	SiteSubject     SubjectKind = "site"
	NetworkSubject  SubjectKind = "network"
	VolumeSubject   SubjectKind = "volume"
	ServiceSubject  SubjectKind = "service" // a network service
	RegionSubject   SubjectKind = "region"  // it owns what the service needs in the region itself; no operation changes it
	HolderSubject   SubjectKind = "holder"  // a name that holds a shared resource for a client; no operation changes it
)

// Key returns the name of a subject's id in logs and traces: "instance".
func (k SubjectKind) Key() string {
	if k == InstanceSubject {
		return "instance"
	}
	return string(k)
}

// Subject is the object that an operation changes. Without an id it stands for
// all objects of its kind.
type Subject struct {
	Kind SubjectKind `json:"kind"`
	ID   string      `json:"id"`
}

// SubjectOf parses the form of Subject.String.
func SubjectOf(text string) Subject {
	kind, id, _ := strings.Cut(text, "/")
	return Subject{Kind: SubjectKind(kind), ID: id}
}

// String returns "site/edge", or "site" without an id.
func (s Subject) String() string {
	if s.ID == "" {
		return string(s.Kind)
	}
	return string(s.Kind) + "/" + s.ID
}

// Noun returns the subject as sentences name it: "site edge".
func (s Subject) Noun() string {
	kind := string(s.Kind)
	switch s.Kind {
	case InstanceSubject:
		kind = "VNF instance"
	case VNFSubject:
		kind = "VNF"
	default:
	}
	if s.Kind == ServiceSubject {
		kind = "network service"
	}
	return kind + " " + s.ID
}

// Mention returns the words that name the subject.
func (s Subject) Mention() Text {
	if s.Kind == InstanceSubject {
		return Mention(s.ID)
	}
	return Text{Message: s.Noun()}
}

// SubjectLabel is the owner label of objects of a subject other than a VNF
// instance. Its value is the subject's kind and id: "network.edge". It is ignored
// on an object that has OwnerLabel.
const SubjectLabel = "k8splugin.io/owner"

// Label returns the owner label of the subject's objects in a cluster.
func (s Subject) Label() (key, value string) {
	if s.Kind == InstanceSubject {
		return OwnerLabel, s.ID
	}
	return SubjectLabel, string(s.Kind) + "." + s.ID
}

// maxLabel is the maximum length of a label value in Kubernetes.
const maxLabel = 63

// CheckOwner returns a violation unless the subject can own objects in a cluster: it
// has an id as CheckID allows it, and its owner label is at most 63 characters long.
func (s Subject) CheckOwner(field string) Violations {
	if v := CheckID(field, s.ID); v != nil {
		return v
	}
	if _, value := s.Label(); len(value) > maxLabel {
		return Violations{{Field: field, Message: fmt.Sprintf("%q is longer than %d characters; the id is part of a label in the cloud region", s.ID, maxLabel-len(value)+len(s.ID))}}
	}
	return nil
}

// OwnerOf returns the owner of an object with the labels, as Subject.Label has set
// them. Its ID is empty if the object has no owner.
func OwnerOf(labels map[string]string) Subject {
	if id := labels[OwnerLabel]; id != "" {
		return Subject{Kind: InstanceSubject, ID: id}
	}
	kind, id, _ := strings.Cut(labels[SubjectLabel], ".")
	return Subject{Kind: SubjectKind(kind), ID: id}
}
