package nf

import "time"

// VNFHook is a script of the interface Vnflcm that does not run as a Job.
type VNFHook struct {
	ID         string // the same for each repetition
	VNF        string // ids
	Occurrence string
	Package    string
	Operation  string // instantiate_end
	Type       string // of the artifact
	File       string // in the package
	Timeout    time.Duration
	Inputs     map[string]any // of the VNF descriptor
	Params     map[string]any // additionalParams, without those in Secret
	Secret     map[string]any // additionalParams that may have credentials
}

// The types of artifacts that do not run as Jobs.
const (
	SSHScript     = "k8splugin.artifacts.Implementation.SSH"     // a script for hosts
	WebhookScript = "k8splugin.artifacts.Implementation.Webhook" // a file with a URL
)

// ScriptImageParameter is the image of the Jobs that run the scripts of a CSAR. It is required if
// the CSAR has such scripts; if it is empty, none runs.
const ScriptImageParameter = "script_image"

// The parameters that select the size of an instance of a CSAR.
const (
	FlavorParameter = "flavour_id"
	LevelParameter  = "instantiation_level_id"
	ScaleParameter  = "scale_levels" // levels of scaling aspects: {aspect: level}; others have that of the instantiation level
)

// The additional parameters of VNFs that make clusters.
const (
	ClusterHostsParameter = "k8s_cluster_installation_param" // the hosts, and how a script makes a cluster of them
	CascadeParameter      = "cascade"                        // of a termination: what uses the clusters is terminated first
)

// The additional parameters for scripts that do not run as Jobs.
const (
	HookHostsParameter  = "script_hosts"   // hosts with their credentials
	HookSecretParameter = "webhook_secret" // key of the signature
)
