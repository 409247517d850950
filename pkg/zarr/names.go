package zarr

import (
	"strata/pkg/zarr/box"
	"strata/pkg/zarr/meta"
)

// Names of the packages below that callers of this one need.
type (
	// Region is a box of elements of an array.
	Region = box.Region
	// Spec describes an array to create.
	Spec = meta.Spec
	// Account counts the stored chunks of an array in its attributes, under [AccountKey].
	Account = meta.Account
	// FormatError reports stored data that violates the Zarr specification or its own metadata.
	FormatError = meta.FormatError
)

// AccountKey is the attribute that holds an [Account].
const AccountKey = meta.AccountKey

// ErrForeign is wrapped by errors about arrays of kinds that this package does not read.
var ErrForeign = meta.ErrForeign
