package cli

import (
	"io"
	"os"
	"runtime/debug"

	"strata/pkg/cli/flags"
	"strata/pkg/cli/help"
	"strata/pkg/cli/release"
	"strata/pkg/cli/run"
)

// Main runs a command with the process's arguments and streams, and ends the
// process with the command's exit code.
func Main(c *Command) {
	run.HideSecrets(os.Args[1:], os.Environ())
	debug.SetTraceback("crash") // what the runtime ends dies by SIGABRT: its exit code 2 would say wrong usage
	if code, supervised := run.Supervise(c.Name, os.Args[1:]); supervised {
		os.Exit(code)
	}
	os.Exit(execute(c.CalledAs(os.Args[0]), os.Args[1:], flags.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// execute is Main without the end of the process.
func execute(c *Command, words []string, s flags.Streams) (code int) {
	s.Out = run.Results(s.Out)
	err := flags.Parse(c, words, func(l *flags.Line) error {
		if answered, err := about(s.Out, l); answered {
			return err
		}
		if err := l.Count(); err != nil {
			return err
		}
		code = l.Command.Run(l, s)
		return nil
	})
	if err != nil {
		return run.PrintError(s.Err, c.Name, err)
	}
	return code
}

// about prints the information that a command line asks for instead of a run, such as the version; answered is false if
// it asks for none.
func about(w io.Writer, l *flags.Line) (answered bool, err error) {
	switch l.Help {
	case flags.BriefHelp:
		return true, help.Brief(w, l.Command, l.Path)
	case flags.FullHelp:
		return true, help.Print(w, l.Command, l.Path)
	}
	switch l.About() {
	case "version":
		return true, release.Print(w, l.Program())
	case "man":
		return true, help.Man(w, l.Root)
	case "completion":
		return true, help.Completion(w, l.Root, l.String("completion"))
	}
	return false, nil
}
