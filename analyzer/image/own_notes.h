/*
 * heapcore's own additions to a core: notes named "HEAPCORE", of four-letter types that no other
 * tool uses; and flags of segments, of those reserved for systems.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define NOTE_OWNER "HEAPCORE"

enum {
	NOTE_SMAPS = 0x534d4150,    /* the text of /proc/PID/smaps */
	NOTE_CUTS = 0x43555453,	    /* struct note_range, one after the other */
	NOTE_TIME = 0x54494d45,	    /* struct time_note */
	NOTE_HELD = 0x48454c44,	    /* addresses that the kernel holds, see below */
	NOTE_UNSHARED = 0x554e5348, /* struct note_range, likewise */
	NOTE_SLIM = 0x534c494d,	    /* struct slim_note: contents were left out */
	NOTE_KEPT = 0x4b455054,	    /* struct note_range: contents that were not, by address */
};

/* One of a core; its bytes are in the dump, of any alignment, and untrusted. */
struct own_note {
	uint32_t type;
	const uint8_t *bytes; /* NULL: the core does not have it */
	size_t size;
};

enum { MOST_OWN_NOTES = 16 };

/* Cores of former versions end it behind the time. */
struct time_note {
	uint64_t time; /* ns since 1970 began, in UTC */
	uint64_t age;  /* of the process, in ns; 0: not known */
};

/* The call by which the kernel came to hold a value of the program. */
enum held_kind {
	HELD_SIGNAL_STACK, /* sigaltstack() of a thread */
	HELD_SIGNAL,	   /* a signal that waits to be delivered */
	HELD_TIMER,	   /* timer_create() */
	HELD_EPOLL,	   /* epoll_ctl() */
	HELD_RING,	   /* a request or buffer of an io_uring */
	HELD_KINDS,
};

/*
 * One value of NOTE_HELD. The note begins with 8 bytes that have a bit for each kind that was
 * looked for; then there are as many of these as fit.
 */
struct held_value {
	uint64_t value; /* mostly an address */
	uint32_t kind;
	uint32_t holder; /* a file of the process, or a thread; 0: it all */
	uint64_t detail; /* a watched file, a timer, a signal */
};

/* Used as kind: the ring has requests that the kernel does not list. */
enum { HELD_UNTOLD = 0x100 };

/*
 * A mapping. That of NOTE_CUTS has several segments, which leave parts of it out: each ends before
 * its p_memsz bytes. What is left out was never touched: it is zeros. That of NOTE_UNSHARED is of a
 * core whose other memory is of a clone of the process: this was copied from the process itself,
 * before it ran on.
 */
struct note_range {
	uint64_t start, end;
};

/* Facts about a core that analyzer/slim made; later versions may add to it. */
struct slim_note {
	uint32_t version; /* of its rules: 1 */
	uint32_t flags;
	uint64_t random; /* image_random_hash(); 0, or the note ends before it: not known */
};

/* Facts about the core that it was made of, which the file no longer tells. */
enum { SLIM_BY_DEBUGGER = 1, SLIM_UNPACKED = 2, SLIM_HASHED_NAMES = 4 };

enum {
	SEGMENT_AS_IN_FILE = 0x00100000, /* equal to the mapped file: it was not changed */
	SEGMENT_CONTINUES = 0x00200000,	 /* of the mapping of the segment before it */
};

/*
 * The type of a segment of placeholders alone, of those reserved for systems: so debuggers find no
 * memory there.
 */
enum { SEGMENT_PLACEHOLDERS = 0x60484350 };
