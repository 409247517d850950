package cli

import (
	"context"

	"strata/pkg/cli/flags"
	"strata/pkg/cli/release"
	"strata/pkg/cli/run"
)

// Types that describe a program; see package flags.
type (
	Command  = flags.Command
	Arg      = flags.Arg
	Flag     = flags.Flag
	Example  = flags.Example
	Alias    = flags.Alias
	Defaults = flags.Defaults
	Hints    = flags.Hints
	Hint     = flags.Hint
	Shared   = flags.Shared
	Member   = flags.Member
)

// The kinds of flags.
const (
	String   = flags.String
	Bool     = flags.Bool
	Int      = flags.Int
	Float    = flags.Float
	Size     = flags.Size
	Duration = flags.Duration
	Strings  = flags.Strings
	Ints     = flags.Ints
	Floats   = flags.Floats
)

// The groups of common flags.
const (
	GPU       = flags.GPU
	Resources = flags.Resources
	Outputs   = flags.Outputs
	Layout    = flags.Layout
	Pyramid   = flags.Pyramid
	Inputs    = flags.Inputs
	Pairs     = flags.Pairs
	Stage     = flags.Stage
)

// MostAxis is the largest length of an axis that flags may give.
const MostAxis = flags.MostAxis

// Bind is [flags.Bind].
func Bind(to any, f Flag) Flag { return flags.Bind(to, f) }

// LayoutOf is [flags.LayoutOf].
func LayoutOf(prefix, output, axes, chunks string) []Flag {
	return flags.LayoutOf(prefix, output, axes, chunks)
}

// AtLeast is [flags.AtLeast].
func AtLeast(limit float64) func(any) error { return flags.AtLeast(limit) }

// Above is [flags.Above].
func Above(limit float64) func(any) error { return flags.Above(limit) }

// Between is [flags.Between].
func Between(low, high float64) func(any) error { return flags.Between(low, high) }

// Stem is [flags.Stem].
func Stem(out string) string { return flags.Stem(out) }

// VoxelSize is [flags.VoxelSize].
func VoxelSize(v any) error { return flags.VoxelSize(v) }

// Types that a program's functions work with; see package run.
type (
	Run         = run.Run
	Options     = run.Options
	Device      = run.Device
	Accelerator = run.Accelerator
)

// Exit codes.
const (
	ExitOK       = run.ExitOK
	ExitFailed   = run.ExitFailed
	ExitUsage    = run.ExitUsage
	ExitBadInput = run.ExitBadInput
	ExitGPU      = run.ExitGPU
)

// Do is [run.Do].
func Do(do func(context.Context, *Run) error) flags.Action { return run.Do(do) }

// Accelerated is [run.Accelerated].
func Accelerated(gpu Accelerator, do func(context.Context, *Run) error) flags.Action {
	return run.Accelerated(gpu, do)
}

// Usage is [run.Usage].
func Usage(format string, args ...any) error { return run.Usage(format, args...) }

// BadInput is [run.BadInput].
func BadInput(err error) error { return run.BadInput(err) }

// BadInputf is [run.BadInputf].
func BadInputf(format string, args ...any) error { return run.BadInputf(format, args...) }

// GPUFailure is [run.GPUFailure].
func GPUFailure(err error) error { return run.GPUFailure(err) }

// MemoryError is [run.MemoryError].
func MemoryError(format string, args ...any) error { return run.MemoryError(format, args...) }

// NoDriver is [run.NoDriver].
func NoDriver(err error) error { return run.NoDriver(err) }

// ExitStatus is [run.ExitStatus].
func ExitStatus(code int) error { return run.ExitStatus(code) }

// ExitCode is [run.ExitCode].
func ExitCode(err error) int { return run.ExitCode(err) }

// Message is [run.Message].
func Message(text string) string { return run.Message(text) }

// InBucket is [run.InBucket].
func InBucket(path string) bool { return run.InBucket(path) }

// Self is [run.Self].
func Self() ([]string, error) { return run.Self() }

// Version is [release.Version].
func Version() string { return release.Version() }

// Commit is [release.Commit].
func Commit() string { return release.Commit() }
