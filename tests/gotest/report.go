package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// maxLine is the maximum length of a line of go test -json in bytes.
const maxLine = 64 << 20

// event is a line of go test -json: see go doc test2json.
type event struct {
	Action, Package, ImportPath, Test, Output string
}

// skip is a skipped test with its reason.
type skip struct {
	pkg, test, reason string
}

// pack is a package under test.
type pack struct {
	lines []string            // outside of tests
	order []string            // tests that have not passed, in the order of their beginning
	tests map[string][]string // their lines
}

// report copies go test -json to w in the format of go test without -v: one line for a package that passed; for
// one that failed, first the output of each test that failed or did not end. It returns the skipped tests.
func report(r io.Reader, w interface {
	io.Writer
	Flush() error
}) (skipped []skip, err error) {
	packs := map[string]*pack{}
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 1<<16), maxLine)
	for scanner.Scan() {
		var e event
		if json.Unmarshal(scanner.Bytes(), &e) != nil || e.Action == "" {
			fmt.Fprintln(w, scanner.Text()) // go test itself, of a flag or a package that is wrong
			continue
		}
		if e.Action == "build-output" {
			io.WriteString(w, e.Output)
			continue
		}
		p := packs[e.Package]
		if p == nil {
			p = &pack{tests: map[string][]string{}}
			packs[e.Package] = p
		}
		switch {
		case e.Action == "output" && e.Test == "":
			p.lines = append(p.lines, e.Output)
		case e.Action == "output":
			p.tests[e.Test] = append(p.tests[e.Test], e.Output)
		case e.Action == "run":
			p.order = append(p.order, e.Test)
		case e.Test != "" && (e.Action == "pass" || e.Action == "skip"):
			if e.Action == "skip" {
				skipped = append(skipped, skip{e.Package, e.Test, reason(p.tests[e.Test])})
			}
			p.tests[e.Test] = nil
		case e.Test == "" && (e.Action == "pass" || e.Action == "skip" || e.Action == "fail"):
			p.print(w, e.Action == "fail")
			delete(packs, e.Package)
			if err := w.Flush(); err != nil {
				return skipped, err
			}
		}
	}
	if err := scanner.Err(); err != nil {
		return skipped, fmt.Errorf("reading go test -json: %w", err)
	}
	for _, p := range packs { // go test was killed
		p.print(w, true)
	}
	return skipped, nil
}

// marks are the lines with which -v shows progress.
var marks = regexp.MustCompile(`^=== (RUN|PAUSE|CONT|NAME) `)

func (p *pack) print(w io.Writer, failed bool) {
	if failed {
		for _, test := range p.order {
			for _, line := range p.tests[test] {
				if !marks.MatchString(line) {
					io.WriteString(w, line)
				}
			}
		}
	}
	for _, line := range p.lines {
		if failed && line != "PASS\n" || strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "?   \t") {
			io.WriteString(w, line)
		}
	}
}

// place matches the beginning of a test's message: file and line.
var place = regexp.MustCompile(`^\s+\S+\.go:\d+: `)

// reason returns the last message of a skipped test as one line.
func reason(lines []string) string {
	var said []string
	for _, line := range lines {
		if at := place.FindString(line); at != "" {
			said, line = nil, line[len(at):]
		}
		line = strings.TrimSpace(line)
		if line != "" && !marks.MatchString(line+" ") && !strings.HasPrefix(line, "--- SKIP: ") {
			said = append(said, line)
		}
	}
	return strings.Join(said, " ")
}
