package main

import (
	"bytes"
	"log/slog"
	"math"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"
)

func TestCgroupMemory(t *testing.T) {
	const v2, v1 = "sys/fs/cgroup/", "sys/fs/cgroup/memory/"
	for name, tc := range map[string]struct {
		reason string
		cgroup string
		files  map[string]string
		want   int64 // 0: none
	}{
		"NoCgroups":   {"other systems have none", "", nil, 0},
		"Container":   {"a container sees its own cgroup as the root", "0::/\n", map[string]string{v2 + "memory.max": "1000\n"}, 1000},
		"Own":         {"the limit is in the folder of the cgroup", "0::/a/b\n", map[string]string{v2 + "a/b/memory.max": "1000\n"}, 1000},
		"Parent":      {"a parent limits its children", "0::/a/b\n", map[string]string{v2 + "a/b/memory.max": "max\n", v2 + "a/memory.max": "2000\n"}, 2000},
		"Least":       {"the smallest limit counts, wherever it is", "0::/a/b\n", map[string]string{v2 + "a/b/memory.max": "3000\n", v2 + "a/memory.max": "2000\n", v2 + "memory.max": "4000\n"}, 2000},
		"Sibling":     {"another cgroup limits only itself", "0::/a\n", map[string]string{v2 + "b/memory.max": "1000\n"}, 0},
		"Max":         {"max is no limit", "0::/a\n", map[string]string{v2 + "a/memory.max": "max\n"}, 0},
		"Outside":     {"a path above the namespace's root is read from the root", "0::/../../a\n", map[string]string{v2 + "a/memory.max": "1000\n"}, 1000},
		"Version1":    {"version 1 has a mount for memory", "5:cpu:/x\n4:memory:/a\n", map[string]string{v1 + "a/memory.limit_in_bytes": "1000\n", v1 + "memory.limit_in_bytes": "9223372036854771712\n"}, 1000},
		"Together":    {"version 1 can mount several controllers together", "4:cpu,memory:/docker/1\n", map[string]string{v1 + "memory.limit_in_bytes": "1000\n"}, 1000},
		"Unlimited":   {"version 1 reports a number near 2^63 if there is no limit", "4:memory:/\n", map[string]string{v1 + "memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		"Hybrid":      {"both versions can be mounted", "4:memory:/a\n0::/a\n", map[string]string{v1 + "a/memory.limit_in_bytes": "1000\n"}, 1000},
		"Malformed":   {"an unreadable value is no limit", "0::/a\n", map[string]string{v2 + "a/memory.max": "much\n"}, 0},
		"Zero":        {"a limit of zero would collect garbage forever", "0::/a\n", map[string]string{v2 + "a/memory.max": "0\n"}, 0},
		"OtherFormat": {"a line of another form is skipped", "hello\n0::/\n", map[string]string{v2 + "memory.max": "1000\n"}, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			root := fstest.MapFS{"proc/self/cgroup": {Data: []byte(tc.cgroup)}}
			for file, content := range tc.files {
				root[file] = &fstest.MapFile{Data: []byte(content)}
			}
			got, ok := cgroupMemory(root)
			if ok != (tc.want > 0) || (ok && got != tc.want) {
				t.Errorf("the limit is %d (%t), want %d: %s", got, ok, tc.want, tc.reason)
			}
		})
	}
}

func TestLimitMemory(t *testing.T) {
	const limited = 64 << 30 // more than the tests need
	root := fstest.MapFS{"proc/self/cgroup": {Data: []byte("0::/\n")}, "sys/fs/cgroup/memory.max": {Data: []byte("68719476736\n")}}
	for name, tc := range map[string]struct {
		reason string
		root   fstest.MapFS
		env    string
		want   int64
		lines  int
	}{
		"Limited":   {"the runtime needs room for memory that it does not count", root, "", limited / 10 * 9, 1},
		"Set":       {"the operator decides", root, "1GiB", math.MaxInt64, 0},
		"Unlimited": {"without a limit there is nothing to set", fstest.MapFS{}, "", math.MaxInt64, 0},
	} {
		t.Run(name, func(t *testing.T) {
			before := debug.SetMemoryLimit(math.MaxInt64)
			defer debug.SetMemoryLimit(before)
			var out bytes.Buffer
			limitMemory(t.Context(), slog.New(slog.NewTextHandler(&out, nil)), tc.root, func(name string) string {
				return map[string]string{"GOMEMLIMIT": tc.env}[name]
			})
			if got := debug.SetMemoryLimit(-1); got != tc.want {
				t.Errorf("the limit is %d, want %d: %s", got, tc.want, tc.reason)
			}
			if got := strings.Count(out.String(), "limit_bytes=61847529057 "); got != tc.lines {
				t.Errorf("%d lines have the limit, want %d: %s\n%s", got, tc.lines, tc.reason, out.String())
			}
		})
	}
}
