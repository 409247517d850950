// Package settings reads from the environment how files are read into a GPU's memory and written from it
// ([Settings]), and when requests to servers are retried ([HTTP]). The settings have the meaning that they
// have in KvikIO, except for the differences in docs/file-layer.md; KvikIO's environment variables apply
// where ours are not set.
package settings

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/units"
)

// Mode sets whether the host reads and writes files itself instead of cuFile (KvikIO's "compatibility mode",
// which differs from cuFile's).
type Mode int

// Values of Mode.
const (
	Auto Mode = iota // cuFile if it moves data straight between file and device, otherwise the host
	On               // the host
	Off              // cuFile; where it does not move data straight, that is an error
)

func (m Mode) String() string { return [...]string{"auto", "on", "off"}[m] }

// Settings configure how files are read and written.
type Settings struct {
	Compat  Mode
	Threads int // that read and write at a time; 0: the CPUs of the control group
	// TaskSize is the maximum number of bytes of a read or write that a thread processes at once. If it is at
	// least a page, tasks end at page boundaries of the file.
	TaskSize int64
	// Threshold is the minimum size, in bytes, of reads and writes that are left to cuFile.
	Threshold int64
	// Bounce is the maximum page-locked memory per thread, in bytes, for data between file and device.
	Bounce int64
	// DirectRead and DirectWrite let the host bypass the page cache (O_DIRECT) for whole pages of a file.
	DirectRead, DirectWrite bool
	// Register keeps repeatedly used device memory mapped for cuFile (cuFileBufRegister).
	Register bool
}

// Default returns the default settings.
func Default() Settings {
	return Settings{TaskSize: 4 << 20, Threshold: 16 << 10, Bounce: 16 << 20, DirectWrite: true, Register: true}
}

// Environment calls [FromEnv] with the environment of the process.
func Environment() (Settings, error) { return FromEnv(os.LookupEnv) }

// FromEnv returns [Default] with the values set in the environment, by a STRATA variable or else KvikIO's. An
// empty variable counts as not set. The error names the variable and the valid values.
func FromEnv(lookup func(name string) (string, bool)) (Settings, error) {
	s := Default()
	if err := apply(&s, variables, lookup); err != nil {
		return Default(), err
	}
	return s, nil
}

// apply sets what variables say; of a row the first that is set counts.
func apply[T any](to *T, rows [][]variable[T], lookup func(name string) (string, bool)) error {
	for _, row := range rows {
		for _, v := range row {
			text, _ := lookup(v.name)
			if strings.TrimSpace(text) == "" {
				continue
			}
			if err := v.set(to, strings.TrimSpace(text)); err != nil {
				return fmt.Errorf("environment variable %s: %w", v.name, err)
			}
			break
		}
	}
	return nil
}

// variable is an environment variable that sets a part of a T.
type variable[T any] struct {
	name string
	set  func(to *T, text string) error
}

// variables by what they set.
var variables = [][]variable[Settings]{
	{{"STRATA_COMPAT_MODE", (*Settings).SetMode}, {"KVIKIO_COMPAT_MODE", (*Settings).SetMode}},
	{{"STRATA_GDS_THREADS", setThreads}, {"KVIKIO_NTHREADS", setThreads}, {"KVIKIO_NUM_THREADS", setThreads}},
	{{"STRATA_TASK_SIZE", (*Settings).SetTaskSize}, {"KVIKIO_TASK_SIZE", (*Settings).SetTaskSize}},
	{{"STRATA_GDS_THRESHOLD", (*Settings).SetThreshold}, {"KVIKIO_GDS_THRESHOLD", (*Settings).SetThreshold}},
	{{"STRATA_BOUNCE_BUFFER", (*Settings).SetBounce}, {"KVIKIO_BOUNCE_BUFFER_SIZE", (*Settings).SetBounce}},
	{{"STRATA_DIRECT_IO", (*Settings).SetDirect}, {"KVIKIO_AUTO_DIRECT_IO_READ", func(s *Settings, text string) error { return setSwitch(&s.DirectRead, text) }}},
	{{"STRATA_DIRECT_IO", (*Settings).SetDirect}, {"KVIKIO_AUTO_DIRECT_IO_WRITE", func(s *Settings, text string) error { return setSwitch(&s.DirectWrite, text) }}},
	{{"STRATA_GDS_REGISTER", (*Settings).SetRegister}},
}

// Variables returns the names of the environment variables that [FromEnv] and [HTTPFromEnv]
// read.
func Variables() []string { return append(names(variables), names(httpVariables)...) }

func names[T any](rows [][]variable[T]) []string {
	var names []string
	for _, row := range rows {
		for _, v := range row {
			if !slices.Contains(names, v.name) {
				names = append(names, v.name)
			}
		}
	}
	return names
}

// SetMode accepts auto, on or off, and true, yes, 1, false, no and 0 like KvikIO.
func (s *Settings) SetMode(text string) error {
	if strings.EqualFold(text, "auto") {
		s.Compat = Auto
		return nil
	}
	var on bool
	if setSwitch(&on, text) != nil {
		return fmt.Errorf("%q is not auto, on or off", text)
	}
	s.Compat = Off
	if on {
		s.Compat = On
	}
	return nil
}

// MostThreads is the maximum number of threads.
const MostThreads = 1024

func setThreads(s *Settings, text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MostThreads {
		return fmt.Errorf("%q is not a number of threads: want 1 to %d", text, MostThreads)
	}
	s.Threads = n
	return nil
}

// MostBytes is the largest size.
const MostBytes = 1 << 60

// SetTaskSize accepts a size of at least one byte.
func (s *Settings) SetTaskSize(text string) error { return setSize(&s.TaskSize, text, 1) }

// SetThreshold accepts a size.
func (s *Settings) SetThreshold(text string) error { return setSize(&s.Threshold, text, 0) }

// LeastBounce is the minimum size of a bounce buffer: two pages, each with one more for a position within its
// page.
const LeastBounce = 16 << 10

// SetBounce accepts a size of at least [LeastBounce].
func (s *Settings) SetBounce(text string) error { return setSize(&s.Bounce, text, LeastBounce) }

func setSize(to *int64, text string, least int64) error {
	n, err := units.ParseSize(text)
	if err != nil {
		return err
	}
	if n < least || n > MostBytes {
		return fmt.Errorf("%q must be from %s to %s", text, units.FormatSize(least), units.FormatSize(MostBytes))
	}
	*to = n
	return nil
}

// SetDirect accepts none, read, write or both.
func (s *Settings) SetDirect(text string) error {
	switch strings.ToLower(text) {
	case "none":
		s.DirectRead, s.DirectWrite = false, false
	case "read":
		s.DirectRead, s.DirectWrite = true, false
	case "write":
		s.DirectRead, s.DirectWrite = false, true
	case "both":
		s.DirectRead, s.DirectWrite = true, true
	default:
		return fmt.Errorf("%q is not none, read, write or both", text)
	}
	return nil
}

// SetRegister accepts auto or off.
func (s *Settings) SetRegister(text string) error {
	switch strings.ToLower(text) {
	case "auto":
		s.Register = true
	case "off":
		s.Register = false
	default:
		return fmt.Errorf("%q is not auto or off", text)
	}
	return nil
}

func setSwitch(to *bool, text string) error {
	switch strings.ToLower(text) {
	case "on", "true", "yes", "1":
		*to = true
	case "off", "false", "no", "0":
		*to = false
	default:
		return fmt.Errorf("%q is not on or off", text)
	}
	return nil
}
