package helm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// slowRegion answers on request.
type slowRegion struct {
	region

	answer chan struct{}
}

func (s *slowRegion) Lookup(ctx context.Context, _ nf.Ref) (map[string]any, error) {
	select {
	case <-s.answer:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestTime(t *testing.T) {
	cases := map[string]struct {
		reason   string
		template string
		time     time.Duration
	}{
		"Loop":     {"a loop ends", "{{ range 100000000000000 }}{{ end }}", 1},
		"Function": {"a function is not called", "{{ if genPrivateKey \"rsa\" }}{{ end }}", 1},
		"Builtin":  {"nor one that cannot be replaced", "{{ if eq .Values 1 }}{{ end }}", 1},
		"Method":   {"what a method returns is not used", "{{ if .Files.AsSecrets }}{{ fail \"x\" }}{{ end }}", 1},
		"Print":    {"nothing is printed", "{{ .Values }}", 1},
		"Tpl":      {"nor parsed", "{{ if tpl \"\" . }}{{ end }}", 1},
		"Search":   {"a search of which each takes as long as the text ends", "{{ regexFindAll \"(x*y)?\" (repeat 1000000 \"x\") -1 | len }}", 200 * time.Millisecond},
		"Replace":  {"so does one for a replacement", "{{ regexReplaceAll \"(x*y)?\" (repeat 1000000 \"x\") \"$1\" | len }}", 200 * time.Millisecond},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			_, err := Renderer{time: tc.time}.Render(t.Context(), input(one("a: b\n"+tc.template)))
			want := fmt.Sprintf("cannot render package: c/templates/a.yaml:2: the rendering takes more than %s", tc.time)
			if nf.KindOf(err) != nf.Timeout || !strings.HasPrefix(fmt.Sprint(err), "cannot render package: c/templates/a.yaml:") || !strings.HasSuffix(fmt.Sprint(err), want[strings.Index(want, ": the"):]) {
				t.Errorf("%s: %v, want %q", tc.reason, err, want)
			}
		})
	}
}

// TestTimeOfTheRegion counts what the region takes.
func TestTimeOfTheRegion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := input(one("{{ $_ := lookup \"v1\" \"Node\" \"\" \"a\" }}" + configMap))
		in.Region = &slowRegion{answer: make(chan struct{})}
		_, err := Renderer{}.Render(t.Context(), in)
		if nf.KindOf(err) != nf.Timeout || fmt.Sprint(err) != "cannot render package: c/templates/a.yaml:1: the rendering takes more than 30s" {
			t.Errorf("a region that does not answer: %v", err)
		}
	})
}

func TestTimeOfACheck(t *testing.T) {
	t.Parallel()
	_, err := Renderer{time: 1}.Check(t.Context(), one(configMap))
	if nf.KindOf(err) != nf.Timeout || !strings.HasSuffix(fmt.Sprint(err), "Chart.yaml: the rendering takes more than 1ns") {
		t.Errorf("a check takes too long: %v", err)
	}
}

// countingRegion counts what it is asked.
type countingRegion struct {
	region

	asked int
}

func (c *countingRegion) Lookup(context.Context, nf.Ref) (map[string]any, error) {
	c.asked++
	return nil, nil
}

func TestLookupsAreCharged(t *testing.T) {
	t.Parallel()
	asked := &countingRegion{}
	in := input(one("{{ range until 100000 }}{{ $_ := lookup \"v1\" \"Node\" \"\" \"a\" }}{{ end }}" + configMap))
	in.Region = asked
	_, err := Renderer{}.Render(t.Context(), in)
	if nf.KindOf(err) != nf.TooLarge || asked.asked > maxWork/lookupCost {
		t.Errorf("a chart asks the region %d times: %v", asked.asked, err)
	}
}

func TestCallerLeaves(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, cancel := context.WithCancel(t.Context())
	in := input(one("a: b\n{{ $_ := lookup \"v1\" \"Node\" \"\" \"\" }}{{ range 100000000000 }}{{ end }}"))
	in.Region = &stopping{cancel: cancel}
	_, err := Renderer{}.Render(ctx, in)
	if nf.KindOf(err) != nf.Cancelled || !errors.Is(err, context.Canceled) || !strings.Contains(fmt.Sprint(err), "c/templates/a.yaml:2") {
		t.Errorf("a rendering that is cancelled on the way returns %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), -1)
	defer cancel()
	if _, err := (Renderer{}).Render(ctx, input(one(configMap))); nf.KindOf(err) != nf.Timeout || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a rendering that begins too late returns %v", err)
	}
}

// stopping is a region whose caller leaves when it is asked.
type stopping struct {
	region
	cancel func()
}

func (s *stopping) Lookup(context.Context, nf.Ref) (map[string]any, error) {
	s.cancel()
	return nil, nil
}
