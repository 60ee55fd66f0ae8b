/*
 * The dump as memory: what bytes the process had at which address.
 *
 * The dump is mapped, never copied, unless it must be unpacked first; see unpack.h. The address
 * space is cut into regions, sorted, not overlapping, each of one origin throughout: in the dump,
 * taken from the file that was mapped there (only when its build-id is the one in the dump), or
 * absent. Absent is not zero: nobody knows what was there.
 *
 *	segment         |-------- rw- --------|     one mapping of the process
 *	regions         |-- core --|- absent -|
 *
 * Everything here is for hostile dumps: all reads are checked, and an image opens even if parts of
 * the dump make no sense; those end up in the findings.
 */
#pragma once

#include "analyzer/base/error.h"
#include "analyzer/base/list.h"
#include "analyzer/base/progress.h"
#include "analyzer/image/arch.h"
#include "analyzer/image/own_notes.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	RIGHT_EXECUTE = 1, /* as PF_X, PF_W and PF_R in ELF */
	RIGHT_WRITE = 2,
	RIGHT_READ = 4,
};

enum region_origin { REGION_CORE, REGION_FILE, REGION_ABSENT };

/* The state of a mapping's file: used, or the reason why not. */
enum file_state {
	FILE_UNKNOWN,	  /* no build-id in the dump to know it by */
	FILE_NOT_THERE,	  /* or not a regular file */
	FILE_OTHER_BUILD, /* its build-id is not that in the dump */
	FILE_USED,
};

/* A file mapped by the process, as the dump names it (untrusted). */
struct mapping {
	uint64_t start, end; /* addresses */
	uint64_t offset;     /* into the file, of start */
	const char *path;
	const struct image_file *file; /* NULL: see the state */
	enum file_state state;
	/*
	 * The mapping of the file's beginning that belongs to this one: that of the same path,
	 * nearest at or below it. NULL: the file is mapped without it, and so is no module.
	 */
	const struct mapping *base;
	bool is_matched; /* see matched_headers_read(): it needs no build-id */
};

struct region {
	uint64_t start, end; /* [start, end) */
	uint8_t rights;
	bool is_gap;	/* only a mapped file tells of it: rights are guessed */
	bool left_out;	/* the dump was not to have it */
	bool untouched; /* and it was zeros, which are as in the dump */
	enum region_origin origin;
	uint32_t segment;	       /* the same for all parts of a mapping */
	const uint8_t *bytes;	       /* end - start bytes, NULL if absent */
	const struct mapping *mapping; /* NULL: anonymous, or not told */
};

/*
 * A file that the dump names, mapped read-only, with the right build-id; or what the dump has of
 * it, the rest being zeros: see mapped_file.h.
 */
struct image_file {
	bool partial;
	char *path;
	const uint8_t *bytes;
	size_t size;
	unsigned int modules; /* that are of it */
};

/* The access to memory that failed. */
enum fault {
	FAULT_NONE, /* none did, or the dump does not say */
	FAULT_AT,
	FAULT_SOMEWHERE, /* at an address that the processor does not tell, as it is none */
};

/* A thread as the dump has it. The first is the one that took the signal. */
struct image_thread {
	uint32_t id;
	int signal;
	bool signal_sent; /* by kill() and the like, by this process: */
	uint32_t signal_sender;
	enum fault fault;
	uint64_t fault_address;		    /* if FAULT_AT */
	uint64_t registers[MOST_REGISTERS]; /* see arch.h */
	uint64_t thread_pointer;	    /* as the dump has it; 0: it has none */
	const uint8_t *vectors;		    /* floating point and vector state, raw */
	size_t vectors_size;
};

/*
 * Facts that a dump states about the process as a whole, 0 if it does not; and which tool wrote the
 * dump.
 */
struct image_origin {
	uint32_t process;  /* its id */
	char command[81];  /* the beginning of its command line; untrusted */
	uint64_t time;	   /* when it was taken, in ns since 1970 began */
	uint64_t age;	   /* of the process at that time, in ns */
	bool hashed_names; /* a slim core has names that are hashes */
	bool by_debugger;  /* the dump has sections, as gdb makes them */
	bool unpacked;	   /* the mapped bytes are unpacked from the file */
	uint64_t random;   /* image_random_hash() of the core that a slim one is of */
};

/* A module that is loaded (untrusted); see link_map.h. */
struct loaded {
	uint64_t map;	  /* the address of its struct link_map */
	uint64_t bias;	  /* address less the file's virtual address */
	uint64_t dynamic; /* the address of its dynamic section */
	uint64_t name;	  /* the address of its path; 0: the dump does not say */
	uint64_t debug;	  /* the address of the struct r_debug with its list */
	const char *path; /* as the loader was told */
};

/* The program is the first. */
struct loaded_list {
	struct loaded *list;
	size_t count;
};

/* Files by path; see files.h. */
struct file_table {
	struct image_file **files;
	size_t count;
	void *by_path;	     /* the same for tsearch() */
	uint64_t bytes;	     /* of all that are open, added up */
	const char *sysroot; /* borrowed; NULL: the root */
};

/* Opened by image_open(); others only read it. Lists grow by doubling. */
struct image {
	char *path;
	int fd;		  /* of the dump, to ask for its holes; -1: not open */
	uint8_t *bytes;	  /* as they stand in the file; or, if that is packed, unpacked */
	size_t size;	  /* of these */
	uint64_t missing; /* bytes that the dump lacks at its end; 0: it is complete */
	struct image_origin origin;
	struct findings *findings;		 /* borrowed */
	const struct arch *const *architectures; /* that it may be of, NULL at the end */
	const struct arch *arch;

	struct region *regions; /* by address */
	size_t region_count;
	uint32_t segment_count;
	struct mapping *mappings; /* by address */
	size_t mapping_count;
	/*
	 * Mappings of which a core by heapcore leaves out parts that the process never touched, by
	 * address. They are zeros, and in every respect as if the core had them: terabytes of them
	 * are common, which not every file system could hold, even as a hole.
	 */
	struct note_range *cuts;
	size_t cut_count;
	void *zeros; /* as many as the largest untouched part needs */
	uint64_t zeros_size;
	/* Memory that has tags (MTE), by address; see memory_tags.h. */
	struct note_range *tagged;
	size_t tagged_count;
	struct loaded_list loaded; /* by the dynamic loader */
	struct image_thread *threads;
	size_t thread_count;
	/* Bits of pointers that may be a signature; 0: the dump does not say. */
	struct {
		uint64_t data, code;
	} signatures;
	struct auxiliary_value {
		uint64_t type, value;
	} * auxiliary;
	size_t auxiliary_count;
	struct file_table files;
	uint64_t filled;		       /* bytes of regions that are read from files */
	struct own_note notes[MOST_OWN_NOTES]; /* the first */
	size_t note_count;
	size_t room; /* bytes of the dump that memory may hold */
};

struct side_identity;

/* Options for opening an image; all of them are borrowed, and may be left out. */
struct image_options {
	const char *sysroot;	      /* where mapped files are; must outlive the image */
	const char *temporary_folder; /* for what a packed dump holds */
	struct progress *progress;    /* of unpacking it */
	size_t memory;		      /* of the machine; 0: not known */
	/* Architectures that a dump may have, NULL at the end. */
	const struct arch *const *architectures;
};

/*
 * Open the dump at path, packed or not; "-" is standard input. A pipe is read to its end. What
 * limits the trust in it goes to findings, which must outlive the image.
 */
struct error *image_open(const char *path, struct findings *findings, struct image **ret);
struct error *image_open_with(const char *path, const struct image_options *options,
			      struct findings *findings, struct image **ret);
void image_close(struct image *image);
DEFINE_CLEANUP(image_close, struct image *)

/* Set all of the dump's identity but the maker: see fingerprint.c. */
struct error *image_identify(const struct image *image, struct side_identity *ret);

/*
 * True if the dump fits into the machine's memory. If not, random reads go to the disk again and
 * again.
 */
bool image_fits(const struct image *image);

/*
 * Advise the kernel that reads up to the end of the scope are random, not in order:
 *
 *	_cleanup_(image_advice_end) struct image_advice advice = image_advise_random(image);
 *
 * For a dump larger than memory, nothing is read ahead then: it could be megabytes for each word,
 * and displace what is needed. Within such a scope, image_advise_in_order() is the opposite.
 */
struct image_advice {
	const struct image *image;
	bool random;
};

struct image_advice image_advise_random(const struct image *image);
struct image_advice image_advise_in_order(const struct image *image);
void image_advice_end(struct image_advice *advice);
DEFINE_DEINIT(image_advice_end, struct image_advice)

/*
 * [start, end) was read, and is not needed for a while. Of a dump that does not fit into memory, it
 * is unmapped, and all but an evenly spread part of the file, as much as fits, dropped from the
 * page cache. So each pass finds the same part there, in whatever order it reads.
 */
void image_release(const struct image *image, uint64_t start, uint64_t end);

/*
 * [start, end) is read soon: have its first megabytes read in the background if the dump does not
 * fit into memory.
 */
void image_fetch(const struct image *image, uint64_t start, uint64_t end);

/* Release [start, end), and fetch what a pass upwards needs soon. */
void image_advance(const struct image *image, uint64_t start, uint64_t end);

/* The region that holds address, or NULL. */
const struct region *image_find(const struct image *image, uint64_t address);

/* The bytes at address, *ret_size of them in a row; NULL if absent. */
const uint8_t *image_bytes(const struct image *image, uint64_t address, uint64_t *ret_size);

/*
 * The next address at or above this one, in its region, where the dump does not just have a hole of
 * its file, which reads as zeros; the region's end if there is none. Reserved and never touched,
 * terabytes of holes are common.
 */
uint64_t image_next_data(const struct image *image, uint64_t address);

/*
 * The next address at or above this one, in its region, where the dump has a hole of its file; the
 * region's end if there is none.
 */
uint64_t image_next_hole(const struct image *image, uint64_t address);

/* The note that heapcore itself added; without bytes, if there is none. */
struct own_note image_note(const struct image *image, uint32_t type);

/* True if `heapcore slim` left the contents out. */
bool image_is_slim(const struct image *image);

/*
 * A hash of the process's 16 random bytes (AT_RANDOM), which a slim core has in their place: half
 * as many bytes, so it does not tell them. 0: not known.
 */
uint64_t image_random_hash(const struct image *image);

/* True if such a core has contents that stayed all the same. */
bool image_keeps_content(const struct image *image);

/*
 * False if a slim core lacks the contents at address; *ret_run: for how many bytes from there on
 * that holds, at least 1.
 */
bool image_has_content(const struct image *image, uint64_t address, uint64_t *ret_run);

/* True if that holds for all of the size bytes. */
bool image_has_contents(const struct image *image, uint64_t address, uint64_t size);

/* Copy size bytes at address, across regions. False if any is absent. */
bool image_read(const struct image *image, uint64_t address, void *ret, size_t size);
bool image_read_u64(const struct image *image, uint64_t address, uint64_t *ret);
bool image_read_u32(const struct image *image, uint64_t address, uint32_t *ret);

/* Words are of the process: of image_word_size() bytes, 8 or 4. */
bool image_read_word(const struct image *image, uint64_t address, uint64_t *ret);
bool image_read_words(const struct image *image, uint64_t address, uint64_t *ret, size_t count);

static inline unsigned int image_word_size(const struct image *image)
{
	return arch_word_size(image->arch);
}

/* True if the word is low enough for an address of a program. */
static inline bool image_may_address(const struct image *image, uint64_t word)
{
	return word >> image->arch->address_bits == 0;
}

/* The file mapping at address, or NULL. */
const struct mapping *image_find_mapping(const struct image *image, uint64_t address);

/* True if another process sent the thread's signal. */
bool image_signal_is_foreign(const struct image *image, const struct image_thread *thread);

/* The signal that ended the process, or 0: none did, or the dump does not say. */
int image_fatal_signal(const struct image *image);

/* The text at address, as long as the image is; NULL: it is not there, or does not end. */
const char *image_text(const struct image *image, uint64_t address);

/* The auxiliary vector's value for type (AT_...), or fallback. */
uint64_t image_auxiliary(const struct image *image, uint64_t type, uint64_t fallback);

/* Bytes of the pages of the kernel that ran the process: PAGE, or some such as 64 KiB. */
uint64_t image_page_size(const struct image *image);

/*
 * AddressSanitizer's memory on x86-64 with a byte for each eight that the program has, by its
 * asan_mapping.h. None holds an address, and most of its 16 TiB are never written.
 */
static const uint64_t ASAN_SHADOW_START = 0x7fff7000, ASAN_SHADOW_END = 0x10007fff8000;

/* Report what the dump lacks of the process's writable memory; image_open() does. */
struct error *image_report_absence(const struct image *image, struct findings *findings);
