package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"strata/tests/tilescan"
)

// pictureWheels are the packages whose pictures and volumes are scanned.
var pictureWheels = []string{"scikit-image==0.26.0", "nilearn==0.14.1"}

// openPictures opens the wheels in a folder. Those that are missing come from PyPI, the same on all machines.
func openPictures(ctx context.Context, dir string) (*tilescan.Pictures, error) {
	wheels, missing, err := findWheels(dir)
	if err != nil {
		return nil, err
	}
	if missing != nil {
		python, err := environment(ctx, "build/venv", "tests/requirements.txt")
		if err != nil {
			return nil, err
		}
		args := []string{"-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--implementation", "cp",
			"--python-version", "3.12", "--platform", "manylinux_2_28_x86_64", "-d", dir}
		if err := command(ctx, nil, python, append(args, missing...)...); err != nil {
			return nil, fmt.Errorf("pip download %s: %w", strings.Join(missing, " "), err)
		}
		if wheels, missing, err = findWheels(dir); err != nil {
			return nil, err
		}
		if missing != nil {
			return nil, fmt.Errorf("%s: pip left no wheel of %s there", dir, strings.Join(missing, ", "))
		}
	}
	return tilescan.Open(wheels...)
}

// findWheels returns the wheels in a folder, and the packages whose wheel is missing.
func findWheels(dir string) (wheels, missing []string, err error) {
	for _, p := range pictureWheels {
		found, err := filepath.Glob(filepath.Join(dir, strings.NewReplacer("==", "-", "-", "_").Replace(p)+"-*.whl"))
		switch {
		case err != nil:
			return nil, nil, err
		case found == nil:
			missing = append(missing, p)
		default:
			wheels = append(wheels, found[0])
		}
	}
	return wheels, missing, nil
}

// environment returns the Python of an environment with what a list of requirements names.
func environment(ctx context.Context, dir, requirements string) (python string, err error) {
	c := exec.CommandContext(ctx, "scripts/venv.sh", dir, requirements)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("an environment with %s: %w", requirements, err)
	}
	return strings.TrimSpace(string(out)), nil
}
