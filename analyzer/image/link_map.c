#include "analyzer/image/link_map.h"

#include "analyzer/base/list.h"
#include "analyzer/image/format.h"
#include "analyzer/image/mapped_file.h"
#include "analyzer/image/matched_file.h"

#include <elf.h>
#include <string.h>

enum {
	MOST_LOADED = 1 << 16,
	LOADER_REACH = 4 << 20, /* its data are no further behind its start */
};

/* struct r_debug of <link.h>, in words */
enum { DEBUG_VERSION, DEBUG_MAP, DEBUG_BREAK, DEBUG_STATE, DEBUG_BASE, DEBUG_WORDS };

/* struct link_map of <link.h>, in words */
enum { MAP_BIAS, MAP_NAME, MAP_DYNAMIC, MAP_NEXT, MAP_PREVIOUS, MAP_WORDS };

static const char *program_path(const struct image *image)
{
	const char *path = image_text(image, image_auxiliary(image, AT_EXECFN, 0));

	return path && *path ? path : "[program]";
}

/* The program has none of its own, and the loader's is in the program. */
static const char *name_of(const struct image *image, const uint64_t *words)
{
	const char *name = image_text(image, words[MAP_NAME]);

	if (name && *name)
		return name;
	if (words[MAP_PREVIOUS] == 0)
		return program_path(image);
	return words[MAP_BIAS] == image_auxiliary(image, AT_BASE, 0) ? image->arch->loader
								     : "[unknown]";
}

/* Add the list that begins there: each entry has the one before it. */
static struct error *read_maps(struct loaded_list *list, const struct image *image, uint64_t debug,
			       uint64_t map)
{
	uint64_t words[MAP_WORDS], previous = 0;

	while (map != 0 && list->count < MOST_LOADED &&
	       image_read_words(image, map, words, MAP_WORDS) && words[MAP_PREVIOUS] == previous) {
		const char *path = name_of(image, words);

		TRY(LIST_APPEND(list->list, list->count,
				(struct loaded){ map, words[MAP_BIAS], words[MAP_DYNAMIC],
						 words[MAP_NAME], debug, path }));
		previous = map;
		map = words[MAP_NEXT];
	}
	return NULL;
}

/*
 * The loader's struct r_debug is in its data, and ends with the loader's own address. There is one
 * for each namespace; the first is the program's.
 */
static struct error *scan_for_lists(struct loaded_list *list, const struct image *image,
				    const struct region *region, uint64_t base)
{
	unsigned int word = image_word_size(image);
	uint64_t size = region->end - region->start, words[DEBUG_WORDS];

	size = MIN(size, LOADER_REACH);
	for (uint64_t i = 0; i + DEBUG_WORDS * word <= size; i += word) {
		for (unsigned int j = 0; j < DEBUG_WORDS; j++)
			words[j] = load_word(region->bytes + i + j * word, word);
		if (words[DEBUG_BASE] == base && (uint32_t)words[DEBUG_VERSION] - 1 < 2)
			TRY(read_maps(list, image, region->start + i, words[DEBUG_MAP]));
	}
	return NULL;
}

struct error *loaded_list_init(struct loaded_list *list, const struct image *image)
{
	uint64_t base = image_auxiliary(image, AT_BASE, 0);

	*list = (struct loaded_list){ 0 };
	for (size_t i = 0; base && i < image->region_count; i++) {
		const struct region *region = &image->regions[i];

		if (region->end > base && region->start < base + LOADER_REACH && region->bytes &&
		    (region->rights & RIGHT_WRITE))
			TRY(scan_for_lists(list, image, region, base));
	}
	return NULL;
}

void loaded_list_deinit(struct loaded_list *list)
{
	free(list->list);
	*list = (struct loaded_list){ 0 };
}

/* One mapping for each segment. False if the headers are nowhere. */
static bool add_segments(struct image *image, uint64_t base, const struct loaded *loaded,
			 struct error **ret_error)
{
	struct module_headers headers;
	bool is_matched = false;

	if (!module_headers_read(image, base, &headers)) {
		is_matched = matched_headers_read(image, loaded, base, &headers);
		if (!is_matched)
			return false;
	}
	for (size_t i = 0; i < headers.count && !*ret_error; i++) {
		const Elf64_Phdr *segment = &headers.segments[i];
		uint64_t start = headers.bias + segment->p_vaddr;

		if (segment->p_type == PT_LOAD)
			*ret_error = image_add_mapping(
				image, (struct mapping){
					       .path = loaded->path,
					       .is_matched = is_matched,
					       .start = page_below(start),
					       .end = page_above(start + segment->p_filesz),
					       .offset = page_below(segment->p_offset),
				       });
	}
	return headers.is_loaded;
}

/*
 * All that follows the start without a gap, up to what is writable first from within on: that is
 * the last mapping of the file.
 */
static uint64_t end_of_whole(const struct image *image, uint64_t within, uint64_t limit)
{
	const struct region *region = image_find(image, within);
	uint64_t end = region ? region->end : within;

	while (region && end < limit && !(region->rights & RIGHT_WRITE)) {
		region = image_find(image, end);
		if (region)
			end = region->end;
	}
	return end < limit ? end : limit;
}

static struct error *add_module(struct image *image, uint64_t base, uint64_t within, uint64_t limit,
				const struct loaded *loaded)
{
	struct mapping whole = { .path = loaded->path, .start = base };
	struct error *error = NULL;

	if (base == 0 || add_segments(image, base, loaded, &error) || within < base ||
	    within - base > UINT32_MAX)
		return error;
	whole.end = end_of_whole(image, within, limit);
	return image_add_mapping(image, whole);
}

/* The start of the module: only the program may have fixed addresses. */
static uint64_t base_of(const struct image *image, const struct loaded *loaded)
{
	uint64_t headers = image_auxiliary(image, AT_PHDR, 0);

	return loaded->bias ? loaded->bias : page_below(headers);
}

static void report_matched(const struct image *image)
{
	size_t count = 0;

	list_for_each(mapping, image->mappings, image->mapping_count) {
		count += mapping->is_matched &&
			 (mapping == image->mappings || mapping[-1].path != mapping->path);
	}
	if (count > 0)
		findings_add(
			image->findings, FINDING_NOTE,
			"the core has no build-id of %zu module%s: the file%s at hand %s compared by what the core has of %s",
			count, count > 1 ? "s" : "", count > 1 ? "s" : "",
			count > 1 ? "were" : "was", count > 1 ? "them" : "it");
}

/* The start of what is loaded next behind that address. */
static uint64_t find_limit(const struct loaded_list *list, uint64_t base)
{
	uint64_t limit = UINT64_MAX;

	for (size_t i = 0; i < list->count; i++)
		if (list->list[i].bias > base && list->list[i].bias < limit)
			limit = list->list[i].bias;
	return limit;
}

struct error *image_add_loaded(struct image *image)
{
	enum { MOST_NAMED = 1 << 12 }; /* each costs as much as all */
	const struct loaded_list *list = &image->loaded;
	uint64_t vdso = image_auxiliary(image, AT_SYSINFO_EHDR, 0);
	struct loaded program = { .path = program_path(image) };

	if (image->mapping_count > 0)
		return NULL;
	if (list->count == 0)
		TRY(add_module(image, base_of(image, &program), image_auxiliary(image, AT_ENTRY, 0),
			       UINT64_MAX, &program));
	for (size_t i = 0; i < list->count && i < MOST_NAMED; i++) {
		const struct loaded *loaded = &list->list[i];
		uint64_t base = base_of(image, loaded);

		if (base != vdso)
			TRY(add_module(image, base, loaded->dynamic, find_limit(list, base),
				       loaded));
	}
	report_matched(image);
	return NULL;
}
