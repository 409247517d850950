//go:build !linux

package atomic

import "errors"

func renameNew(from, to string) error { return renameNewInSteps(from, to) }

func exchange(_, _ string) error { return errors.ErrUnsupported }
