// Package sysinfo reads facts about a machine: kernel, container, limits, the NVIDIA driver and nvidia-fs,
// cuFile's configuration, PCI devices, and the devices that hold a path.
//
//	m := sysinfo.Read(ctx, sysinfo.Live(), sysinfo.Options{Path: "/data"})
//	if r := m.Driver.Version; r.Known() { … } else { fmt.Println(r.Reason) }
//
// Everything comes from files below a root folder: this machine's, or one with the recorded files of another,
// so that a machine can be examined remotely and tests can use machines that nobody has. A recorded tree is a
// folder with the same files and symbolic links (/proc, /sys, /etc, /run …), and the output of programs in
// outputs/gdscheck and outputs/nvidia-smi.
//
// An unknown fact carries a reason ([Fact]). Reads are bounded, and no content makes a reader fail except
// with a reason.
package sysinfo
