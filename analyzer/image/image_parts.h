/*
 * What an image is made of, for the files that open one and that answer from it.
 */
#ifndef ANALYZER_IMAGE_IMAGE_PARTS_H
#define ANALYZER_IMAGE_IMAGE_PARTS_H

#include "analyzer/image/files.h"
#include "analyzer/image/link_map.h"

/*
 * A mapping of which a core by heapcore leaves out parts that the process never touched. They are
 * zeros, and in every respect as if the core had them: terabytes of them are common, which not
 * every file system could hold, even as a hole.
 */
struct cut {
	uint64_t start, end;
};

/* Regions grow by doubling; a hostile dump pays for them with headers. */
struct image {
	char *path;
	int fd; /* of the dump, to ask for its holes; -1: not open */
	uint8_t *bytes;
	size_t size;
	uint64_t missing;
	struct image_origin origin;
	struct findings *findings; /* borrowed */
	const struct arch *arch;

	struct region *regions;
	size_t region_count;
	uint32_t segment_count;
	struct mapping *mappings;
	size_t mapping_count;
	struct cut *cuts; /* in order of address */
	size_t cut_count;
	void *zeros; /* as many as the largest untouched part needs */
	uint64_t zeros_size;
	struct loaded_list loaded;
	struct image_thread *threads;
	size_t thread_count;
	struct {
		uint64_t type, value;
	} * auxiliary;
	size_t auxiliary_count;
	struct file_table files;
	uint64_t filled; /* bytes of regions that are read from files */
	struct own_note notes[MOST_OWN_NOTES];
	size_t note_count;
	size_t room; /* bytes of the dump that memory may hold */
};

/* Report what the dump lacks of the process's writable memory, and what follows from that. */
struct error *image_report_absence(const struct image *image, struct findings *findings);

#endif
