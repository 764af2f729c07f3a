package onapstore

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Installation is the data that one plugin has stored. Each list is ordered by
// key.
type Installation struct {
	Definitions []Definition
	Profiles    []Profile
	Templates   []Template
	Connections []Connection
	Instances   []Instance
	Names       []string // every instance and health check id ever assigned, sorted

	Subscriptions int // number of these records, which are not read
	HealthChecks  int // likewise

	Findings []Finding
}

// Finding is a problem in the stored data.
type Finding struct {
	Place   Place
	Message string
	Lost    bool // whether a record could not be read; otherwise the finding is informational
}

// Place is a location in the stored data: in MongoDB a collection, the key of a
// record and one of its tags; in etcd only a key.
type Place struct {
	Collection string `json:"collection,omitempty"`
	Key        string `json:"key"`
	Tag        string `json:"tag,omitempty"`
}

// String returns a text such as `rbdef {rbname: fw, rbversion: 1} defcontent`.
func (p Place) String() string {
	return strings.Join(slices.DeleteFunc([]string{p.Collection, p.Key, p.Tag}, func(s string) bool { return s == "" }), " ")
}

// Definition is a resource bundle definition.
type Definition struct {
	Name, Version string
	Chart         string
	Description   string
	Labels        map[string]string
	Content       Content
}

// Profile is a profile of a definition.
type Profile struct {
	Definition, Version, Name string
	Release, Namespace        string
	KubeVersion               string
	Labels                    map[string]string
	Extra                     []Type
	Content                   Content
}

// Template is a configuration template of a definition.
type Template struct {
	Definition, Version, Name string
	Description               string
	Content                   Content
}

// Connection is the connection to a cloud region.
type Connection struct {
	Region, Owner string
	Kubeconfig    nf.Secret
	Records       []map[string]string // may hold passwords
}

// Instance is an instance of a definition under a profile.
type Instance struct {
	ID        string
	Request   Request
	Namespace string
	Status    string // empty in records of early versions, which had none
	Release   string
	Resources []Resource
	Timeouts  map[string]int64 // in seconds, by hook event such as "pre-install"; only recorded ones

	Configurations []Configuration
}

// Request is the request that created an instance.
type Request struct {
	Definition, Version, Profile string
	Release, Region              string
	Labels, Overrides            map[string]string
}

// Type identifies a type of Kubernetes objects.
type Type struct {
	Group   string `bson:"group"`
	Version string `bson:"version"`
	Kind    string `bson:"kind"`
}

// Resource identifies an object of an instance. Its namespace is not recorded.
type Resource struct {
	Type Type   `bson:"gvk"`
	Name string `bson:"name"`
}

// Configuration is a day-2 configuration of an instance.
type Configuration struct {
	Name     string
	Current  int  // the version number in the counter
	InForce  bool // whether it is active; otherwise its objects are deleted
	Versions []Version
	Tags     []Tag
}

// Version is one version of a configuration.
type Version struct {
	Number      int
	Deleted     bool
	Template    string
	Description string
	Values      json.RawMessage // an object, or empty
}

// Tag is a name for a version.
type Tag struct {
	Name   string
	Number int
}

// Content is the location of an archive, which Store.Content reads. The zero
// value means that there is none.
type Content struct {
	place Place
	id    bson.ObjectID
}

// Exists reports whether there is an archive.
func (c Content) Exists() bool { return c != Content{} }

// keyText formats the key of a record.
func keyText(key map[string]string) string {
	parts := make([]string, 0, len(key))
	for _, name := range slices.Sorted(maps.Keys(key)) {
		parts = append(parts, fmt.Sprintf("%s: %s", name, key[name]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
