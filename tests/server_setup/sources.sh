# Small sources with the constructs that nvidia-fs has where the patch works, and two
# kernels as far as these include them. Sourced by run.sh.
# shellcheck shell=bash disable=SC2034 # variables are for the caller

# kernel FOLDER old|new: headers. The old one has private flags and struct
# req_iterator, the new one public flags and struct blk_map_iter.
kernel() {
  mkdir -p "$1/linux"
  cat >"$1/linux/mm.h" <<'C'
#define ACCESS_PRIVATE(p, member) ((p)->member)
typedef unsigned long vm_flags_t;
C
  cat >"$1/linux/blkdev.h" <<'C'
#ifndef BLKDEV_H
#define BLKDEV_H
#define NULL ((void *)0)
struct bvec_iter { unsigned bi_size; };
struct bio { struct bio *bi_next; struct bvec_iter bi_iter; };
struct request { struct bio *bio; };
struct req_iterator { struct bvec_iter iter; struct bio *bio; };
#endif
C
  echo '#include <linux/blkdev.h>' >"$1/linux/blk-mq.h"
  if [ "$2" = old ]; then
    echo 'struct vm_area_struct { union { const vm_flags_t vm_flags; vm_flags_t __vm_flags; }; };' >>"$1/linux/mm.h"
    cat >"$1/linux/blk-mq-dma.h" <<'C'
#include <linux/blk-mq.h>
struct blk_dma_iter { unsigned long addr; struct req_iterator iter; };
C
  else
    echo 'struct vm_area_struct { const vm_flags_t vm_flags; };' >>"$1/linux/mm.h"
    cat >"$1/linux/blk-mq-dma.h" <<'C'
#include <linux/blk-mq.h>
struct blk_map_iter { struct bvec_iter iter; struct bio *bio; void *bvecs; _Bool is_integrity; };
struct blk_dma_iter { unsigned long addr; struct blk_map_iter iter; };
C
  fi
  echo 'int blk_rq_dma_map_iter_start(struct request *rq, struct blk_dma_iter *iter);' >>"$1/linux/blk-mq-dma.h"
}

# sources FOLDER: what needs all four changes.
sources() {
  mkdir -p "$1"
  cat >"$1/nvfs-mmap.c" <<'C'
#include <linux/mm.h>
#include "config-host.h"

/* A comment may say ACCESS_PRIVATE(vma, __vm_flags). */
int map_memory(struct vm_area_struct *vma, unsigned long needed)
{
	vm_flags_t seen;
#ifdef FLAGS_CAN_BE_WRITTEN
	seen = vma->vm_flags;
#else
	seen = ACCESS_PRIVATE( vma, __vm_flags ); // read once
#endif
	if ((ACCESS_PRIVATE(vma, __vm_flags) & needed) == needed)
		return 1;
	return seen == 0;
}
C
  cat >"$1/nvfs-dma.h" <<'C'
#ifdef HAVE_BLK_RQ_DMA_MAP_ITER_START
#include <linux/blk-mq-dma.h>
struct blk_dma_iter;
#endif
C
  cat >"$1/nvfs-dma.c" <<'C'
#include <linux/blkdev.h>
#include "config-host.h"
#include "nvfs-dma.h"

// The scatter list path keeps its iterator.
static unsigned count_list(struct request *req)
{
	struct req_iterator iter = { .bio = req->bio };
	unsigned n = 0;

	for (; iter.bio; iter.bio = iter.bio->bi_next)
		n++;
	return n;
}

#ifdef HAVE_BLK_RQ_DMA_MAP_ITER_START
static int counter;
#endif

#if defined(HAVE_BLK_RQ_DMA_MAP_ITER_START)
/* Like blk_map_iter_next(); takes a struct req_iterator. */
static int more(struct request *req, struct req_iterator *at)
{
	if (!at->iter.bi_size && at->bio && at->bio->bi_next) {
		at->bio = at->bio->bi_next;
		at->iter = at->bio->bi_iter;
	}
	return req && at->iter.bi_size != 0;
}

int map_first(struct request *req, struct blk_dma_iter *iter)
{
	struct req_iterator *at = &iter->iter;

	counter++;
#ifdef VERBOSE
	struct req_iterator *shown = at;
	return shown != at;
#endif
	return more(req, at);
}
#endif /* HAVE_BLK_RQ_DMA_MAP_ITER_START */

unsigned count(struct request *req)
{
	return count_list(req);
}
C
  cat >"$1/configure" <<'SH'
#!/bin/sh
# usage: configure INCLUDES
include=$1
config_host_h=config-host.h
TEST_C=probe.c
output_sym() {
	echo "#define $1 1" >> $config_host_h
}
compile_prog() {
	if gcc -w -Werror=incompatible-pointer-types -fsyntax-only -I"$include" $TEST_C 2>/dev/null; then
		echo "$1 yes"
		return 0
	fi
	echo "$1 no"
	return 1
}
: > $config_host_h
: > test.h

cat > $TEST_C <<EOF
#include <linux/blk-mq-dma.h>
#include "test.h"

int test (void)
{
	struct blk_dma_iter iter;
	return blk_rq_dma_map_iter_start(NULL, &iter);
}
EOF
if compile_prog "iterator ..."; then
        output_sym "HAVE_BLK_RQ_DMA_MAP_ITER_START"
fi

rm -f $TEST_C test.h
SH
  cat >"$1/create_nv.symvers.sh" <<'SH'
#!/bin/bash
# usage: create_nv.symvers.sh FOLDER   the symbols of its nvidia modules
prefix="__crc_nvidia_p2p_"
: > nv.symvers
# WA for nm, as in: case of *ko.xz)
for packed in "$1"/nvidia*.ko*
do
	module=$packed
	case "$module" in
		*ko.xz)
			cp -f "$module" .
			module=$(basename "$module" | sed -e "s/.xz//g")
			xz -d "${module}.xz"
			;;
	esac
	# grep for "R __crc" finds CRCs that are offsets
	if (nm -o "$module" | grep "$prefix" | grep -qe "\sR\s*__crc"); then
		echo "relative: $(basename "$module")"
		continue
	fi
	nm "$module" | sed -n "s/^\(0*\)\([0-9a-f]*\) A __crc_/0x\2 /p" >> nv.symvers
done
SH
  echo 2.28.4 >"$1/GDS_VERSION"
  chmod 755 "$1/configure"
  chmod 640 "$1/create_nv.symvers.sh"
}

# compiles FOLDER KERNEL: configured and compiled, as the kernel's build does it?
compiles() {
  (cd "$1" && sh ./configure "$2" && for c in nvfs-mmap.c nvfs-dma.c; do
    gcc -Wall -Werror=incompatible-pointer-types -Wno-unused -fsyntax-only -I"$2" $c || exit 1
  done)
}

# module FILE SYMBOLS…: an object with the symbols that the assembler text makes.
module() {
  printf '%s\n' "${@:2}" | gcc -c -x assembler -o "$1" -
}
absolute=('.globl __crc_nvidia_p2p_get_pages' '__crc_nvidia_p2p_get_pages = 0x12345678')
relative=('.section .rodata' '__crc_nvidia_p2p_get_pages: .long 0x12345678')
