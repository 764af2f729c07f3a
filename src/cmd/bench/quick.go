package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// slack is the factor between a recorded ratio and the smallest one that fails.
const slack = 2

// quick compares the service with the bare client on the same machine. It fails
// if a ratio is at least twice the one in the report of the last full run. A busy
// machine can distort one measurement, so it fails only after a second one.
func (b *bench) quick(ctx context.Context, kubeconfig, report string) error {
	text, err := os.ReadFile(report)
	if err != nil {
		return fmt.Errorf("cannot read the recorded ratios: %w", err)
	}
	began := time.Now()
	if err = b.hold(ctx, kubeconfig, string(text)); errors.Is(err, errSlower) {
		fmt.Printf("%v\nMeasuring once more, because a busy machine can be the cause.\n", err)
		err = b.hold(ctx, kubeconfig, string(text))
	}
	fmt.Printf("took %.0f s\n", time.Since(began).Seconds())
	return err
}

// hold measures once, and compares the ratios with those of the report.
func (b *bench) hold(ctx context.Context, kubeconfig, report string) error {
	results, err := b.all(ctx, kubeconfig, plan{sizes: []int{10, 100}, rounds: 5, quick: true})
	for _, r := range results {
		err = errors.Join(err, r.holds(report))
	}
	return err
}

var errSlower = errors.New("the service is slower than recorded")

// holds returns errSlower if the ratio of the service to the bare client is too
// large.
func (r result) holds(report string) error {
	recorded, err := recordedRatio(report, r.size)
	if err != nil {
		return err
	}
	ratio := r.ratio(serviceWay, bareWay)
	fmt.Printf("%d objects: bare client %v, service %v, ratio %.2f, recorded %.2f\n", r.size,
		r.median(bareWay).Round(time.Millisecond/10), r.median(serviceWay).Round(time.Millisecond/10), ratio, recorded)
	if ratio >= slack*recorded {
		return fmt.Errorf("%w: with %d objects, b/a is %.2f, and %.2f is recorded", errSlower, r.size, ratio, recorded)
	}
	return nil
}

// recordedRatio returns b/a for a number of objects from the first table of the
// report, which is that of the same machine.
func recordedRatio(report string, size int) (float64, error) {
	const column = 5 // b/a: see result.row
	for line := range strings.Lines(report) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if cells[0] == "| "+strconv.Itoa(size) && len(cells) > column {
			return strconv.ParseFloat(cells[column], 64)
		}
	}
	return 0, fmt.Errorf("cannot find the ratio for %d objects in the report", size)
}
