package benchio

import "syscall"

// withUs ends a child program when the thread that started it ends, so that a killed run leaves no program
// running.
func withUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
