package lifecycle_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestSensitiveInputsAreHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := newSite(t)
		e := s.start(func(c *config) { c.Work.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		with := func(secret any) nf.UpgradeRequest {
			return nf.UpgradeRequest{Edit: func(s *nf.Spec) error {
				s.Inputs.Parameters = map[string]any{"secret": secret}
				return nil
			}}
		}
		first := e.up(t, "a", func(r *nf.InstantiateRequest) {
			r.Inputs.Parameters = map[string]any{"secret": "old-pass", "deep": []any{map[string]any{"secret": "deep-pass"}}}
		})

		s.cluster.diff = []nf.Field{
			{Path: "data.whole", Old: "old-pass", New: "new\"pass"}, {Path: "data.part", Old: "pw=old-pass;", New: int64(12)},
			{Path: "data.map", New: map[string]any{"k": []any{"new\"pass", true}}}, {Path: "data.plain", Old: "x", New: 1.5},
		}
		preview, err := e.PreviewUpgrade(t.Context(), first.Subject.ID, with(map[string]any{"inner": "new\"pass", "pin": 12.0}))
		if err != nil {
			t.Fatal(err)
		}
		want := []nf.Field{
			{Path: "data.whole", Old: nf.Masked, New: nf.Masked}, {Path: "data.part", Old: nf.Masked, New: nf.Masked},
			{Path: "data.map", New: map[string]any{"k": []any{nf.Masked, true}}}, {Path: "data.plain", Old: "x", New: 1.5},
		}
		if diff := cmp.Diff(want, preview.Changes[0].Fields); diff != "" {
			t.Errorf("preview (-want +got):\n%s", diff)
		}

		s.cluster.refuse("a", nf.E(nf.Invalid, "apply", "ConfigMap ns/a", nf.Violations{{Object: configMap("a"), Field: "data[new-pass]", Message: "got new-pass, had old-pass, deep-pass"}}))
		op, err := e.Upgrade(t.Context(), first.Subject.ID, with("new-pass"))
		if err != nil {
			t.Fatal(err)
		}
		op = e.end(t, op)
		violations := nf.Violations{{Object: configMap("a"), Field: "data[" + nf.Masked + "]", File: "list", Line: 1, Message: "got " + nf.Masked + ", had " + nf.Masked + ", " + nf.Masked}}
		if diff := cmp.Diff(violations, op.Failure.Violations); diff != "" || op.Failure.Kind != nf.Invalid {
			t.Errorf("failure (-want +got):\n%s", diff)
		}
		in, _ := e.Instance(t.Context(), first.Subject.ID)
		e.stop() // the log is whole
		for where, text := range map[string]string{"failure": op.Failure.Message, "instance": in.Message, "log": log.String()} {
			if strings.Contains(text, "-pass") || !strings.Contains(text, nf.Masked) {
				t.Errorf("the %s says: %s", where, text)
			}
		}
	})
}

// TestSensitiveDefaultsAreHidden checks that a package's own secrets are as
// secret as those that are given to it.
func TestSensitiveDefaultsAreHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		s.cluster.refuse("a", nf.E(nf.Invalid, "apply", "ConfigMap ns/a", nf.Violations{{Object: configMap("a"), Message: "got default-pass, which is unused"}}))
		op := e.up(t, "a", func(r *nf.InstantiateRequest) {
			r.Inputs.Parameters = map[string]any{"defaults": true, "size": "pw=default-pass"}
		})
		want := nf.Violations{{Object: configMap("a"), File: "list", Line: 1, Message: "got " + nf.Masked + ", which is unused"}}
		if diff := cmp.Diff(want, op.Failure.Violations); diff != "" {
			t.Errorf("what the plan repeats is masked, and nothing else (-want +got):\n%s", diff)
		}
	})
}

func TestSensitiveNamesAreKeptOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		secret := nf.Inputs{Parameters: map[string]any{"secret": "x"}}
		first := e.up(t, "a", func(r *nf.InstantiateRequest) { r.Inputs = secret })
		for _, name := range []string{"b", "c"} {
			op, err := e.Configure(t.Context(), first.Subject.ID, nf.ConfigureRequest{Edit: func(s *nf.Spec) error {
				s.Amendments = append(s.Amendments, nf.Amendment{Name: name, Package: name, Inputs: secret})
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			e.end(t, op)
		}
		in, err := e.Instance(t.Context(), first.Subject.ID)
		if diff := cmp.Diff([]string{"secret"}, in.Sensitive); diff != "" || err != nil {
			t.Errorf("the record grows with each change: %v (-want +got):\n%s", err, diff)
		}
	})
}

func TestAnObjectThatIsDeletedMeanwhileFailsTheStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.cluster.status["a"] = health{nf.InProgress, "pending"}
		e := s.start()
		op, err := e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "a"}})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.cluster.lose("a")
		if op = e.end(t, op); op.Failure == nil || op.Failure.Kind != nf.Failed || !strings.Contains(op.Failure.Message, "deleted by another client") {
			t.Errorf("operation: %+v", op.Failure)
		}
	})
}
