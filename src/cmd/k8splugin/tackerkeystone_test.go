//go:build tacker

package main

import (
	"strings"
	"sync/atomic"
	"testing"
)

// TestTackerClientKeystone runs the client as users of Keystone.
func TestTackerClientKeystone(t *testing.T) {
	t.Parallel()
	var service atomic.Pointer[testService]
	_, at, use := startKeystone(t, func() string { return service.Load().url })
	service.Store(startBareService(t, use))
	as := func(project, password string) tackerClient {
		return tackerClient{t, []string{
			"--os-auth-url", at, "--os-username", "ann", "--os-password", password, "--os-project-name", project,
			"--os-user-domain-name", "Default", "--os-project-domain-name", "Default",
		}}
	}
	made := as("blue", "s3cret-ann").shown("a member creates a package", "vnf", "package", "create")
	if got := as("blue", "s3cret-ann").column("it is in the project", "Id"); len(got) != 1 || got[0] != made["ID"] {
		t.Errorf("packages %v, want %v", got, made["ID"])
	}
	if got := as("green", "s3cret-ann").column("of the token", "Id"); len(got) != 0 {
		t.Errorf("packages %v of another project", got)
	}
	if text := as("green", "s3cret-ann").run("a reader", 1, "vnf", "package", "create"); !strings.Contains(text, "missing permission package:write in project green") {
		t.Errorf("the client prints %q", text)
	}
	as("blue", "wrong").run("a wrong password", 1, "vnf", "package", "list")
}
