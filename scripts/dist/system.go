package main

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// own is the folder of a system with all programs by their names, their manual pages and completions. The system's own
// folders get only those whose names no other package has.
const own = "lib/strata/"

// forSystem returns a tree for folders that other programs share, such as /usr. The program lies in bin of its own
// folder, with all names as links; bin has links to strata and to names that are not in taken. What belongs to a name
// in taken is in its own folder, its manual page is also strata-NAME(1). man and bash's completion look beside a folder
// of PATH, and find both there.
func (t tree) forSystem(taken map[string]string) tree {
	var out []entry
	for _, e := range t {
		name := programOf(e.name)
		switch {
		case path.Dir(e.name) == "bin":
			if taken[name] == "" {
				out = append(out, entry{name: e.name, mode: 0o777, link: "../" + own + e.name})
			}
			e.name = own + e.name
		case strings.HasSuffix(e.link, "../bin"):
			e.link = strings.TrimSuffix(e.link, "bin") + own + "bin"
		case name == "strata" && strings.HasPrefix(e.name, "share/man/"):
			for other := range taken {
				e.data = bytes.ReplaceAll(e.data, fmt.Appendf(nil, ".BR %s (1)", other), fmt.Appendf(nil, ".BR strata\\-%s (1)", other))
			}
		case taken[name] == "":
		case strings.HasPrefix(e.name, "share/man/"):
			page := entry{name: "share/man/man1/strata-" + name + ".1", mode: e.mode, data: renamed(e.data, name)}
			out = append(out, page)
			e = entry{name: own + e.name, mode: 0o777, link: "../../../../../" + page.name}
		default:
			e.name = own + e.name
		}
		out = append(out, e)
	}
	return sorted(out)
}

// programOf returns the program whose name a file bears, or "": of a program, its manual page or a completion.
func programOf(file string) string {
	dir, base := path.Split(file)
	switch {
	case dir == "bin/", dir == "share/bash-completion/completions/":
		return base
	case dir == "share/man/man1/":
		return strings.TrimSuffix(base, ".1")
	case dir == "share/zsh/site-functions/":
		return strings.TrimPrefix(base, "_")
	case dir == "share/fish/vendor_completions.d/":
		return strings.TrimSuffix(base, ".fish")
	}
	return ""
}

// renamed returns the manual page of a program as that of "strata NAME".
func renamed(page []byte, name string) []byte {
	page = bytes.Replace(page, []byte(".TH "+strings.ToUpper(name)+" "), []byte(".TH STRATA-"+strings.ToUpper(name)+" "), 1)
	page = bytes.Replace(page, []byte("\n"+name+` \- `), []byte("\nstrata-"+name+` \- `), 1)
	// The lines that are typed: of the synopsis, and of examples.
	return regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(name)+` `).ReplaceAll(page, []byte("strata "+name+" "))
}

// note tells the users of a system where the programs are; prefix is that of the system.
func (r *release) note(prefix string) string {
	folder := path.Join(prefix, own, "bin")
	return fmt.Sprintf(`strata NAME starts each program of strata; strata --help lists them.

Other packages have programs named %s.
They stay as they are: %s has no links of these names to strata.
All programs of strata are, by their names, in %s.
To type them without strata before them, put that folder first on PATH, for
example in ~/.profile:

    PATH=%s:$PATH

man and the completion of bash then know them too; zsh and fish find their
completions below %s.
`, r.takenBy(), path.Join(prefix, "bin"), folder, folder, path.Join(prefix, own, "share"))
}

// readme is the note of an archive.
func (r *release) readme() string {
	return fmt.Sprintf(`strata %s: serial-sectioning OCT microscopy, from mosaic grids to one volume.

bin/strata NAME starts each program; bin/strata --help lists them. bin/ also has a
link by the name of each program. With bin/ on PATH,

    PATH="$PWD/bin:$PATH"

these links come before other programs of the same name that come later on PATH.
Debian has such programs named %s.
To leave all others as they are, put bin/ last on PATH, or only bin/strata into a
folder of it, and type strata NAME:

    mkdir -p ~/.local/bin && ln -s "$PWD/bin/strata" ~/.local/bin/

share/ has manual pages, completions for shells, licences, and the workflow.
`, r.version, r.takenBy())
}

// installInto installs the programs into a folder that others may share, such as /usr/local, and says what it left out.
// Files of others stay as they are; what a former version of ours had there and this one has elsewhere goes. With all,
// every program gets its link in bin.
func (r *release) installInto(plain tree, prefix string, all bool, say io.Writer) error {
	taken := r.taken
	if all {
		taken = nil
	}
	t := plain.forSystem(taken)
	if file := filepath.Join(prefix, "bin", "strata"); !ours(file, "bin/strata") {
		return fmt.Errorf("%s is another program: move it away first, or install into another PREFIX", file)
	}
	var place tree
	for _, e := range t {
		if file := filepath.Join(prefix, filepath.FromSlash(e.name)); !ours(file, e.name) {
			fmt.Fprintf(say, "%s is not of strata: it stays as it is\n", file)
			continue
		}
		place = append(place, e)
	}
	if err := install(place, prefix); err != nil {
		return err
	}
	for _, e := range plain {
		file := filepath.Join(prefix, filepath.FromSlash(e.name))
		if _, err := os.Lstat(file); err != nil || t.find(e.name).name != "" || !ours(file, e.name) {
			continue
		}
		if err := os.Remove(file); err != nil {
			return err
		}
		fmt.Fprintf(say, "%s was strata's: removed\n", file)
	}
	if all {
		fmt.Fprintf(say, "%s: %s come before other programs of these names that come later on PATH\n", filepath.Join(prefix, "bin"), r.takenNames())
		return nil
	}
	fmt.Fprintf(say, "%s are other programs' names too: type strata NAME, or put %s first on PATH, or install with ALL_NAMES=1\n",
		r.takenNames(), filepath.Join(prefix, own, "bin"))
	return nil
}

// ours tells whether a file may be replaced: it is not there, or strata's of any version. name is its place below the
// prefix.
func ours(file, name string) bool {
	info, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	program := programOf(strings.Replace(name, "man1/strata-", "man1/", 1))
	switch {
	case err != nil:
		return false
	case program == "" || strings.HasPrefix(name, own):
		return true // in a folder of the name strata
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := os.Readlink(file)
		return err == nil && slices.Contains([]string{"strata", "../" + own + "bin/" + program}, to) && path.Dir(name) == "bin"
	case path.Dir(name) == "bin":
		built, err := buildinfo.ReadFile(file)
		return err == nil && strings.HasSuffix("/"+built.Path, "/strata/cmd/"+program)
	}
	text, err := os.ReadFile(file)
	return err == nil && (bytes.Contains(text, []byte(`"strata `)) && bytes.HasPrefix(text, []byte(".TH ")) || bytes.Contains(text, []byte("completion of "+program)))
}
