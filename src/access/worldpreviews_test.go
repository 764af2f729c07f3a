package access_test

import (
	"context"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func (w *world) PreviewConfigure(_ context.Context, id string, req nf.ConfigureRequest) (nf.Preview, error) {
	return nf.Preview{}, req.Edit(&nf.Spec{Package: "pkg-" + strings.Split(id, "-")[1]})
}

func (w *world) PreviewAct(context.Context, string, nf.ActRequest) (nf.Preview, error) {
	return nf.Preview{}, nil
}

func (w *world) PreviewTest(context.Context, string, nf.TestRequest) (nf.Preview, error) {
	return nf.Preview{}, nil
}

func (w *world) PreviewAdopt(context.Context, nf.AdoptRequest) (nf.Preview, error) {
	return nf.Preview{}, nil
}

func (w *world) PreviewRetry(context.Context, string, nf.Options) (nf.Preview, error) {
	return nf.Preview{}, nil
}

func (w *world) PreviewUndo(context.Context, string, nf.Options) (nf.Preview, error) {
	return nf.Preview{}, nil
}
