package onapstore

import (
	"context"
	"encoding/base64"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// The documents as the plugin stores them. Names are those of its Go fields in
// lower case.
type (
	definitionDocument struct {
		Chart       string            `bson:"chartname"`
		Description string            `bson:"description"`
		Labels      map[string]string `bson:"labels"`
	}

	profileDocument struct {
		Release     string            `bson:"releasename"`
		Namespace   string            `bson:"namespace"`
		KubeVersion string            `bson:"kubernetesversion"`
		Labels      map[string]string `bson:"labels"`
		Extra       []Type            `bson:"extraresourcetypes"`
	}

	templateDocument struct {
		Description string `bson:"description"`
	}

	connectionDocument struct {
		Owner      string `bson:"cloudowner"`
		Kubeconfig string `bson:"kubeconfig"`
		Other      struct {
			Records []map[string]string `bson:"connectivityrecords"`
		} `bson:"otherconnectivitylist"`
	}

	instanceDocument struct {
		Request struct {
			Definition string            `bson:"rbname"`
			Version    string            `bson:"rbversion"`
			Profile    string            `bson:"profilename"`
			Release    string            `bson:"releasename"`
			Region     string            `bson:"cloudregion"`
			Labels     map[string]string `bson:"labels"`
			Overrides  map[string]string `bson:"overridevalues"`
		} `bson:"request"`
		Namespace string     `bson:"namespace"`
		Status    string     `bson:"status"`
		Release   string     `bson:"releasename"`
		Resources []Resource `bson:"resources"`

		PreInstall  *int64 `bson:"preinstalltimeout"`
		PostInstall *int64 `bson:"postinstalltimeout"`
		PreUpgrade  *int64 `bson:"preupgradetimeout"`
		PostUpgrade *int64 `bson:"postupgradetimeout"`
		PreDelete   *int64 `bson:"predeletetimeout"`
		PostDelete  *int64 `bson:"postdeletetimeout"`
	}
)

func (d instanceDocument) timeouts() map[string]int64 {
	out := map[string]int64{}
	for event, seconds := range map[string]*int64{
		"pre-install": d.PreInstall, "post-install": d.PostInstall, "pre-upgrade": d.PreUpgrade, "post-upgrade": d.PostUpgrade,
		"pre-delete": d.PreDelete, "post-delete": d.PostDelete,
	} {
		if seconds != nil {
			out[event] = *seconds
		}
	}
	return out
}

// decode decodes base64 text, which must not be empty. It does not report where
// the text is invalid, since the text may be secret.
func decode(text string) ([]byte, bool) {
	content, err := base64.StdEncoding.DecodeString(text)
	return content, err == nil && len(content) > 0
}

func (r *reading) definition(ctx context.Context, m master) error {
	var d definitionDocument
	ok, err := r.read(ctx, m, "defmetadata", &d)
	if err != nil || !ok {
		return err
	}
	content, err := r.content(ctx, m, "defcontent")
	r.out.Definitions = append(r.out.Definitions, Definition{
		Name: m.key["rbname"], Version: m.key["rbversion"], Chart: d.Chart, Description: d.Description, Labels: d.Labels, Content: content,
	})
	return err
}

func (r *reading) profile(ctx context.Context, m master) error {
	var d profileDocument
	ok, err := r.read(ctx, m, "profilemetadata", &d)
	if err != nil || !ok {
		return err
	}
	content, err := r.content(ctx, m, "profilecontent")
	r.out.Profiles = append(r.out.Profiles, Profile{
		Definition: m.key["rbname"], Version: m.key["rbversion"], Name: m.key["profilename"], Release: d.Release, Namespace: d.Namespace,
		KubeVersion: d.KubeVersion, Labels: d.Labels, Extra: d.Extra, Content: content,
	})
	return err
}

func (r *reading) template(ctx context.Context, m master) error {
	var d templateDocument
	ok, err := r.read(ctx, m, "confdefmetadata", &d)
	if err != nil || !ok {
		return err
	}
	content, err := r.content(ctx, m, "confdefcontent")
	r.out.Templates = append(r.out.Templates, Template{
		Definition: m.key["rbname"], Version: m.key["rbversion"], Name: m.key["templatename"], Description: d.Description, Content: content,
	})
	return err
}

func (r *reading) connection(ctx context.Context, m master) error {
	var d connectionDocument
	ok, err := r.read(ctx, m, "metadata", &d)
	if err != nil || !ok {
		return err
	}
	kubeconfig, decoded := decode(d.Kubeconfig)
	if !decoded {
		r.found(m.place("metadata"), true, "its kubeconfig is not base64")
		return nil
	}
	r.out.Connections = append(r.out.Connections, Connection{
		Region: m.key["cloudregion"], Owner: d.Owner, Kubeconfig: nf.Secret(kubeconfig), Records: d.Other.Records,
	})
	return nil
}

func (r *reading) instance(ctx context.Context, m master) error {
	var d instanceDocument
	ok, err := r.read(ctx, m, "instance", &d)
	if err != nil || !ok {
		return err
	}
	r.out.Instances = append(r.out.Instances, Instance{
		ID: m.key["id"],
		Request: Request{
			Definition: d.Request.Definition, Version: d.Request.Version, Profile: d.Request.Profile, Release: d.Request.Release,
			Region: d.Request.Region, Labels: d.Request.Labels, Overrides: d.Request.Overrides,
		},
		Namespace: d.Namespace, Status: d.Status, Release: d.Release, Resources: d.Resources, Timeouts: d.timeouts(),
	})
	return nil
}
