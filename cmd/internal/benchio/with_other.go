//go:build !linux

package benchio

import "syscall"

// withUs returns nil: only Linux can end a program together with its parent.
func withUs() *syscall.SysProcAttr { return nil }
