package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	lightRegions = 1000 // that are registered
	usedRegions  = 100  // that have instances
	restedLevel  = 10_000
	// measuredWith is the number of instances that the processor time of one is measured
	// with. With fewer, it depends on whether the service reads all instances meanwhile.
	measuredWith = 3000
	turns        = 20 // of two services that are compared
)

// storedRun is the scenario of many stored instances: a service with its embedded
// database, and regions of one light API server.
type storedRun struct {
	service *service
	light   *lightServer
	clients int
	stored  int       // instances
	sample  [2]string // an instance and its operation

	repeated atomic.Int64 // requests
}

// level holds the measurements with a number of stored instances.
type level struct {
	stored        int
	processor     time.Duration // of the service, for each instance
	beside        time.Duration // that of a service with few instances, in turns with this one; 0: not measured
	rate          float64       // instances per second
	pages         []pageTimes
	memory        memory // right after the work
	rested        memory // after a minute without requests, if the number is restedLevel
	database, all int64  // bytes of the files of the store
	start         time.Duration
}

// ratio returns the ratio of the processor time to that with few instances.
func (l level) ratio() float64 {
	if l.beside == 0 {
		return 1
	}
	return float64(l.processor) / float64(l.beside)
}

// stored measures a service that has more and more instances.
func (b *bench) stored(ctx context.Context, out string, counts []int, clients int) error {
	report := storedReport{machine: machine(), clients: clients}
	run, err := newStoredRun(ctx, b.binary, clients)
	if err != nil {
		return err
	}
	defer run.stop()
	if report.idle, err = run.idle(ctx); err != nil {
		return err
	}
	for i, count := range counts {
		few := counts[0]
		if i == 0 {
			few = 0
		}
		l, err := run.level(ctx, count, few)
		if err != nil {
			return fmt.Errorf("cannot measure %d stored instances: %w", count, err)
		}
		report.levels = append(report.levels, l)
		if count == 10_000 || count == counts[len(counts)-1] && report.reads.stored == 0 {
			if report.reads, err = run.reads(ctx); err != nil {
				return err
			}
		}
	}
	report.repeated = run.repeated.Load()
	if err := report.measure(b.binary, b.values); err != nil {
		return err
	}
	return report.write(out, b.values["stripped binary"])
}

// newStoredRun starts a service, and registers the regions.
func newStoredRun(ctx context.Context, binary string, clients int) (*storedRun, error) {
	s, err := newService(ctx, binary)
	if err != nil {
		return nil, err
	}
	r := &storedRun{service: s, light: newLightServer(), clients: clients}
	_, err = each(ctx, 0, lightRegions, clients, func(ctx context.Context, i int) error {
		return s.register(ctx, regionName(i), r.light.kubeconfig(regionName(i)))
	})
	if err == nil {
		err = s.uploadLoad(ctx, loadPackageID)
	}
	if err != nil {
		r.stop()
		return nil, err
	}
	return r, nil
}

func (r *storedRun) stop() {
	r.service.stop()
	r.light.close()
}

// idle starts the service again. It returns the memory of the service after it has
// checked each region.
func (r *storedRun) idle(ctx context.Context) (memory, error) {
	r.service.end()
	if _, err := r.service.start(ctx); err != nil {
		return memory{}, err
	}
	if err := wait(ctx, time.Minute); err != nil { // it checks each region once in half of this time
		return memory{}, err
	}
	return r.service.memory(ctx)
}

// create creates instances until so many are stored.
func (r *storedRun) create(ctx context.Context, until int) (time.Duration, error) {
	from := r.stored
	r.stored = max(from, until)
	return each(ctx, from, until, r.clients, func(ctx context.Context, i int) error {
		in, err := r.createOne(ctx, loadRequest(i))
		if err == nil && i == from {
			r.sample = [2]string{in.instance, in.operation}
		}
		return err
	})
}

// loadRequest is the creation of an instance by its number.
func loadRequest(i int) map[string]any {
	return map[string]any{"cloud_region_id": regionName(i % usedRegions), "csar_id": loadPackageID, "namespace": fmt.Sprintf("bench-%06d", i), "vnf_instance_name": "bench-" + strconv.Itoa(i)}
}

// createOne creates an instance. It repeats a request that the service rejects
// because it has no lease: a busy machine can delay the heartbeats too long.
func (r *storedRun) createOne(ctx context.Context, request map[string]any) (brought, error) {
	for attempt := 1; ; attempt++ {
		in, err := r.service.create(ctx, request)
		failed, ok := errors.AsType[*statusError](err)
		if !ok || failed.status != http.StatusBadGateway || attempt == 30 {
			return in, err
		}
		r.repeated.Add(1)
		if err := wait(ctx, time.Second); err != nil {
			return in, err
		}
	}
}

// level measures the service with a number of stored instances. If few is not 0, a new
// service with so few instances takes turns with it.
func (r *storedRun) level(ctx context.Context, count, few int) (level, error) {
	l := level{stored: count}
	if _, err := r.create(ctx, count); err != nil {
		return l, err
	}
	var err error
	for _, list := range lists {
		times, err := r.service.pageTimes(ctx, list)
		if err != nil {
			return l, err
		}
		l.pages = append(l.pages, times)
	}
	if l.memory, err = r.service.memory(ctx); err != nil {
		return l, err
	}
	if count == restedLevel {
		if err := wait(ctx, time.Minute); err != nil {
			return l, err
		}
	}
	if l.rested, err = r.service.memory(ctx); err != nil {
		return l, err
	}
	if l.database, l.all, err = r.service.storeBytes(); err != nil {
		return l, err
	}
	if err := r.processor(ctx, &l, few); err != nil {
		return l, err
	}
	fmt.Printf("%d stored: %v of processor time for an instance; ratio %.2f\n", count, l.processor, l.ratio())
	r.service.end()
	if l.start, err = r.service.start(ctx); err != nil {
		return l, err
	}
	// A new process reads the kinds of a region at its first use.
	_, err = r.create(ctx, r.stored+usedRegions)
	return l, err
}

// processor measures the processor time for an instance.
func (r *storedRun) processor(ctx context.Context, l *level, few int) error {
	runs := []*storedRun{r}
	if few > 0 {
		beside, err := newStoredRun(ctx, r.service.binary, r.clients)
		if err != nil {
			return err
		}
		defer beside.stop()
		if _, err := beside.create(ctx, few); err != nil {
			return err
		}
		runs = append(runs, beside)
	}
	used, took := make([]time.Duration, len(runs)), make([]time.Duration, len(runs))
	for i, run := range runs {
		before, err := processorTime(run.service.cmd.Process.Pid)
		if err != nil {
			return err
		}
		used[i] = -before
	}
	for turn := range turns {
		for i := range runs {
			i = (turn + i) % len(runs)
			lasted, err := runs[i].create(ctx, runs[i].stored+measuredWith/turns)
			if err != nil {
				return err
			}
			took[i] += lasted
		}
	}
	for i, run := range runs { // after all turns: garbage is collected in those of others, too
		after, err := processorTime(run.service.cmd.Process.Pid)
		if err != nil {
			return err
		}
		used[i] += after
	}
	l.processor, l.rate = used[0]/measuredWith, measuredWith/took[0].Seconds()
	if few > 0 {
		l.beside = used[1] / measuredWith
		r.repeated.Add(runs[1].repeated.Load())
	}
	return nil
}

// list is a list of the API that is measured.
type list struct {
	name, path string
	goal       string
}

const pageGoal = "≤ 20 ms"

// lists are the measured lists. The filters without an index match nothing, so
// that each record is read: that is the most that a page can cost.
var lists = []list{
	{"instances", "/v1/vnf_instances", pageGoal},
	{"instances of a region", "/v1/vnf_instances?cloud_region_id=" + regionName(7), pageGoal},
	{"instances with a package that none has", "/v1/vnf_instances?csar_id=none", pageGoal},
	{"operations", "/v1/operations", pageGoal},
	{"operations with a state that none has", "/v1/operations?state=failed", pageGoal},
	{"audit entries", "/v1/audit", pageGoal},
	{"audit entries of an identity that none has", "/v1/audit?identity=none", pageGoal},
	{"regions", "/v1/cloud_regions", ""},
}

// pageTimes holds the times of the first page of a list, and of the last one
// that is full.
type pageTimes struct {
	list        list
	first, last time.Duration // last is 0 if it was not reached within a minute
}

// pageTimes reads pages of 100 items. Each time is the median of several
// requests.
func (s *service) pageTimes(ctx context.Context, l list) (pageTimes, error) {
	out := pageTimes{list: l}
	var err error
	if out.first, err = s.pageTime(ctx, l.page("", 100)); err != nil {
		return out, err
	}
	marker, err := s.lastMarker(ctx, l, "", 1000)
	if err != nil {
		return out, err
	}
	if marker, err = s.lastMarker(ctx, l, marker, 100); err != nil {
		return out, err
	}
	if marker == unreached {
		return out, nil
	}
	out.last, err = s.pageTime(ctx, l.page(marker, 100))
	return out, err
}

// unreached is the marker of a last page that was not reached within a minute.
const unreached = "unreached"

// lastMarker returns the marker of the last page that has a page after it.
func (s *service) lastMarker(ctx context.Context, l list, from string, limit int) (string, error) {
	const most = time.Minute
	began := time.Now()
	for marker := from; ; {
		if time.Since(began) > most || marker == unreached {
			return unreached, nil
		}
		var page struct {
			Next string `json:"next"`
		}
		if err := s.send(ctx, http.MethodGet, l.page(marker, limit), content{}, &page); err != nil {
			return "", err
		}
		if page.Next == "" {
			return from, nil
		}
		from, marker = marker, page.Next
	}
}

func (l list) page(marker string, limit int) string {
	separator := "?"
	if strings.Contains(l.path, "?") {
		separator = "&"
	}
	path := fmt.Sprintf("%s%slimit=%d", l.path, separator, limit)
	if marker != "" {
		path += "&marker=" + url.QueryEscape(marker)
	}
	return path
}

// pageTime returns the median time of a GET.
func (s *service) pageTime(ctx context.Context, path string) (time.Duration, error) {
	times := make([]time.Duration, 11)
	for i := range times {
		began := time.Now()
		if err := s.send(ctx, http.MethodGet, path, content{}, nil); err != nil {
			return 0, err
		}
		if times[i] = time.Since(began); times[i] > time.Second {
			return times[i], nil // a repetition would not be more exact
		}
	}
	return quantile(times, 0.5), nil
}

// middle returns the mean of the middle half of the values. It is almost as safe from single
// values that are far from the others as the median is, and varies less.
func middle(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	sorted = sorted[len(sorted)/4 : len(sorted)-len(sorted)/4]
	sum := 0.0
	for _, value := range sorted {
		sum += value
	}
	return sum / float64(len(sorted))
}

// quantile returns the value that a share of the values does not exceed.
func quantile[N cmp.Ordered](of []N, share float64) N {
	if len(of) == 0 {
		return *new(N)
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}
