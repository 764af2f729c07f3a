package main

import (
	"runtime/debug"
	"strings"
)

// linked is the version that the linker sets where the build sees no repository,
// as in an image: -X main.linked=v1.2.3.
var linked = ""

// version returns the version of the program: the tag it was built from, a
// pseudo-version that contains the commit, or "dev".
func version() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(linked, info)
}

func versionOf(linked string, info *debug.BuildInfo) string {
	switch {
	case linked != "":
		return linked
	case info == nil || !strings.HasPrefix(info.Main.Version, "v"):
		return "dev" // a build of single files or of tests has no version
	default:
		return info.Main.Version
	}
}
