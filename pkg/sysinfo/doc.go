// Package sysinfo reads what a machine says of itself: kernel, container, limits, the NVIDIA driver and nvidia-fs,
// cuFile's configuration, PCI devices, and on which devices a path lies.
//
//	m := sysinfo.Read(ctx, sysinfo.Live(), sysinfo.Options{Path: "/data"})
//	if r := m.Driver.Version; r.Known() { … } else { fmt.Println(r.Reason) }
//
// Everything comes from files below a root folder: that of this machine, or one where another's files were
// recorded, so that a machine can be looked at from afar and tests have machines that nobody has. A recorded tree is
// a folder with the same files and symbolic links (/proc, /sys, /etc, /run …), and what programs printed in
// outputs/gdscheck and outputs/nvidia-smi.
//
// A fact that is not known says why ([Fact]). Reads are bounded, and no content makes a reader fail but by a reason.
package sysinfo
