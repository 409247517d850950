//go:build !amd64 || noasm

package unzstd

const haveLoop = false

func sequenceLoop(*sequencer) int { return decode }

func huffmanLoop(*huffman, int) {}
