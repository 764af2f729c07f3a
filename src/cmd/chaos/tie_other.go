//go:build !linux

package main

import "syscall"

// dieWithParent does nothing. It is implemented only on Linux, which the
// sandbox requires: elsewhere processes outlive a killed parent.
func dieWithParent(*syscall.SysProcAttr) {}
