#include "analyzer/capture/portable.h"

#include <elf.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

struct finding_out {
	const struct source *source;
	const struct memory_map *map;
	char program[PATH_MAX]; /* its path */
	size_t program_size;
	bool *needed;
};

static bool has_path(const struct memory_area *area, const char *path, size_t size)
{
	return area->path_size == size && memcmp(area->path, path, size) == 0;
}

/* True if an ELF file begins there; *ret_apart: its code has segments of its own. */
static bool read_headers(const struct source *source, const struct memory_area *area,
			 bool *ret_apart)
{
	enum { MOST = 64 };
	Elf64_Phdr segments[MOST];
	Elf64_Ehdr header;
	uint64_t size;

	if (area->offset != 0 || !(area->rights & PF_R) ||
	    source_read(source, area->start, &header, sizeof(header)) != sizeof(header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return false;
	size = sizeof(*segments) * MIN(header.e_phnum, MOST);
	*ret_apart = false;
	if (header.e_phentsize != sizeof(*segments) ||
	    source_read(source, area->start + header.e_phoff, segments, size) != size)
		return true;
	for (size_t i = 0; i < size / sizeof(*segments); i++)
		if (segments[i].p_type == PT_LOAD && segments[i].p_flags == PF_R)
			*ret_apart = true;
	return true;
}

/* True if the area's memory holds the text. */
static bool holds(const struct source *source, const struct memory_area *area, const char *text,
		  char *buffer, size_t size)
{
	size_t length = strlen(text);
	uint64_t at = area->start;

	while (area->end - at >= length) {
		uint64_t left = area->end - at;
		uint64_t taken = source_read(source, at, buffer, MIN(left, size));

		if (taken < length)
			return false;
		if (memmem(buffer, taken, text, length))
			return true;
		at += taken - length + 1;
	}
	return false;
}

static bool is_collector(const struct memory_area *area)
{
	static const char library[] = "libgc.so";
	const char *slash = memrchr(area->path, '/', area->path_size);
	size_t rest = slash ? area->path_size - (size_t)(slash + 1 - area->path) : 0;

	return rest >= strlen(library) && memcmp(slash + 1, library, strlen(library)) == 0;
}

/*
 * True if Boehm's collector is loaded or linked into the program. Then memory has the name of an
 * environment variable that only the collector reads.
 */
static bool has_collector(const struct finding_out *finding)
{
	static const char variable[] = "GC_INITIAL_HEAP_SIZE";
	enum { AT_ONCE = 1 << 16 };
	char buffer[AT_ONCE];

	for (size_t i = 0; i < finding->map->count; i++) {
		const struct memory_area *area = &finding->map->areas[i];

		if (!area->of_file)
			continue;
		if (is_collector(area))
			return true;
		if (finding->needed[i] && has_path(area, finding->program, finding->program_size) &&
		    holds(finding->source, area, variable, buffer, AT_ONCE))
			return true;
	}
	return false;
}

/* The mappings of a module follow that of its headers. */
static void find_constants(struct finding_out *finding)
{
	const struct memory_area *base = NULL;
	bool apart = false;

	for (size_t i = 0; i < finding->map->count; i++) {
		const struct memory_area *area = &finding->map->areas[i];

		if (!area->of_file || area->device || area->shared) {
			base = NULL;
			continue;
		}
		if (!base || area->offset == 0 || !has_path(area, base->path, base->path_size))
			base = read_headers(finding->source, area, &apart) ? area : NULL;
		finding->needed[i] =
			base && (area->rights & PF_R) && !(apart && (area->rights & PF_X));
	}
}

static void find_code(struct finding_out *finding)
{
	for (size_t i = 0; i < finding->map->count; i++) {
		const struct memory_area *area = &finding->map->areas[i];

		if (area->of_file && (area->rights & PF_X) &&
		    has_path(area, finding->program, finding->program_size))
			finding->needed[i] = true;
	}
}

struct error *portable_find(const struct source *source, const struct memory_map *map, bool **ret)
{
	struct finding_out finding = { .source = source, .map = map };
	char link[64];
	ssize_t size;

	finding.needed = calloc(map->count + 1, sizeof(*finding.needed));
	TRY_MEMORY(finding.needed);
	snprintf(link, sizeof(link), "/proc/%d/exe", source->process);
	size = readlink(link, finding.program, sizeof(finding.program));
	if (size > 0)
		finding.program_size = (size_t)size;
	find_constants(&finding);
	if (has_collector(&finding))
		find_code(&finding);
	*ret = finding.needed;
	return NULL;
}
