package nf_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestErrorKindsSurviveWrapping(t *testing.T) {
	cause := errors.New("boom")
	cases := map[string]struct {
		reason string
		err    error
		kind   nf.Kind
		text   string
	}{
		"Nil":        {reason: "no error has no kind of its own", err: nil, kind: nf.Internal},
		"Foreign":    {reason: "an error of another package is ours to answer for", err: cause, kind: nf.Internal, text: "boom"},
		"Plain":      {reason: "the kind is the error's", err: nf.E(nf.NotFound, "get", "package p", nil), kind: nf.NotFound, text: "cannot get package p: it does not exist"},
		"Wrapped":    {reason: "wrapping keeps the kind", err: fmt.Errorf("cannot begin: %w", nf.E(nf.Busy, "upgrade", "x", cause)), kind: nf.Busy, text: "cannot begin: cannot upgrade x: boom"},
		"Outermost":  {reason: "the outermost kind decides", err: nf.E(nf.Conflict, "apply", "x", nf.E(nf.NotFound, "get", "y", nil)), kind: nf.Conflict, text: "cannot apply x: cannot get y: it does not exist"},
		"Violations": {reason: "violations alone are an invalid input", err: nf.Violations{{Field: "f", Message: "is bad"}}, kind: nf.Invalid, text: "f: is bad"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := nf.KindOf(tc.err); got != tc.kind {
				t.Errorf("%s: kind %s, want %s", tc.reason, got, tc.kind)
			}
			if tc.err != nil && tc.err.Error() != tc.text {
				t.Errorf("%s: text %q, want %q", tc.reason, tc.err, tc.text)
			}
		})
	}
}

func TestErrorDetailsAreFoundDeepInTheChain(t *testing.T) {
	inner := &nf.Error{Kind: nf.Unreachable, Op: "probe", Subject: "s", Reason: "tls", Operation: "op1", Err: nf.Violations{{Message: "m"}}}
	err := fmt.Errorf("a: %w", nf.E(nf.Unreachable, "register", "r", fmt.Errorf("b: %w", inner)))
	if nf.ReasonOf(err) != "tls" || nf.OperationOf(err) != "op1" || len(nf.ViolationsOf(err)) != 1 {
		t.Errorf("reason %q, operation %q, violations %v", nf.ReasonOf(err), nf.OperationOf(err), nf.ViolationsOf(err))
	}
	if nf.ReasonOf(nil) != "" || nf.OperationOf(errors.New("x")) != "" || nf.ViolationsOf(nil) != nil {
		t.Error("errors without details have some")
	}
}

func TestKindTextRoundTrip(t *testing.T) {
	for k := nf.Internal; k <= nf.Cancelled; k++ {
		text, _ := k.MarshalText()
		var back nf.Kind
		if _ = back.UnmarshalText(text); back != k {
			t.Errorf("%s comes back as %s", k, back)
		}
	}
	got := nf.Busy
	if _ = got.UnmarshalText([]byte("from a later version")); got != nf.Internal {
		t.Errorf("an unknown kind is %s", got)
	}
}

func TestSecretNeverPrints(t *testing.T) {
	secret := nf.Secret("hunter2")
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", secret, "region", nf.Region{ID: "east", Access: nf.Access{Token: secret, Kubeconfig: secret}})
	for name, text := range map[string]string{
		"v": fmt.Sprintf("%v", secret), "s": fmt.Sprintf("%s", secret), "q": fmt.Sprintf("%q", secret), "x": fmt.Sprintf("%x", secret),
		"struct": fmt.Sprintf("%+v", struct{ S nf.Secret }{secret}), "log": log.String(),
	} {
		if strings.Contains(text, "hunter2") || strings.Contains(text, "aHVudGVyMg") {
			t.Errorf("%s shows the secret: %s", name, text)
		}
	}
	stored, _ := json.Marshal(secret)
	var back nf.Secret
	if err := json.Unmarshal(stored, &back); err != nil || string(back) != "hunter2" {
		t.Errorf("the stored form does not come back: %v", err)
	}
}

func TestOperationMoves(t *testing.T) {
	states := []nf.OperationState{nf.Queued, nf.Running, nf.Succeeded, nf.OperationFailed, nf.OperationCancelled}
	allowed := map[string]bool{
		"queued running": true, "queued failed": true, "queued cancelled": true,
		"running running": true, "running succeeded": true, "running failed": true, "running cancelled": true,
	}
	for _, from := range states {
		for _, to := range states {
			op := nf.Operation{ID: "o", State: from}
			err := op.Move(to)
			if want := allowed[string(from)+" "+string(to)]; (err == nil) != want {
				t.Errorf("%s to %s: %v, want allowed %t", from, to, err, want)
			}
			if err != nil && op.State != from {
				t.Errorf("a refused move changed %s to %s", from, op.State)
			}
		}
	}
}

func TestInstantiateRequestValidate(t *testing.T) {
	cases := map[string]struct {
		reason string
		edit   func(*nf.InstantiateRequest)
		fields []string
	}{
		"Valid":       {reason: "a minimal request is enough", edit: func(*nf.InstantiateRequest) {}},
		"Empty":       {reason: "every missing field is named at once", edit: func(r *nf.InstantiateRequest) { *r = nf.InstantiateRequest{} }, fields: []string{"cloud_region_id", "namespace", "csar_id"}},
		"Namespace":   {reason: "capitals are not for namespaces", edit: func(r *nf.InstantiateRequest) { r.Namespace = "Prod" }, fields: []string{"namespace"}},
		"RegionPath":  {reason: "an id is a path segment", edit: func(r *nf.InstantiateRequest) { r.Region = "a/b" }, fields: []string{"cloud_region_id"}},
		"Dots":        {reason: "an id is not a relative path", edit: func(r *nf.InstantiateRequest) { r.Package = ".." }, fields: []string{"csar_id"}},
		"Labels":      {reason: "labels are Kubernetes labels", edit: func(r *nf.InstantiateRequest) { r.Labels = map[string]string{"a b": "c"} }, fields: []string{"labels.a b"}},
		"OnFailure":   {reason: "there are two policies", edit: func(r *nf.InstantiateRequest) { r.OnFailure = "explode" }, fields: []string{"on_failure"}},
		"Timeout":     {reason: "an operation has an end", edit: func(r *nf.InstantiateRequest) { r.Timeout = 25 * time.Hour }, fields: []string{"timeout"}},
		"Description": {reason: "a description is a text", edit: func(r *nf.InstantiateRequest) { r.Description = "a\x00b" }, fields: []string{"vnf_instance_description"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "p"}}
			tc.edit(&req)
			err := req.Validate()
			var fields []string
			for _, v := range nf.ViolationsOf(err) {
				fields = append(fields, v.Field)
			}
			if diff := cmp.Diff(tc.fields, fields); diff != "" || (err != nil) != (tc.fields != nil) {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, diff)
			}
		})
	}
}

func TestComponents(t *testing.T) {
	items := []nf.Item{
		{Ref: nf.Ref{Kind: "Service", Name: "b"}}, {Ref: nf.Ref{Kind: "Deployment", Name: "d"}}, {Ref: nf.Ref{Kind: "Service", Name: "a"}},
	}
	want := map[string][]string{"service": {"a", "b"}, "deployment": {"d"}}
	if diff := cmp.Diff(want, nf.Components(items)); diff != "" {
		t.Errorf("components (-want +got):\n%s", diff)
	}
}
