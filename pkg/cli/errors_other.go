//go:build !linux

package cli

import "syscall"

var machineErrorsHere []syscall.Errno
