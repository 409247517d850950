package main

import (
	"strings"
	"testing"
)

// Both do each job, with the same result; a codec that returned other bytes would end the measurement.
func TestJobs(t *testing.T) {
	data := []byte(strings.Repeat("a slice of a brain, and the next slice of the brain; ", 2000))
	for _, j := range jobs() {
		row, err := j.measure(data, 1)
		if err != nil || strings.Count(row, "|") != 3 {
			t.Errorf("%s: %q, %v", j.name, row, err)
		}
	}
}
