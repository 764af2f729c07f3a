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

// Installation is all that one plugin has stored. Each list is in the order of
// its keys.
type Installation struct {
	Definitions []Definition
	Profiles    []Profile
	Templates   []Template
	Connections []Connection
	Instances   []Instance
	Names       []string // every instance and health check id that was ever given, sorted

	Subscriptions int // records of this kind, which are counted and not read
	HealthChecks  int // likewise

	Findings []Finding
}

// Finding is something that is not as it should be.
type Finding struct {
	Place   Place
	Message string
	Lost    bool // a record that cannot be read; otherwise everything has been read, and this is to be known
}

// Place is where something is stored: in MongoDB a collection, the key of a
// record and a tag of it; in etcd a key alone.
type Place struct {
	Collection string `json:"collection,omitempty"`
	Key        string `json:"key"`
	Tag        string `json:"tag,omitempty"`
}

// String says `rbdef {rbname: fw, rbversion: 1} defcontent`.
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
	Status    string // empty in records of before there was one
	Release   string
	Resources []Resource
	Timeouts  map[string]int64 // in seconds, by "pre-install" and so on; those that are recorded

	Configurations []Configuration
}

// Request is what an instance was asked for with.
type Request struct {
	Definition, Version, Profile string
	Release, Region              string
	Labels, Overrides            map[string]string
}

// Type names a type of Kubernetes objects.
type Type struct {
	Group   string `bson:"group"`
	Version string `bson:"version"`
	Kind    string `bson:"kind"`
}

// Resource names an object of an instance; its namespace is not recorded.
type Resource struct {
	Type Type   `bson:"gvk"`
	Name string `bson:"name"`
}

// Configuration is a day-2 configuration of an instance.
type Configuration struct {
	Name     string
	Current  int  // the number of the version that the counter is at
	InForce  bool // otherwise its objects are deleted
	Versions []Version
	Tags     []Tag
}

// Version is one version of a configuration.
type Version struct {
	Number      int
	Deleted     bool
	Template    string
	Description string
	Values      json.RawMessage // an object, or nothing
}

// Tag is a name of a version.
type Tag struct {
	Name   string
	Number int
}

// Content says where an archive is; Store.Content reads it. The zero value is
// none.
type Content struct {
	place Place
	id    bson.ObjectID
}

// Exists reports whether there is an archive.
func (c Content) Exists() bool { return c != Content{} }

// keyText writes the key of a record.
func keyText(key map[string]string) string {
	parts := make([]string, 0, len(key))
	for _, name := range slices.Sorted(maps.Keys(key)) {
		parts = append(parts, fmt.Sprintf("%s: %s", name, key[name]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
