//go:build !linux

package main

import "errors"

func (t *task) uring() error { return errors.New("io_uring is Linux's") }
