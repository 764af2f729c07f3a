package telemetry_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write the table of metrics in docs/observability.md")

const (
	dashboardFile = "deployments/grafana/k8splugin.json"
	alertsFile    = "deployments/prometheus/alerts.yaml"
	docsFile      = "docs/observability.md"
	runbooks      = "https://github.com/multicloud-k8s/k8splugin/blob/main/" + docsFile
)

// readFile returns a file of the repository.
func readFile(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

type dashboard struct {
	UID           string `json:"uid"`
	Title         string `json:"title"`
	SchemaVersion int    `json:"schemaVersion"`
	Templating    struct {
		List []struct {
			Name, Type string
			Definition string
		}
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

type panel struct {
	ID          int
	Type        string
	Title       string
	Description string
	GridPos     struct{ X, Y, W, H int }
	Datasource  struct{ Type, UID string }
	Targets     []struct {
		Datasource struct{ Type, UID string }
		Expr       string
	}
}

type alert struct {
	Alert       string
	Expr        string
	For         *string
	Labels      map[string]string
	Annotations map[string]string
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal(readFile(t, dashboardFile), &d); err != nil {
		t.Fatalf("%s: %v", dashboardFile, err)
	}
	return d
}

// readAlerts returns the alerts of all groups.
func readAlerts(t *testing.T) []alert {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []alert
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(readFile(t, alertsFile))))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		t.Fatalf("%s: %v", alertsFile, err)
	}
	var out []alert
	for _, g := range file.Groups {
		out = append(out, g.Rules...)
	}
	return out
}

func TestDashboard(t *testing.T) {
	d := readDashboard(t)
	if d.UID != "k8splugin" || d.Title == "" || d.SchemaVersion < 39 {
		t.Errorf("uid %q, title %q, schema %d: want a dashboard that can be linked to, of a recent Grafana", d.UID, d.Title, d.SchemaVersion)
	}
	if v := d.Templating.List; len(v) == 0 || v[0].Name != "datasource" || v[0].Type != "datasource" {
		t.Errorf("the variables are %v, want the data source first: every Grafana has another one", v)
	}
	var rows []string
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("%q has the id %d, which another panel has, too", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			rows = append(rows, p.Title)
			continue
		}
		if p.Title == "" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d, %q, does not say what it shows, or shows nothing", p.ID, p.Title)
		}
		for _, target := range p.Targets {
			if p.Datasource.UID != "${datasource}" || target.Datasource.UID != "${datasource}" {
				t.Errorf("%q asks the data source %q, want that of the variable", p.Title, target.Datasource.UID)
			}
		}
	}
	if diff := cmp.Diff([]string{"Service", "Operations", "Regions", "Store", "Replicas", "HTTP", "Access", "ONAP"}, rows); diff != "" {
		t.Errorf("the rows differ (-want +got):\n%s", diff)
	}
}

func TestDashboardPanelsDoNotOverlap(t *testing.T) {
	taken := map[[2]int]string{}
	for _, p := range readDashboard(t).Panels {
		g := p.GridPos
		if g.W < 1 || g.H < 1 || g.X < 0 || g.X+g.W > 24 {
			t.Errorf("%q lies outside of the 24 columns: %+v", p.Title, g)
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other, ok := taken[[2]int{x, y}]; ok {
					t.Fatalf("%q lies on %q", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

func TestAlerts(t *testing.T) {
	docs := string(readFile(t, docsFile))
	names := map[string]bool{}
	for _, a := range readAlerts(t) {
		if names[a.Alert] || !regexp.MustCompile(`^K8splugin[A-Z][A-Za-z]+$`).MatchString(a.Alert) {
			t.Errorf("%q is no name, or another alert's", a.Alert)
		}
		names[a.Alert] = true
		if a.For == nil || !regexp.MustCompile(`^\d+[mh]$`).MatchString(*a.For) {
			t.Errorf("%s does not say for how long it must be so", a.Alert)
		}
		if s := a.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s has the severity %q, want critical or warning", a.Alert, s)
		}
		for _, annotation := range []string{"summary", "description"} {
			if len(a.Annotations[annotation]) < len("It fails") {
				t.Errorf("%s has no %s", a.Alert, annotation)
			}
		}
		if got, want := a.Annotations["runbook_url"], runbooks+"#"+strings.ToLower(a.Alert); got != want {
			t.Errorf("%s has the runbook URL %q, want %q", a.Alert, got, want)
		}
		if len(paragraph(docs, a.Alert)) < 80 {
			t.Errorf("%s has no runbook in %s", a.Alert, docsFile)
		}
	}
	if len(names) < 18 {
		t.Errorf("there are %d alerts, want all of them", len(names))
	}
	for _, heading := range regexp.MustCompile(`(?m)^### (K8splugin\w+)$`).FindAllStringSubmatch(docs, -1) {
		if !names[heading[1]] {
			t.Errorf("%s explains %s, which is no alert", docsFile, heading[1])
		}
	}
}

// TestFailingExcludesONAP checks that the alert on failed requests excludes the routes of
// ONAP's API and no others: that API answers 500 for a missing object.
func TestFailingExcludesONAP(t *testing.T) {
	all := readAlerts(t)
	at := slices.IndexFunc(all, func(a alert) bool { return a.Alert == "K8spluginFailing" })
	if at < 0 {
		t.Fatal("there is no alert on failed requests")
	}
	found := regexp.MustCompile(`route!~"([^"]+)"`).FindAllStringSubmatch(all[at].Expr, -1)
	if len(found) != 2 || found[0][1] != found[1][1] {
		t.Fatalf("the routes are %q, want the same in both parts of the quotient", found)
	}
	excluded := regexp.MustCompile("^(?:" + found[0][1] + ")$") // as Prometheus anchors it
	var api struct {
		Paths map[string]map[string]yaml.Node
	}
	if err := yaml.Unmarshal(readFile(t, "swagger.yaml"), &api); err != nil {
		t.Fatal(err)
	}
	count := 0
	for path, methods := range api.Paths {
		for method, node := range methods {
			var o struct {
				ID string `yaml:"operationId"`
			}
			if node.Kind != yaml.MappingNode || node.Decode(&o) != nil || o.ID == "" {
				continue
			}
			onap := strings.HasPrefix(o.ID, "onap")
			if onap {
				count++
			}
			if excluded.MatchString(path) != onap {
				t.Errorf("%s %s (%s): excluded is %t, want %t", method, path, o.ID, !onap, onap)
			}
		}
	}
	if count < 50 {
		t.Errorf("swagger.yaml has %d operations of ONAP's API, want all of them", count)
	}
}

// paragraph returns what stands below a heading.
func paragraph(docs, heading string) string {
	_, rest, _ := strings.Cut(docs, "\n### "+heading+"\n")
	text, _, _ := strings.Cut(rest, "\n#")
	return strings.TrimSpace(text)
}

const (
	tableBegin = "<!-- metrics: written by go test ./src/telemetry -update -->\n"
	tableEnd   = "<!-- end of metrics -->"
)

// TestDocs compares the table of metrics with the metrics.
func TestDocs(t *testing.T) {
	docs := string(readFile(t, docsFile))
	before, rest, ok := strings.Cut(docs, tableBegin)
	table, after, end := strings.Cut(rest, tableEnd)
	if !ok || !end {
		t.Fatalf("%s has no place for the table of metrics", docsFile)
	}
	want := metricTable(families(t, busy(t)))
	if *update {
		text := before + tableBegin + want + tableEnd + after
		if err := os.WriteFile(filepath.Join("..", "..", filepath.FromSlash(docsFile)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, table); diff != "" {
		t.Errorf("%s does not say what there is; run the test with -update (-want +got):\n%s", docsFile, diff)
	}
}

// metricTable returns the metrics as a table in Markdown.
func metricTable(known map[string]*dto.MetricFamily) string {
	out := "\n| metric | type | labels | |\n|---|---|---|---|\n"
	for _, name := range slices.Sorted(maps.Keys(known)) {
		f := known[name]
		var labels []string
		for _, l := range labelNames(f) {
			labels = append(labels, "`"+l+"`")
		}
		out += fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), f.GetHelp())
	}
	return out + "\n"
}
