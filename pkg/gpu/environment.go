package gpu

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// setEnvironment sets the environment variables that the driver reads when it is initialised, unless the user has set
// them.
func setEnvironment() {
	// Hardware queues: with the driver's eight, streams of more workers wait for each other.
	setUnset("CUDA_DEVICE_MAX_CONNECTIONS", "32")
	if home, err := os.UserHomeDir(); err != nil || !writable(filepath.Join(home, ".nv", "ComputeCache")) {
		if folder := cacheFolder(); folder != "" {
			setUnset("CUDA_CACHE_PATH", folder)
		}
	}
}

func setUnset(name, value string) {
	if _, set := os.LookupEnv(name); !set {
		_ = os.Setenv(name, value) // the driver reads it by getenv
	}
}

// writable reports whether a folder can be written, or made.
func writable(folder string) bool {
	for {
		info, err := os.Stat(folder)
		if err == nil {
			const writeAndEnter = 3
			return info.IsDir() && syscall.Access(folder, writeAndEnter) == nil
		}
		above := filepath.Dir(folder)
		if above == folder {
			return false
		}
		folder = above
	}
}

// cacheFolder returns a private folder for the driver's compiled code if the home folder is not writable. In a shared
// folder, the driver would run machine code that other users had put there. It returns "" if no folder can be made.
func cacheFolder() string {
	folder := filepath.Join(os.TempDir(), fmt.Sprintf("strata-cuda-%d", os.Getuid()))
	_ = os.Mkdir(folder, 0o700)
	info, err := os.Lstat(folder)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return ""
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Getuid() {
		return ""
	}
	return folder
}
