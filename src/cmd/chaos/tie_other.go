//go:build !linux

package main

import "syscall"

// dieWithParent is for Linux, where the sandbox is: elsewhere a process outlives
// a parent that was killed.
func dieWithParent(*syscall.SysProcAttr) {}
