// Package deb reads Debian archives: package indices, dependencies and packages, as far as an image of a few
// dozen packages needs them. It installs nothing: no maintainer script ever runs, and dpkg is not needed.
//
//	err := index.Read(packagesFile, "debian")        // a Packages file
//	list, err := index.Resolve([]string{"bash"}, nil) // with its dependencies
//	path, err := mirror.Package(ctx, list[0], at, dir) // checked against its SHA-256
//	control, err := deb.Unpack(file, each)           // its content
//
// Formats: deb(5), deb-control(5), deb-version(7) and the Debian policy manual.
package deb
