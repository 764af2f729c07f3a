package telemetry_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// TestExpressions checks that whatever is asked of Prometheus is there: each
// metric, each label of it, and each value that a label is compared with. An
// alert on a metric that does not exist never fires.
func TestExpressions(t *testing.T) {
	known := families(t, busy(t))
	for where, expr := range expressions(t) {
		if !strings.Contains(expr, "k8splugin_") {
			t.Errorf("%s: %q asks for nothing of the service", where, expr)
		}
		for _, problem := range checkExpression(expr, known) {
			t.Errorf("%s: %q %s", where, expr, problem)
		}
	}
}

// TestEveryMetricIsShown checks that the dashboard leaves nothing out.
func TestEveryMetricIsShown(t *testing.T) {
	known := families(t, busy(t))
	shown := map[string]bool{}
	for where, expr := range expressions(t) {
		if !strings.HasPrefix(where, dashboardFile) {
			continue
		}
		for _, name := range metricName.FindAllString(expr, -1) {
			if f := familyOf(name, known); f != nil {
				shown[f.GetName()] = true
			}
		}
	}
	left := map[string]string{
		"k8splugin_region_condition_since_timestamp_seconds": "the state timeline shows it",
	}
	for name := range known {
		if !shown[name] && left[name] == "" {
			t.Errorf("no panel shows %s", name)
		}
	}
}

func expressions(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	d := readDashboard(t)
	for _, p := range d.Panels {
		for i, target := range p.Targets {
			out[fmt.Sprintf("%s: panel %d %q, query %d", dashboardFile, p.ID, p.Title, i)] = target.Expr
		}
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			out[dashboardFile+": variable "+v.Name] = v.Definition
		}
	}
	for _, a := range readAlerts(t) {
		out[alertsFile+": "+a.Alert] = a.Expr
	}
	if len(out) < 40 {
		t.Fatalf("there are %d expressions, want those of all panels and alerts", len(out))
	}
	return out
}

var (
	metricName = regexp.MustCompile(`\bk8splugin_[a-z_]+`)
	selector   = regexp.MustCompile(`(k8splugin_[a-z_]+)\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`([a-z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	grouping   = regexp.MustCompile(`\b(?:by|on)\s*\(([^)]*)\)`)
	fromScrape = []string{"instance", "job"} // labels that Prometheus adds
)

// checkExpression returns what is wrong with an expression.
func checkExpression(expr string, known map[string]*dto.MetricFamily) []string {
	var problems []string
	labels := map[string]bool{"le": strings.Contains(expr, "_bucket")}
	for _, l := range fromScrape {
		labels[l] = true
	}
	for _, name := range metricName.FindAllString(expr, -1) {
		f := familyOf(name, known)
		if f == nil {
			problems = append(problems, "asks for "+name+", which is not there")
			continue
		}
		for _, l := range labelNames(f) {
			labels[l] = true
		}
	}
	for _, s := range selector.FindAllStringSubmatch(expr, -1) {
		problems = append(problems, checkMatchers(s[2], familyOf(s[1], known))...)
	}
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(g[1], ",") {
			if label = strings.TrimSpace(label); !labels[label] {
				problems = append(problems, "groups by "+label+", which none of its metrics has")
			}
		}
	}
	return problems
}

func checkMatchers(text string, f *dto.MetricFamily) []string {
	var problems []string
	for _, m := range matcher.FindAllStringSubmatch(text, -1) {
		label, operator, value := m[1], m[2], m[3]
		switch {
		case f == nil || slices.Contains(fromScrape, label):
		case !slices.Contains(labelNames(f), label):
			problems = append(problems, "compares "+label+", which "+f.GetName()+" has not")
		case operator == "=" && !strings.HasPrefix(f.GetName(), "k8splugin_http_") && !slices.Contains(labelValues(f, label), value):
			problems = append(problems, "looks for "+label+" "+value+", which "+f.GetName()+" never has")
		}
	}
	return problems
}

// familyOf returns the metric that a name in an expression belongs to, or nil.
func familyOf(name string, known map[string]*dto.MetricFamily) *dto.MetricFamily {
	if f := known[name]; f != nil && f.GetType() != dto.MetricType_HISTOGRAM {
		return f
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && known[base].GetType() == dto.MetricType_HISTOGRAM {
			return known[base]
		}
	}
	return nil
}

func labelValues(f *dto.MetricFamily, label string) []string {
	values := map[string]bool{}
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == label {
				values[l.GetValue()] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(values))
}

// TestCheckExpression proves the checker.
func TestCheckExpression(t *testing.T) {
	known := families(t, busy(t))
	cases := map[string]struct {
		reason string
		expr   string
		want   string // in a problem; empty: there is none
	}{
		"Good":       {"what is there may be asked for", `sum by (le, method, instance) (rate(k8splugin_store_request_duration_seconds_bucket{outcome="ok", job=~"x"}[5m]))`, ""},
		"Metric":     {"a metric has one name", `k8splugin_operation_total`, "not there"},
		"Histogram":  {"a histogram has no value of its own", `k8splugin_operation_duration_seconds`, "not there"},
		"Suffix":     {"and a counter no buckets", `k8splugin_operations_total_bucket`, "not there"},
		"Label":      {"a label is one of the metric's own", `k8splugin_operations_total{outcome="ok"}`, "compares outcome"},
		"Value":      {"a value is one that is written", `k8splugin_operations_total{state="fialed"}`, "never has"},
		"Grouping":   {"one groups by what is there", `sum by (verbs) (k8splugin_operations_total)`, "groups by verbs"},
		"GroupingLe": {"only buckets have bounds", `sum by (le) (k8splugin_operations_total)`, "groups by le"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(checkExpression(tc.expr, known), "; ")
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s: the problems are %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
