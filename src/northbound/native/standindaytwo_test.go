package native_test

import (
	"context"
	"io"
	"strings"
	"time"

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

func (s *standIn) PreviewConfigure(_ context.Context, _ string, req nf.ConfigureRequest) (nf.Preview, error) {
	spec := nf.Spec{Package: s.instance.Package, Amendments: s.instance.Amendments}
	if err := req.Edit(&spec); err != nil {
		return nf.Preview{}, err
	}
	s.ask(configuration{spec.Amendments, req.Options})
	return s.preview, s.fail["PreviewConfigure"]
}

func (s *standIn) Test(ctx context.Context, id string, req nf.TestRequest) (nf.Operation, error) {
	if _, err := s.Instance(ctx, id); err != nil {
		return nf.Operation{}, err
	}
	s.ask(req)
	return s.operation, s.fail["Test"]
}

func (s *standIn) Act(ctx context.Context, id string, req nf.ActRequest) (nf.Operation, error) {
	if _, err := s.Instance(ctx, id); err != nil {
		return nf.Operation{}, err
	}
	s.ask(req)
	return s.operation, s.fail["Act"]
}

func (s *standIn) PreviewAct(_ context.Context, _ string, req nf.ActRequest) (nf.Preview, error) {
	s.ask(req)
	return s.preview, s.fail["PreviewAct"]
}

func (s *standIn) PreviewTest(ctx context.Context, id string, req nf.TestRequest) (nf.Preview, error) {
	if _, err := s.Instance(ctx, id); err != nil {
		return nf.Preview{}, err
	}
	s.ask(req)
	return s.preview, s.fail["PreviewTest"]
}

func (s *standIn) PreviewAdopt(_ context.Context, req nf.AdoptRequest) (nf.Preview, error) {
	s.ask(req)
	return s.preview, s.fail["PreviewAdopt"]
}

func (s *standIn) PreviewRetry(ctx context.Context, operation string, opts nf.Options) (nf.Preview, error) {
	if _, err := s.Operation(ctx, operation); err != nil {
		return nf.Preview{}, err
	}
	s.ask(repair{"preview retry", operation, opts})
	return s.preview, s.fail["PreviewRetry"]
}

func (s *standIn) PreviewUndo(ctx context.Context, operation string, opts nf.Options) (nf.Preview, error) {
	if _, err := s.Operation(ctx, operation); err != nil {
		return nf.Preview{}, err
	}
	s.ask(repair{"preview undo", operation, opts})
	return s.preview, s.fail["PreviewUndo"]
}

func (s *standIn) Adopt(_ context.Context, req nf.AdoptRequest) (nf.Operation, error) {
	s.ask(req)
	return s.operation, s.fail["Adopt"]
}

func (s *standIn) DeadLetters(context.Context) ([]native.DeadLetter, error) {
	return copies(s, s.deadLetter, func(l *native.DeadLetter, id string) { l.ID = id }), s.fail["DeadLetters"]
}

func (s *standIn) Resend(_ context.Context, id string) (native.DeadLetter, error) {
	l := s.deadLetter
	if id != l.ID {
		return l, missing("dead letter", id)
	}
	s.ask("resend " + id)
	l.Attempts, l.Due, l.Died = 0, noon(9), time.Time{}
	return l, s.fail["Resend"]
}

func (s *standIn) Discard(_ context.Context, id string) error {
	if id != s.deadLetter.ID {
		return missing("dead letter", id)
	}
	s.ask("discard " + id)
	return s.fail["Discard"]
}

// fetch is what a chart was asked for with.
type fetch struct {
	project string
	ref     native.ChartRef
}

func (s *standIn) Fetch(ctx context.Context, project string, ref native.ChartRef, into func(context.Context, io.Reader) error) (string, error) {
	s.ask(fetch{project, ref})
	if err := into(ctx, strings.NewReader(s.chart)); err != nil {
		return "", err
	}
	return s.source, s.fail["Fetch"]
}

func (s *standIn) PreviewTerminate(_ context.Context, _ string, req nf.TerminateRequest) (nf.Preview, error) {
	s.ask(req)
	return s.preview, s.fail["PreviewTerminate"]
}

func (s *standIn) Pods(context.Context, string) ([]nf.Pod, error) {
	var out []nf.Pod
	for _, h := range s.health {
		out = append(out, nf.Pod{Health: h, Workload: h.Ref, Interfaces: []nf.Interface{{Name: "net1", Network: "oam", IPs: []string{"10.1.0.9"}}}})
	}
	return out, s.fail["Pods"]
}

func (s *standIn) PreviewInstantiate(_ context.Context, req nf.InstantiateRequest) (nf.Preview, error) {
	s.ask(req)
	p := s.preview
	if !req.Manifests {
		p.Manifests = nil
	}
	return p, s.fail["PreviewInstantiate"]
}

func (s *standIn) PreviewUpgrade(_ context.Context, _ string, req nf.UpgradeRequest) (nf.Preview, error) {
	up, err := s.edited(req)
	if err != nil {
		return nf.Preview{}, err
	}
	s.ask(up)
	return s.preview, s.fail["PreviewUpgrade"]
}
