package main

import (
	"fmt"
	"os"
	"syscall"
)

// procStat returns when a process started, and whether it is a zombie.
func procStat(pid int) (started uint64, zombie bool, err error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false, err
	}
	return parseStat(string(line))
}

// ownNetwork gives the process a network and mounts of its own.
func ownNetwork(attr *syscall.SysProcAttr) {
	attr.Cloneflags |= syscall.CLONE_NEWNET | syscall.CLONE_NEWNS
}

// ownMachine also separates its processes. When the first one ends, the kernel
// kills the others.
func ownMachine(attr *syscall.SysProcAttr) {
	ownNetwork(attr)
	attr.Cloneflags |= syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
}

// dieWithParent makes the kernel signal the process when the thread that
// started it ends.
func dieWithParent(attr *syscall.SysProcAttr, signal syscall.Signal) { attr.Pdeathsig = signal }
