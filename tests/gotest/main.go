// Command gotest runs go test, prints its output, and finally a table of the skipped tests:
//
//	go run ./tests/gotest tests/skips.txt [FLAG of go test]... PACKAGE...
//
// A skipped test passes without testing anything. That is accepted only for a reason listed in the file; any other
// fails the run. The environment variable GO names the go command.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: gotest SKIPS [FLAG of go test]... PACKAGE...")
		os.Exit(2)
	}
	status, err := run(os.Stdout, os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		status = max(status, 1)
	}
	os.Exit(status)
}

// run returns the exit status of go test, or 1 if only a skipped test fails the run.
func run(w io.Writer, list string, args []string) (int, error) {
	expected, err := readSkips(list, slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(strings.TrimLeft(a, "-"), "short") }))
	if err != nil {
		return 1, err
	}
	goCommand := os.Getenv("GO")
	if goCommand == "" {
		goCommand = "go"
	}
	command := exec.Command(goCommand, append([]string{"test", "-json"}, args...)...)
	command.Stderr = os.Stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := command.Start(); err != nil {
		return 1, err
	}
	out := bufio.NewWriter(w)
	skipped, readErr := report(stdout, out)
	if readErr != nil {
		command.Process.Kill()
	}
	err = command.Wait()
	status := command.ProcessState.ExitCode()
	if status < 0 { // killed
		status = 1
	} else if _, is := err.(*exec.ExitError); is {
		err = nil
	}
	if !summarize(out, skipped, expected) && status == 0 {
		status = 1
	}
	if status != 0 {
		fmt.Fprintln(out, "FAIL")
	}
	if readErr != nil {
		err = readErr
	}
	if e := out.Flush(); err == nil {
		err = e
	}
	return status, err
}
