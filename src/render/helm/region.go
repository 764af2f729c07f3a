package helm

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// capabilities returns the cluster's capabilities as the chart sees them: the
// region's API versions, and the Kubernetes version of the inputs or else of
// the region. Without a region they are Helm's defaults.
func capabilities(ctx context.Context, in render.Input, r *report) (*common.Capabilities, error) {
	caps := common.DefaultCapabilities.Copy()
	version := ""
	if in.Region != nil {
		region, err := in.Region.Capabilities(ctx)
		if err != nil {
			return nil, fmt.Errorf("cannot get the capabilities of the region: %w", err)
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

// checkKubeVersion returns nf.Unsupported if the chart does not support the
// cluster's version of Kubernetes.
func checkKubeVersion(s source, caps *common.Capabilities) error {
	wanted := s.chart.Metadata.KubeVersion
	if wanted == "" || chartutil.IsCompatibleRange(wanted, caps.KubeVersion.String()) {
		return nil
	}
	return nf.E(nf.Unsupported, "render", "package", nf.Violations{{
		File: s.at(chartFile).file, Field: "kubeVersion",
		Message: fmt.Sprintf("the chart requires Kubernetes %s, but the region has %s", wanted, caps.KubeVersion.Version),
	}})
}

// lookup implements the template function lookup.
type lookup struct {
	meter   *meter
	region  render.Region
	turn    *render.Turn
	chart   *chart.Chart
	size    int      // of the chart in memory; 0 until it is needed
	read    bool     // whether the templates have read an object of the region
	secrets []string // the values that the templates have read from Secrets
	err     error    // the first error of the region
	lint    bool     // as in render.Input
	refused []string // messages of the functions required and fail; with lint only
}

func (l *lookup) object(apiVersion, kind, namespace, name string) (map[string]any, error) {
	if l.region == nil {
		return map[string]any{}, nil
	}
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, fmt.Errorf("%q is not an API version", apiVersion)
	}
	found, err := l.fetch(nf.Ref{Group: version.Group, Version: version.Version, Kind: kind, Namespace: namespace, Name: name})
	if err != nil {
		return nil, err
	}
	if found == nil {
		return map[string]any{}, nil
	}
	l.meter.must(encodeCost(l.meter, []reflect.Value{reflect.ValueOf(found)}))
	l.read = true
	if version.Group == "" && (kind == "Secret" || kind == "SecretList") {
		l.secrets = append(l.secrets, nf.TextsOfSecret(found)...)
	}
	object, _ := normalize(found).(map[string]any) // a copy, since a template may change it
	return object, nil
}

// fetch reads an object from the region, and yields the rendering's slot in the
// meantime. The time that the rendering then waits for a slot does not count
// against its own limit.
func (l *lookup) fetch(ref nf.Ref) (found map[string]any, err error) {
	answered := time.Now()
	err = l.turn.Yield(l.meter.caller, l.memory(), func() (err error) {
		defer func() { answered = time.Now() }()
		if found, err = l.region.Lookup(l.meter.ctx, ref); err != nil {
			return l.fail(ref.Kind, err)
		}
		return nil
	})
	l.meter.extend(time.Since(answered))
	if l.err == nil {
		l.err = err
	}
	return found, err
}

// memory estimates how many bytes of memory the rendering uses.
func (l *lookup) memory() int {
	const least = 1 << 20
	if l.size == 0 {
		l.size = least + multiplied(l.chart)
	}
	return min(l.size+2*l.meter.used, render.MaxMemory) // text takes up to twice its charge while it grows
}

// fail records the error of a request. Once templates have read objects, a
// request may contain values of them, and the region's message may quote these.
func (l *lookup) fail(kind string, err error) error {
	if l.err != nil {
		return l.err
	}
	l.err = fmt.Errorf("cannot look up %s: %w", kind, err)
	if l.read {
		l.err = &nf.Error{
			Kind: nf.KindOf(err), Op: "look up", Subject: "an object of the region", Reason: nf.ReasonOf(err), RetryAfter: nf.RetryAfterOf(err),
			Err: errors.New("the reason is withheld, because the templates have read objects of the region"),
		}
	}
	return l.err
}
