package helm

import (
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/engine"

	"github.com/multicloud-k8s/k8splugin/src/render/helm/helmtest"
)

// BenchmarkTemplates runs the templates of all charts but the random ones: what
// it costs to count what they do is the difference.
func BenchmarkTemplates(b *testing.B) {
	charts := helmtest.Charts()
	for _, random := range []string{"certificates", "passwords"} {
		delete(charts, random)
	}
	run := func(b *testing.B, templates func(s source, top common.Values) error) {
		for b.Loop() {
			for name, files := range charts {
				b.StopTimer()
				s, _ := load(files, &report{})
				top := resolve(s, map[string]any{}, firstRelease, testCapabilities(), &report{})
				b.StartTimer()
				if err := templates(s, top); err != nil {
					b.Fatal(name, err)
				}
			}
		}
	}
	b.Run("Helm", func(b *testing.B) {
		run(b, func(s source, top common.Values) error {
			_, err := engine.Render(s.chart, top)
			return err
		})
	})
	b.Run("Counted", func(b *testing.B) {
		run(b, func(s source, top common.Values) error {
			_, err := execute(s, top, unasked(b.Context()), &report{})
			return err
		})
	})
}
