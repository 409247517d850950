//go:build !linux

package sysinfo

func tryDirect(name string) Fact[bool] { return unknown[bool]("this system has no O_DIRECT") }
