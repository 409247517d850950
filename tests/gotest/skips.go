package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// expectation is a line of the list of skips.
type expectation struct {
	pattern *regexp.Regexp
	why     string
}

// readSkips reads the list of accepted reasons for skipping tests. A line is
//
//	WHEN  PATTERN  # WHY
//
// WHEN is always or short (only with -short). PATTERN is a regular expression that is matched against "PACKAGE
// TEST: REASON", with the package's path in the module.
func readSkips(file string, short bool) ([]expectation, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list []expectation
	for n, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		when, rest, _ := strings.Cut(line, " ")
		pattern, why, _ := strings.Cut(rest, " # ")
		pattern, why = strings.TrimSpace(pattern), strings.TrimSpace(why)
		if when != "always" && when != "short" || pattern == "" || why == "" {
			return nil, fmt.Errorf("%s:%d: %q, want: always or short, a pattern, # and why", file, n+1, line)
		}
		re, err := regexp.Compile(pattern)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n+1, err)
		}
		if when == "always" || short {
			list = append(list, expectation{re, why})
		}
	}
	return list, nil
}

// summarize prints a table of the skipped tests, with the parts of a test in one line. It returns false if one was
// skipped for an unexpected reason.
func summarize(w io.Writer, skipped []skip, expected []expectation) bool {
	if len(skipped) == 0 {
		return true
	}
	fmt.Fprintf(w, "\nskipped: %d\n", len(skipped))
	var unexpected, lines []string
	count := map[string]int{}
	for _, s := range skipped {
		pkg, reason := strings.TrimPrefix(s.pkg, "strata/"), s.reason
		if reason == "" {
			reason = "without a reason"
		}
		why := whyExpected(expected, fmt.Sprintf("%s %s: %s", pkg, s.test, s.reason))
		if why == "" {
			unexpected = append(unexpected, fmt.Sprintf("%s %s: %s", pkg, s.test, reason))
			continue
		}
		test, _, _ := strings.Cut(s.test, "/")
		line := fmt.Sprintf("%s %s: %s (%s)", pkg, test, reason, why)
		if count[line]++; count[line] == 1 {
			lines = append(lines, line)
		}
	}
	for _, line := range lines {
		fmt.Fprintf(w, "  %3d %s\n", count[line], line)
	}
	for _, line := range unexpected {
		fmt.Fprintf(w, "  unexpected: %s: mend what keeps it from running, or list the reason in tests/skips.txt\n", line)
	}
	return len(unexpected) == 0
}

// whyExpected returns the listed explanation why a test may be skipped, or "".
func whyExpected(expected []expectation, text string) string {
	for _, e := range expected {
		if e.pattern.MatchString(text) {
			return e.why
		}
	}
	return ""
}
