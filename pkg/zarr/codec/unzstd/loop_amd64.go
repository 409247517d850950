//go:build !noasm

package unzstd

import "golang.org/x/sys/cpu"

var haveLoop = cpu.X86.HasBMI2

// sequenceLoop decodes and executes sequences for as long as nothing is special about them, but not the last one. It
// returns done when one sequence is left, decode when the next one needs more bits than one word has, or there may not
// be enough, and execute when the sequence at hand is near an end of a buffer, wrong, or a match that repeats itself
// and is longer than 16 bytes. It needs BMI2.
//
//go:noescape
func sequenceLoop(s *sequencer) int

// huffmanLoop does what huffman.loop does. It needs BMI2.
//
//go:noescape
func huffmanLoop(h *huffman, rounds int)
