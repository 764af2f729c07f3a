package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// The scenario week: in each round, so many changes of so many instances.
const (
	weekInstances = 200
	weekRate      = 10 // changes per second
	weekSeconds   = 75 // longer than the retention and than the time until the first deletion of old records
	weekRounds    = 3
	otherPackage  = "bench-many-2"
)

// week changes instances until as many records are deleted as are written, and measures the
// store.
func week(ctx context.Context, binary, out string, clients int, measured values) error {
	run := storedRun{light: newLightServer(), clients: clients}
	defer run.light.close()
	var text strings.Builder
	fmt.Fprintf(&text, weekPreamble, time.Now().Format(time.DateOnly), machine(), weekInstances, usedRegions, weekRate, weekSeconds)
	var err error
	if run.service, err = newService(ctx, binary, "--operation-retention", "1m", "--audit-retention", "1m"); err != nil {
		return err
	}
	defer run.service.stop()
	for i := range usedRegions {
		if err := run.service.register(ctx, regionName(i), run.light.kubeconfig(regionName(i))); err != nil {
			return err
		}
	}
	for _, id := range []string{loadPackageID, otherPackage} {
		if err := run.service.uploadLoad(ctx, id); err != nil {
			return err
		}
	}
	instances := make([]string, weekInstances)
	if _, err := each(ctx, 0, weekInstances, clients, func(ctx context.Context, i int) error {
		in, err := run.createOne(ctx, loadRequest(i))
		instances[i] = in.instance
		return err
	}); err != nil {
		return err
	}
	var files [weekRounds]int64
	for round := range weekRounds {
		row, database, err := run.round(ctx, round, instances)
		if err != nil {
			return fmt.Errorf("cannot measure round %d: %w", round, err)
		}
		files[round] = database
		fmt.Print(row)
		text.WriteString(row)
	}
	measured.set("store file, last round to second", float64(files[weekRounds-1])/float64(files[1]))
	return writeReport(out, text.String())
}

const weekPreamble = `# A long time of changes

Written by ` + "`make bench SCENARIO=week`" + ` on %s: %s.

The store must not grow with the time that a service runs. By default, operations are kept for 30 days, and audit entries for 90. Here, both are kept for one minute, so a round of
the benchmark stands for more than a month. %d instances of four objects in %d regions ([light ones](benchmarks-stored.md)) are updated %d times per second, to one of two packages in
turns, for %d seconds in each round. At the end of a round, the service is restarted, because it deletes old audit entries at its start. The goal is that the size is the same after each
round but the first.

| round | changes so far | operations in the store | database file, MiB | all files of the store, MiB | heap in use, MiB | p99 of an update, ms |
|--:|--:|--:|--:|--:|--:|--:|
`

// round updates instances for the time of a round, and returns a row and the size of the database.
func (r *storedRun) round(ctx context.Context, round int, instances []string) (string, int64, error) {
	packages := []string{otherPackage, loadPackageID}
	took, err := atRate(ctx, weekRate, weekSeconds, func(ctx context.Context, i int) (string, error) {
		n := round*weekRate*weekSeconds + i
		operation, err := r.service.update(ctx, instances[n%weekInstances], packages[n/weekInstances%2])
		if err != nil {
			return "", err
		}
		return "update", r.service.ended(ctx, operation)
	})
	if err != nil {
		return "", 0, err
	}
	operations, err := r.service.count(ctx, "/v1/operations", "operations")
	if err != nil {
		return "", 0, err
	}
	m, err := r.service.memory(ctx)
	if err != nil {
		return "", 0, err
	}
	database, all, err := r.service.storeBytes()
	if err != nil {
		return "", 0, err
	}
	r.service.end()
	if _, err := r.service.start(ctx); err != nil {
		return "", 0, err
	}
	return fmt.Sprintf("| %d | %d | %d | %s | %s | %s | %s |\n", round+1, (round+1)*weekRate*weekSeconds, operations, mib(int(database)), mib(int(all)), mib(m.heap),
		ms(quantile(took.all(), 0.99))), database, nil
}

// count returns the number of items of a list.
func (s *service) count(ctx context.Context, path, items string) (int, error) {
	all := list{path: path}
	for n, marker := 0, ""; ; {
		var page map[string]any
		if err := s.send(ctx, http.MethodGet, all.page(marker, 1000), content{}, &page); err != nil {
			return 0, err
		}
		found, _ := page[items].([]any)
		n += len(found)
		if marker, _ = page["next"].(string); marker == "" {
			return n, nil
		}
	}
}
