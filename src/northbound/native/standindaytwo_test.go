package native_test

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
)

// configuration is what a configuration was asked for: the amendments that the
// edit makes of the instance's.
type configuration struct {
	amendments []nf.Amendment
	options    nf.Options
}

func (s *standIn) Configure(ctx context.Context, id string, req nf.ConfigureRequest) (nf.Operation, error) {
	if _, err := s.Instance(ctx, id); err != nil {
		return nf.Operation{}, err
	}
	var spec nf.Spec
	for range 2 { // as an engine does that was overtaken
		spec = nf.Spec{Package: s.instance.Package, Amendments: s.instance.Amendments}
		if err := req.Edit(&spec); err != nil {
			return nf.Operation{}, err
		}
	}
	s.ask(configuration{spec.Amendments, req.Options})
	return s.operation, s.fail["Configure"]
}

func (s *standIn) Test(ctx context.Context, id string, req nf.TestRequest) (nf.Operation, error) {
	if _, err := s.Instance(ctx, id); err != nil {
		return nf.Operation{}, err
	}
	s.ask(req)
	return s.operation, s.fail["Test"]
}

// fetch is what a chart was asked for with.
type fetch struct {
	project string
	ref     native.ChartRef
}

func (s *standIn) Fetch(_ context.Context, project string, ref native.ChartRef) (native.Chart, error) {
	s.ask(fetch{project, ref})
	return s.chart, s.fail["Fetch"]
}
