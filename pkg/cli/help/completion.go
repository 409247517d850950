package help

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"strata/pkg/cli/flags"
)

// Completion prints a script that makes a shell complete the command's
// flags, their values and file names.
func Completion(w io.Writer, c *flags.Command, shell string) error {
	b := bufio.NewWriter(w)
	leaves := leaves(c, nil)
	switch shell {
	case "bash":
		bash(b, c, leaves)
	case "zsh":
		zsh(b, c, leaves)
	case "fish":
		fish(b, c, leaves)
	}
	return b.Flush()
}

// leaf is a command that does something, with the sub-commands that lead to it.
type leaf struct {
	path  []string
	cmd   *flags.Command
	flags []flags.Flag // without hidden ones
}

func leaves(c *flags.Command, path []string) []leaf {
	var all []leaf
	if len(c.Commands) == 0 || c.Run != nil {
		visible := slices.DeleteFunc(c.All(), func(f flags.Flag) bool { return f.Hidden })
		all = []leaf{{path, c, visible}}
	}
	for _, s := range c.Whole() {
		all = append(all, leaves(s, append(slices.Clone(path), s.Name))...)
	}
	return all
}

// both tells whether a command does something itself beside its sub-commands.
func both(leaves []leaf) bool { return len(leaves) > 1 && len(leaves[0].path) == 0 }

// spellings are a flag's long forms as a shell offers them.
func spellings(f *flags.Flag) []string {
	names := []string{"--" + f.Name}
	if f.Kind == flags.Bool && f.Default == "true" {
		names = append(names, "--no-"+f.Name)
	}
	if f.Short != "" {
		names = append(names, "-"+f.Short)
	}
	return names
}

// words are the values of a flag that a shell can offer; nil: any.
func words(f *flags.Flag) []string {
	if f.Name == "codec" && f.Kind == flags.String {
		return flags.CodecNames()
	}
	return f.Choices
}

// takesFile guesses from the placeholder whether a value is a file name.
func takesFile(f *flags.Flag) bool {
	switch strings.ToUpper(f.Value) {
	case "FILE", "PATH", "DIR", "FOLDER":
		return true
	}
	return false
}

func identifier(name string) string {
	return "_strata_" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
}

func subNames(leaves []leaf) []string {
	var names []string
	for _, l := range leaves {
		if len(l.path) > 0 && !slices.Contains(names, l.path[0]) {
			names = append(names, l.path[0])
		}
	}
	return names
}

// eachLeaf writes the body for every leaf, inside a case over the sub-command
// if there are any.
func eachLeaf(b *bufio.Writer, leaves []leaf, body func(l leaf)) {
	if len(leaves) == 1 && len(leaves[0].path) == 0 {
		body(leaves[0])
		return
	}
	fmt.Fprintf(b, "  case \"$sub\" in\n")
	for _, l := range leaves {
		fmt.Fprintf(b, "  '%s')\n", strings.Join(l.path, " "))
		body(l)
		fmt.Fprintf(b, "    ;;\n")
	}
	fmt.Fprintf(b, "  esac\n")
}

func bash(b *bufio.Writer, c *flags.Command, leaves []leaf) {
	fn := identifier(c.Name)
	fmt.Fprintf(b, "# bash completion of %s: source this file, or put it into bash_completion.d\n", c.Name)
	fmt.Fprintf(b, "%s() {\n", fn)
	fmt.Fprintf(b, `  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" sub="" w
  COMPREPLY=()
  if [[ $cur == "=" ]]; then cur=""; elif [[ $prev == "=" ]]; then prev="${COMP_WORDS[COMP_CWORD-2]}"; fi
`)
	if subs := subNames(leaves); len(subs) > 0 {
		fmt.Fprintf(b, `  for w in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$w" in %s) sub="$w"; break ;; esac
  done
`, strings.Join(subs, "|"))
		if both(leaves) {
			fmt.Fprintf(b, `  if [[ -z $sub && $COMP_CWORD == 1 && $cur != -* ]]; then
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -W "%s" -- "$cur"))
    return
  fi
`, strings.Join(subs, " "))
		} else {
			fmt.Fprintf(b, `  if [[ -z $sub ]]; then
    COMPREPLY=($(compgen -W "%s --help --version --completion" -- "$cur"))
    return
  fi
`, strings.Join(subs, " "))
		}
	}
	eachLeaf(b, leaves, func(l leaf) {
		fmt.Fprintf(b, "    case \"$prev\" in\n")
		var all, free []string
		for _, f := range l.flags {
			all = append(all, spellings(&f)...)
			switch words := words(&f); {
			case f.Kind == flags.Bool:
			case len(words) > 0:
				fmt.Fprintf(b, "    %s) COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")); return ;;\n",
					strings.Join(spellings(&f), "|"), strings.Join(words, " "))
			case takesFile(&f):
				fmt.Fprintf(b, "    %s) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n", strings.Join(spellings(&f), "|"))
			default:
				free = append(free, spellings(&f)...)
			}
		}
		if len(free) > 0 {
			fmt.Fprintf(b, "    %s) return ;;\n", strings.Join(free, "|"))
		}
		fmt.Fprintf(b, "    esac\n")
		fmt.Fprintf(b, "    if [[ $cur == -* ]]; then\n      COMPREPLY=($(compgen -W \"%s\" -- \"${cur}\"))\n      return\n    fi\n", strings.Join(all, " "))
	})
	fmt.Fprintf(b, "  compopt -o filenames 2>/dev/null\n  COMPREPLY=($(compgen -f -- \"$cur\"))\n}\n")
	fmt.Fprintf(b, "complete -F %s %s\n", fn, c.Name)
}

func zsh(b *bufio.Writer, c *flags.Command, leaves []leaf) {
	fn := identifier(c.Name)
	fmt.Fprintf(b, "#compdef %s\n# zsh completion of %s: put it into a folder of $fpath as _%s, or source it\n", c.Name, c.Name, c.Name)
	fmt.Fprintf(b, "%s() {\n  local sub=\"\"\n", fn)
	if subs := subNames(leaves); len(subs) > 0 {
		fmt.Fprintf(b, "  local w\n  local -a commands\n  for w in ${words[2,CURRENT-1]}; do\n    case \"$w\" in %s) sub=\"$w\"; break ;; esac\n  done\n", strings.Join(subs, "|"))
		fmt.Fprintf(b, "  if [[ -z $sub ]]; then\n    commands=(")
		for _, s := range c.Commands {
			fmt.Fprintf(b, "\n      %s", quoteZsh(s.Name+":"+s.Usage))
		}
		if both(leaves) {
			fmt.Fprintf(b, "\n    )\n    if (( CURRENT == 2 )); then _describe command commands; fi\n  fi\n")
		} else {
			fmt.Fprintf(b, "\n    )\n    _describe command commands\n    return\n  fi\n")
		}
	}
	eachLeaf(b, leaves, func(l leaf) {
		fmt.Fprintf(b, "    _arguments -s")
		for _, f := range l.flags {
			for _, s := range spellings(&f) {
				spec := s
				if f.Kind != flags.Bool {
					if strings.HasPrefix(s, "--") {
						spec += "="
					} else {
						spec += "+"
					}
				}
				spec += "[" + strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`).Replace(f.Usage) + "]"
				switch words := words(&f); {
				case f.Kind == flags.Bool:
				case len(words) > 0:
					spec += ":" + f.Name + ":(" + strings.Join(words, " ") + ")"
				case takesFile(&f):
					spec += ":" + f.Name + ":_files"
				default:
					spec += ":" + f.Name + ":"
				}
				fmt.Fprintf(b, " \\\n      %s", quoteZsh(spec))
			}
		}
		if len(l.path) > 0 {
			fmt.Fprintf(b, " \\\n      '1:command:(%s)'", l.path[0])
		}
		fmt.Fprintf(b, " \\\n      '*:file:_files'\n")
	})
	fmt.Fprintf(b, "}\nif [[ ${funcstack[1]} == _%s ]]; then %s \"$@\"; else compdef %s %s; fi\n", c.Name, fn, fn, c.Name)
}

func quoteZsh(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func fish(b *bufio.Writer, c *flags.Command, leaves []leaf) {
	quote := func(s string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
	}
	fmt.Fprintf(b, "# fish completion of %s: put it into ~/.config/fish/completions/%s.fish\n", c.Name, c.Name)
	for _, s := range c.Commands {
		fmt.Fprintf(b, "complete -c %s -n __fish_use_subcommand -f -a %s -d %s\n", c.Name, s.Name, quote(s.Usage))
	}
	for _, l := range leaves {
		condition := ""
		if both(leaves) && len(l.path) == 0 {
			condition = " -n " + quote("not __fish_seen_subcommand_from "+strings.Join(subNames(leaves), " "))
		}
		if len(l.path) > 0 {
			condition = " -n " + quote("__fish_seen_subcommand_from "+l.path[0])
		}
		for _, f := range l.flags {
			for _, s := range spellings(&f) {
				fmt.Fprintf(b, "complete -c %s%s", c.Name, condition)
				if long, ok := strings.CutPrefix(s, "--"); ok {
					fmt.Fprintf(b, " -l %s", long)
				} else {
					fmt.Fprintf(b, " -s %s", s[1:])
				}
				switch words := words(&f); {
				case f.Kind == flags.Bool:
				case len(words) > 0:
					fmt.Fprintf(b, " -x -a %s", quote(strings.Join(words, " ")))
				case takesFile(&f):
					fmt.Fprintf(b, " -r -F")
				default:
					fmt.Fprintf(b, " -x")
				}
				fmt.Fprintf(b, " -d %s\n", quote(f.Usage))
			}
		}
	}
}
