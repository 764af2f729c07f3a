package nf

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// CPUResource is the resource whose amounts are counted in thousandths.
const CPUResource = "cpu"

// Amounts are amounts of resources of nodes or pods, by the name of the resource:
// thousandths of a CPU, bytes of memory, or a number of devices.
type Amounts map[string]int64

// Add adds amounts. Sums stop at the largest number.
func (a Amounts) Add(more Amounts) {
	for name, n := range more {
		if n > 0 && a[name] > math.MaxInt64-n {
			a[name] = math.MaxInt64
			continue
		}
		a[name] += n
	}
}

// Sub subtracts amounts. It ignores resources that a does not have.
func (a Amounts) Sub(less Amounts) {
	for name, n := range less {
		if _, has := a[name]; has {
			a[name] -= n
		}
	}
}

// Lacking returns the first resource, by name, of which a has less than is needed. It
// returns "" if there is none.
func (a Amounts) Lacking(need Amounts) string {
	for _, name := range slices.Sorted(maps.Keys(need)) {
		if a[name] < need[name] {
			return name
		}
	}
	return ""
}

// FormatAmount returns an amount as Kubernetes writes it: "1500m" of cpu, "16Gi" of
// memory.
func FormatAmount(resource string, n int64) string {
	const kibi, milli = 1024, 1000
	if resource == CPUResource {
		if n%milli != 0 {
			return fmt.Sprintf("%dm", n)
		}
		return strconv.FormatInt(n/milli, 10)
	}
	unit := ""
	if resource == "memory" || resource == "ephemeral-storage" || strings.HasPrefix(resource, "hugepages-") {
		for _, next := range [...]string{"Ki", "Mi", "Gi", "Ti"} {
			if n == 0 || n%kibi != 0 {
				break
			}
			n, unit = n/kibi, next
		}
	}
	return strconv.FormatInt(n, 10) + unit
}
