package benchio

import "syscall"

// withUs ends a program when the thread that started it ends: one that is killed leaves no other at work.
func withUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
