/*
 * How a thread that makes a call for its tracer finds back without it.
 *
 * Should the tracer be killed amid the call, the kernel lets the thread go with the registers it
 * has. So these lead back: the call is made where a `ret` follows, with a stack of frames as the
 * kernel makes for signal handlers, below all that the thread has in use of its own. `ret` leads to
 * sigreturn(), which loads what such a frame holds:
 *
 * - home: the thread's own registers, and its mask of signals; the call that it
 *   waited in begins anew
 * - collect: wait4() for the process that it made, and then home
 * - leave: exit(), for a process that it made, if nobody traces that
 *
 * What the thread has below its stack pointer is put back in the end.
 */
#ifndef ANALYZER_CAPTURE_WAY_BACK_H
#define ANALYZER_CAPTURE_WAY_BACK_H

#include "analyzer/capture/injection.h"
#include "analyzer/capture/process.h"

/* Where code of the process stands, or 0. */
struct way_back_code {
	uint64_t call;	 /* syscall; ret */
	uint64_t resume; /* mov $15,%rax; syscall: sigreturn() */
};

enum { WAY_BACK_SIZE = 1 << 14 }; /* at most, in bytes */

struct way_back {
	uint64_t home, collect, leave; /* stack pointers; 0: there is no way */
	uint64_t answer;	       /* 8 bytes for what a call writes */
	uint64_t start, size;
	_Alignas(8) uint8_t laid[WAY_BACK_SIZE];
	uint8_t former[WAY_BACK_SIZE]; /* what was there */
};

/* Look for the code, while the process runs. */
void way_back_find(pid_t process, const struct memory_map *map, struct way_back_code *ret);

/*
 * Lay the frames for the thread of the injection, whose registers are known, and have it call where
 * the way begins. Only on a stack of the C library's can that be done; elsewhere there is no way.
 * Allocates nothing.
 */
void way_back_lay(const struct way_back_code *code, const struct memory_map *map,
		  struct injection *injection, struct way_back *ret);

/* Put back what was there, when the thread has its own registers. */
void way_back_remove(const struct way_back *way, pid_t process);

#endif
