package run

import "syscall"

// machineErrorsHere are those of [machineErrors] that only Linux has: of network file systems
// (Lustre, NFS, AFS, 9p), of keys that ran out (Kerberos), of file systems that found themselves damaged.
var machineErrorsHere = []syscall.Errno{
	syscall.EREMOTEIO, syscall.ECOMM, syscall.ENOLINK, syscall.EPROTO, syscall.ENOKEY, syscall.EKEYEXPIRED, syscall.EKEYREVOKED,
	syscall.EKEYREJECTED, syscall.EUCLEAN, syscall.EBADMSG, syscall.ENOMEDIUM, syscall.EMULTIHOP,
}
