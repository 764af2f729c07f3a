//go:build !linux

package main

import (
	"errors"
	"syscall"
)

// procStat identifies processes. It is implemented for Linux only.
func procStat(int) (started uint64, zombie bool, err error) {
	return 0, false, errors.New("the sandbox runs on Linux only")
}

func ownNetwork(*syscall.SysProcAttr) {}

func ownMachine(*syscall.SysProcAttr) {}

func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}
