package gds

import (
	"fmt"
	"os"
)

// Flags returns the flags for [Pool.Open] of a mode as C, Python and KvikIO have it: "r" opens
// a file that is there to read it, "w" makes a file or empties it to write it; "r+" and "w+" do so to read
// and write.
// There is no "a": writes go to where they are told.
func Flags(mode string) (int, error) {
	switch mode {
	case "r":
		return os.O_RDONLY, nil
	case "r+":
		return os.O_RDWR, nil
	case "w":
		return os.O_WRONLY | os.O_CREATE | os.O_TRUNC, nil
	case "w+":
		return os.O_RDWR | os.O_CREATE | os.O_TRUNC, nil
	}
	return 0, fmt.Errorf("%q is not r, r+, w or w+", mode)
}
