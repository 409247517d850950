// Package pattern compiles regular expressions when they are first used, so that no process that starts waits for
// those of all programs.
package pattern

import (
	"regexp"
	"sync"
)

// Lazy returns a function that compiles a regular expression at its first call, and panics then if it has a mistake.
func Lazy(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
