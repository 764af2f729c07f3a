package main

import (
	"context"
	"io/fs"
	"log/slog"
	"math"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// mostMemory is the largest memory limit that is believed: 1 PiB. Version 1 of
// cgroups reports a number near 2^63 if there is no limit.
const mostMemory = 1 << 50

// limitMemory sets the memory limit of the Go runtime to 90 % of that of the
// process's cgroup. It does nothing if the cgroup has no limit, or if GOMEMLIMIT
// is set: the runtime has then read it.
func limitMemory(ctx context.Context, log *slog.Logger, root fs.FS, getenv func(string) string) {
	if getenv("GOMEMLIMIT") != "" {
		return
	}
	if most, ok := cgroupMemory(root); ok {
		limit := most / 10 * 9
		debug.SetMemoryLimit(limit)
		log.InfoContext(ctx, "memory limit set", "limit_bytes", limit, "cgroup_limit_bytes", most)
	}
}

// cgroupMemory returns the smallest memory limit, in bytes, of the process's
// cgroup and its parents, in either version of cgroups. It returns false if there
// is none. Root is the root of the file system.
func cgroupMemory(root fs.FS) (int64, bool) {
	content, _ := fs.ReadFile(root, "proc/self/cgroup") // absent outside Linux
	least := int64(math.MaxInt64)
	for line := range strings.Lines(string(content)) {
		// hierarchy:controllers:path
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[0] == "0" && parts[1] == "":
			least = min(least, leastOf(root, "sys/fs/cgroup", parts[2], "memory.max"))
		case slices.Contains(strings.Split(parts[1], ","), "memory"):
			least = min(least, leastOf(root, "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes"))
		}
	}
	return least, least <= mostMemory
}

// leastOf returns the smallest limit in the files of a cgroup and its parents, or
// math.MaxInt64 if there is none. The path of a cgroup can be missing below the
// mount, because a container may see its own cgroup as the root.
func leastOf(root fs.FS, mount, cgroup, file string) int64 {
	least := int64(math.MaxInt64)
	for dir := path.Clean("/" + cgroup); ; dir = path.Dir(dir) {
		content, _ := fs.ReadFile(root, path.Join(mount, dir, file)) // the root has no limit
		if n, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64); err == nil && n > 0 {
			least = min(least, n)
		}
		if dir == "/" {
			return least
		}
	}
}
