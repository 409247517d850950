//go:build !amd64 || noasm

package unzstd

const haveLoop = false

func (s *sequencer) loop() int { return decode }

func huffmanLoop(*huffman, int) {}
