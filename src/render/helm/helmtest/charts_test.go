package helmtest

import "testing"

func TestCharts(t *testing.T) {
	charts := Charts()
	if len(charts) < 30 {
		t.Errorf("there are %d charts, of which 30 are promised", len(charts))
	}
	for name, files := range charts {
		_, top := files["Chart.yaml"]
		_, folder := files[name+"/Chart.yaml"]
		if !top && !folder {
			t.Errorf("%s holds no chart of its name", name)
		}
		for _, none := range []string{"want.yaml", "case.json", "inputs.json"} {
			if _, there := files[none]; there {
				t.Errorf("%s holds %s, which is the test's", name, none)
			}
		}
	}
	charts["plain"]["plain/Chart.yaml"][0] = 'x'
	if Charts()["plain"]["plain/Chart.yaml"][0] == 'x' {
		t.Error("who changes a chart changes it for all")
	}
}
