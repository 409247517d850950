package run

import (
	"os"
	"os/exec"
	"slices"
)

// startedBy is the name of the group of programs if the process was started as "GROUP PROGRAM …", otherwise "".
var startedBy string

// StartedBy sets the name of the group by which this program was started, as in "GROUP PROGRAM …".
func StartedBy(name string) { startedBy = name }

// CommandLine returns the words with which this process was started.
func CommandLine() []string {
	if startedBy == "" {
		return os.Args
	}
	return append([]string{startedBy}, os.Args...)
}

// Self returns the words that start this program again as it was started: its file, and behind that of a group its
// name. Another program may have the same name alone.
func Self() ([]string, error) {
	words := slices.Clone(CommandLine())
	words = words[:len(words)-len(os.Args)+1]
	file, err := exec.LookPath(words[0])
	if err != nil {
		return nil, err
	}
	words[0] = file
	return words, nil
}
