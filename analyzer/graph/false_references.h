/*
 * Words that only look like references: what glibc makes of the process's random numbers; on some
 * machines, saved words of frames that point near the data of a module, whatever is there; and the
 * address at which the loader had a file mapped.
 *
 * The kernel hands each process 16 random bytes (AT_RANDOM). glibc takes the first word of them,
 * its lowest byte cleared, as what guards frames, and the second as what encodes pointers
 * (PTR_MANGLE): an encoded one is the pointer xor that word, rotated left by twice its size plus
 * one, in bits. Encoded are
 *
 *	the stack pointer and the program counter, side by side, of each jmp_buf: one is in the
 *	first frame of every thread, whose stack pointer is not far below it
 *	| next | count | kind, function, argument, module | ... in libc's list for exit()
 *
 * Such a word is as random. One of 8 bytes is never the address of a block; of those of 4, which a
 * thread has some of, one in a thousand is, and would hide a leak in one run of thirty. But in a
 * large process, many a pointer could be taken for an encoded one: so a false reference is
 *recognised by its place as well as by its value.
 *
 * glibc's loader maps /etc/ld.so.cache, unmaps it when the program starts, and keeps the address
 * of its new part (cache_new). malloc may map a large block there, in whose middle that word is: it
 * would hide the block's leak, or name the loader as its owner.
 *
 * Sources: elf/dl-cache.c,
 * sysdeps/unix/sysv/linux/{dl-osinfo,i386/pointer_guard,x86_64/pointer_guard}.h,
 * sysdeps/{i386,x86_64}/{jmpbuf-offsets,nptl/tls}.h and stdlib/exit.h of glibc 2.36. On other
 * processors, and with other C libraries, nothing is found.
 */
#pragma once

#include "analyzer/heap/index.h"
#include "analyzer/program/program.h"

struct false_references {
	const struct program *program;
	const struct module *loader; /* NULL: unknown */
	uint64_t random;	     /* the address of the random bytes; 0: there are none */
	uint64_t frame_guard, pointer_guard;
	uint64_t module_pointers[16]; /* that threads have, each once */
	size_t module_pointer_count;
};

struct false_references false_references_of(const struct program *program);

/*
 * True if the word at place, outside of heaps, is a random number, a pointer encoded with one, or a
 * saved module pointer. Call it only for words of 4 bytes, and for machines with a module_pointer.
 */
bool is_false_reference(const struct false_references *false_references, uint64_t word,
			uint64_t place);

/*
 * True if the word at place, an address in target, belongs to the loader's cache. The loader has no
 * other address a page or more into an allocation, except for stacks that the program provided,
 * which their threads hold.
 */
bool is_of_cache(const struct false_references *false_references,
		 const struct allocation_index *index, allocation_id target, uint64_t word,
		 uint64_t place);
