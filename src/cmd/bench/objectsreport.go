package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

const preamble = `# Benchmarks

Written by ` + "`make bench`" + ` on %s: Kubernetes %s, %s, %d cores. Times are medians. On the same machine, there are %d rounds, %d of them with
kubectl and charts, and %d with more than %d objects; at a distance, there are %d, %d and %d. With so many objects, kubectl runs once. A ratio is the mean of the middle half
of the ratios of the rounds.

The same objects (six ConfigMaps, two Services, one Secret and one Deployment in every ten) are created in a namespace in three ways,
in turns. Each way starts after all objects of the previous one are gone:

- **a**, the lower bound: a bare HTTP client sends the final bytes of every object as one server-side apply request. It sends them in parallel on one
  connection, with as many requests in flight as the service uses.
- **b**, this service: from the moment that the client sends ` + "`POST /v1/vnf_instances`" + ` until it has the 201. This includes the rendering, the
  preflight check and every durable record. The next column is the part between the operation's acceptance and its last apply.
- **c**, ` + "`kubectl apply --server-side`" + ` of the same files, from the start of the program to its end.

The same objects as a Helm chart:

- **d**, this service: from the moment that the client sends the request until it has the 201. Then all objects are applied.
- **e**, ` + "`helm install`" + ` of Helm 4 without ` + "`--wait`" + `, from the start of the program to its end. Then all objects are applied, too.
- *removal by the service* is one ` + "`DELETE`" + ` of the instance, when all pods run, until all objects are gone. *bare removal* is one request for each
  object, in parallel, until all objects are gone.

Times are milliseconds, and depend on the machine as much as on the code; compare the ratios. The goals at 100 objects are
b/a ≤ 1.1, at a distance also c/b ≥ 6 and e/d ≥ 8, and an overhead of removal of at most 100 ms.
`

const header = `
| objects | a | b | b, accepted to applied | c | b/a | c/b |
|--:|--:|--:|--:|--:|--:|--:|
`

const trafficHeader = `
What each way has sent and received, in KiB, with the bytes of TLS and HTTP:

| objects | a | b | c |
|--:|--:|--:|--:|
`

// tables holds the results of the report.
type tables struct {
	near, far         []result
	nearPlan, farPlan plan
	roundTrip         time.Duration
}

// write writes the rows of one table.
func (t tables) write(text *strings.Builder, rows []result) {
	for _, r := range rows {
		text.WriteString(r.row() + "\n")
	}
	text.WriteString(chartHeader)
	for _, r := range rows {
		if r.size <= mostOfAChart {
			text.WriteString(r.chartRow() + "\n")
		}
	}
}

func (b *bench) report(path string, t tables) error {
	var text strings.Builder
	fmt.Fprintf(&text, preamble, time.Now().Format(time.DateOnly), b.version, runtime.Version(), runtime.NumCPU(),
		t.nearPlan.rounds, t.nearPlan.slow, t.nearPlan.large, mostOfAChart, t.farPlan.rounds, t.farPlan.slow, t.farPlan.large)
	text.WriteString("\n## On the same machine\n" + header)
	t.write(&text, t.near)
	fmt.Fprintf(&text, "\n## At a distance of %s\n\nAll clients reach the API server over a connection with this round trip, which is typical of regions.\n%s", t.roundTrip, header)
	t.write(&text, t.far)
	text.WriteString(trafficHeader)
	for _, r := range t.far {
		fmt.Fprintf(&text, "| %d | %s | %s | %s |\n", r.size, r.bytes[bareWay], r.bytes[serviceWay], r.bytes[kubectlWay])
	}
	return writeReport(path, text.String())
}
