//go:build !amd64 || noasm

package shuffle

const haveAVX2 = false

func shuffleAVX2(dst, src []byte, ts, n, stride int) int   { return 0 }
func unshuffleAVX2(dst, src []byte, ts, n, stride int) int { return 0 }
func bitShuffleAVX2(dst, src []byte, ts, n int) int        { return 0 }
func bitUnshuffleAVX2(dst, src []byte, ts, n int) int      { return 0 }
