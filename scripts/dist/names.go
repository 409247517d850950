package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// namesTable lists, for each program, the packages of Debian that have a file of its name.
const namesTable = "packaging/debian/names.tsv"

// readNames reads which programs have the name of another package's program. Every program must be in the table, so
// that a new one is looked up before it gets into a system's folders.
func (r *release) readNames() error {
	text, err := os.ReadFile(filepath.Join(r.root, namesTable))
	if err != nil {
		return err
	}
	known := map[string]bool{}
	r.taken = map[string]string{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 4 && (len(fields) != 2 || fields[1] != "-") {
			return fmt.Errorf("%s: %q: want a name and -, or a name, package, file and suites", namesTable, line)
		}
		known[fields[0]] = true
		// The package of the program itself is worth naming more than one of a manual page or completion.
		if name := fields[0]; len(fields) == 4 && (r.taken[name] == "" || strings.Contains(fields[2], "/bin/")) {
			r.taken[name] = fields[1]
		}
	}
	for _, name := range append([]string{"strata"}, r.programs...) {
		if !known[name] {
			return fmt.Errorf("%s: program %s is not in it: make debian-names looks up who has the name", namesTable, name)
		}
		delete(known, name)
	}
	if gone := slices.Sorted(maps.Keys(known)); len(gone) > 0 {
		return fmt.Errorf("%s: no program is called %s", namesTable, strings.Join(gone, ", "))
	}
	if r.taken["strata"] != "" {
		return fmt.Errorf("%s: package %s has files of the name strata: all of ours need another name", namesTable, r.taken["strata"])
	}
	return nil
}

// takenNames lists the names in words: "resample, stack and view".
func (r *release) takenNames() string { return inWords(slices.Sorted(maps.Keys(r.taken))) }

// takenBy lists the names with the packages of Debian that have them.
func (r *release) takenBy() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(r.taken)) {
		all = append(all, name+" (package "+r.taken[name]+")")
	}
	return inWords(all)
}

func inWords(all []string) string {
	if n := len(all) - 1; n > 0 {
		return strings.Join(all[:n], ", ") + " and " + all[n]
	}
	return strings.Join(all, "")
}
