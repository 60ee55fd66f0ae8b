/*
 * A living process, as the kernel tells of it in /proc.
 *
 * All that is read here is of the moment. It holds together only while the process stands still.
 */
#pragma once

#include "analyzer/base/error.h"
#include "analyzer/base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One mapping of the process. */
struct memory_area {
	uint64_t start, end;
	uint64_t offset; /* into the file */
	uint64_t inode;
	uint8_t rights; /* PF_R, PF_W and PF_X */
	bool shared;
	bool of_file;	   /* has an inode: a file, or memory that has a name */
	bool device;	   /* reading it may have effects */
	bool excluded;	   /* by MADV_DONTDUMP */
	bool huge;	   /* of hugetlbfs, which counts in no sum */
	bool unforked;	   /* by MADV_DONTFORK or MADV_WIPEONFORK */
	bool watched;	   /* by userfaultfd */
	uint64_t resident; /* bytes in memory or swapped out */
	uint64_t written;  /* bytes of pages that are its own */
	const char *path;  /* in a text, not terminated */
	size_t path_size;
};

struct memory_map {
	char *text; /* of /proc/PID/smaps, terminated */
	size_t text_size;
	char *renewed; /* text of /proc/PID/maps, or NULL; paths are in it */
	struct memory_area *areas;
	size_t count;
};

struct error *memory_map_read(pid_t process, struct memory_map *ret);

/*
 * Read again where the mappings are, which is much quicker; all else that is known of them stays.
 * *ret_known is false if there are new mappings of which nothing is known.
 */
struct error *memory_map_renew(pid_t process, struct memory_map *map, bool *ret_known);
void memory_map_deinit(struct memory_map *map);
DEFINE_DEINIT(memory_map_deinit, struct memory_map)

bool memory_area_has_path(const struct memory_area *area, const char *path);

/* True if the area's file was deleted, so that only memory has its contents. */
bool memory_area_is_nameless(const struct memory_area *area);

/*
 * Read memory of the process as far as its rights allow. Returns how many bytes in a row could be
 * read, or negative, as read(2).
 */
ssize_t process_peek(pid_t process, uint64_t address, void *ret, size_t size);

/* Bytes of memory that are available without swapping. */
uint64_t available_memory(void);

/* The whole of /proc/PROCESS/NAME, the same way. That there is no such process is ERROR_USAGE. */
struct error *process_read(pid_t process, const char *name, char **ret, size_t *ret_size);

/* The file as text, or NULL if it cannot be read. */
char *process_text(pid_t process, const char *name);

/*
 * Like process_text(), for one thread. /proc/THREAD/stat would be about the whole process, and make
 * the kernel visit all threads.
 */
char *process_thread_text(pid_t thread, const char *name);

/*
 * A field of the text of /proc/PROCESS/status, as "TracerPid", in base 10 or 16; fallback if it is
 * not there, or the text is NULL.
 */
uint64_t process_status_field(const char *text, const char *field, int base, uint64_t fallback);

/* The field of the file as it is now. */
uint64_t process_status(pid_t process, const char *field, int base, uint64_t fallback);

/* The name of the process, as ps shows it. */
enum { PROCESS_NAME_SIZE = 16 };
void process_name(pid_t process, char ret[static PROCESS_NAME_SIZE]);

/* The kind of program that a process runs, judged from outside. */
enum program_kind { PROGRAM_UNKNOWN, PROGRAM_NATIVE, PROGRAM_OTHER };
enum program_kind process_kind(pid_t process);
