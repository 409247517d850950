package run

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// warnings collects what was warned of, each text once. It is a zerolog hook:
// warnings are recorded however they are logged.
type warnings struct {
	mu    sync.Mutex
	seen  map[string]bool
	texts []string
	quiet bool
}

// Run records a warning. It prints the warning unless it was recorded before or the mode is quiet.
func (w *warnings) Run(e *zerolog.Event, level zerolog.Level, text string) {
	if level != zerolog.WarnLevel {
		return
	}
	if !w.note(Message(text)) || w.quiet {
		e.Discard()
	}
}

// note records a warning, and reports whether it is new.
func (w *warnings) note(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen[text] {
		return false
	}
	if w.seen == nil {
		w.seen = map[string]bool{}
	}
	w.seen[text] = true
	w.texts = append(w.texts, text)
	return true
}

func (w *warnings) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.texts...)
}

// hold reports whether a warning holds a text.
func (w *warnings) hold(text string) bool {
	return slices.ContainsFunc(w.list(), func(t string) bool { return strings.Contains(t, text) })
}

// newLogger logs to out. On a console a line is "aip: text key=value", with a
// time in front when verbose; in JSON it is an object.
func newLogger(out io.Writer, tool string, o *Options, w *warnings) zerolog.Logger {
	level := zerolog.InfoLevel
	switch {
	case o.Quiet:
		level, w.quiet = zerolog.WarnLevel, true // warnings reach the hook, which drops them
	case o.Verbose:
		level = zerolog.DebugLevel
	}
	if o.LogJSON {
		return zerolog.New(out).Level(level).With().Timestamp().Str("tool", tool).Logger().Hook(w)
	}
	console := zerolog.ConsoleWriter{Out: out, NoColor: true, TimeFormat: time.TimeOnly}
	console.PartsOrder = []string{zerolog.LevelFieldName, zerolog.MessageFieldName}
	console.FormatLevel = func(v any) string {
		switch v {
		case zerolog.LevelWarnValue:
			return tool + ": warning:"
		case zerolog.LevelErrorValue, zerolog.LevelInfoValue:
			return tool + ":"
		}
		return fmt.Sprintf("%s: %v:", tool, v)
	}
	logger := zerolog.New(console).Level(level)
	if o.Verbose {
		console.PartsOrder = append([]string{zerolog.TimestampFieldName}, console.PartsOrder...)
		logger = zerolog.New(console).Level(level).With().Timestamp().Logger()
	}
	return logger.Hook(w)
}
