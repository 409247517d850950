//go:build !linux

package run

import "syscall"

var machineErrorsHere []syscall.Errno
