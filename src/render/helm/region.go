package helm

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"helm.sh/helm/v4/pkg/chart/common"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// capabilities returns what the chart is told of the cluster: the region's API
// versions, and the version of Kubernetes that the inputs name, or else the
// region's. Without a region they are Helm's own.
func capabilities(ctx context.Context, in render.Input, r *report) (*common.Capabilities, error) {
	caps := common.DefaultCapabilities.Copy()
	version := ""
	if in.Region != nil {
		region, err := in.Region.Capabilities(ctx)
		if err != nil {
			return nil, fmt.Errorf("cannot ask the region what it can do: %w", err)
		}
		caps.APIVersions = region.APIs
		version = region.Version
	}
	field := ""
	if in.Inputs.KubeVersion != "" {
		version, field = in.Inputs.KubeVersion, "kube_version"
	}
	if version == "" {
		return caps, nil
	}
	parsed, err := common.ParseKubeVersion(version)
	if err == nil {
		caps.KubeVersion = *parsed
	} else {
		r.add(place{}, field, "%q is not a version of Kubernetes", version)
	}
	return caps, nil
}

// checkKubeVersion returns an error of kind nf.Unsupported when the chart is not
// made for the cluster's version.
func checkKubeVersion(s source, caps *common.Capabilities) error {
	wanted := s.Metadata.KubeVersion
	if wanted == "" || chartutil.IsCompatibleRange(wanted, caps.KubeVersion.String()) {
		return nil
	}
	return nf.E(nf.Unsupported, "render", "package", nf.Violations{{
		File: s.at(chartFile).file, Field: "kubeVersion",
		Message: fmt.Sprintf("the chart is made for Kubernetes %s, and this is %s", wanted, caps.KubeVersion.Version),
	}})
}

// lookup implements the function of that name.
type lookup struct {
	meter   *meter
	region  render.Region
	read    bool     // the templates have read an object of the region
	secrets []string // the values that they have read from Secrets
	err     error    // the first error of the region
}

func (l *lookup) object(apiVersion, kind, namespace, name string) (map[string]any, error) {
	if l.region == nil {
		return map[string]any{}, nil
	}
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, fmt.Errorf("%q is not an API version", apiVersion)
	}
	found, err := l.region.Lookup(l.meter.ctx, nf.Ref{
		Group: version.Group, Version: version.Version, Kind: kind, Namespace: namespace, Name: name,
	})
	if err != nil {
		return nil, l.fail(kind, err)
	}
	if found == nil {
		return map[string]any{}, nil
	}
	l.meter.must(encodeCost(l.meter, []reflect.Value{reflect.ValueOf(found)}))
	l.read = true
	if version.Group == "" && (kind == "Secret" || kind == "SecretList") {
		l.secrets = append(l.secrets, nf.TextsOfSecret(found)...)
	}
	object, _ := plain(found).(map[string]any) // a template may change what it gets
	return object, nil
}

// fail records the error of a request. Once templates have read objects, a request
// may contain their values, and the region's message may quote them.
func (l *lookup) fail(kind string, err error) error {
	if l.err != nil {
		return l.err
	}
	l.err = fmt.Errorf("cannot look up %s: %w", kind, err)
	if l.read {
		l.err = &nf.Error{
			Kind: nf.KindOf(err), Op: "look up", Subject: "an object of the region", Reason: nf.ReasonOf(err), After: nf.AfterOf(err),
			Err: errors.New("the reason is withheld, because the templates have read objects of the region"),
		}
	}
	return l.err
}
