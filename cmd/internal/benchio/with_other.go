//go:build !linux

package benchio

import "syscall"

// withUs is nothing: only Linux ends a program with the one that started it.
func withUs() *syscall.SysProcAttr { return nil }
