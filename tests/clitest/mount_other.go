//go:build !linux

package clitest

import "github.com/rogpeppe/go-internal/testscript"

func mayMount() bool { return false }

func mountTmpfs(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("needs Linux: guard with [mount]")
}
func makeReadOnly(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("needs Linux: guard with [mount]")
}
