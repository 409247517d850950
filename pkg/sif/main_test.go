package sif_test

import "runtime"

const goarch = runtime.GOARCH
