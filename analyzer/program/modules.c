/*
 * Finding the modules of a dump.
 */
#include "analyzer/base/keep.h"
#include "analyzer/base/list.h"
#include "analyzer/base/macros.h"
#include "analyzer/base/sort.h"
#include "analyzer/image/link_map.h"
#include "analyzer/image/mapped_file.h"
#include "analyzer/program/program_parts.h"
#include "analyzer/program/symbol_names.h"

#include <elf.h>
#include <string.h>

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

const char *module_file_name(const struct module *module)
{
	return last_part(module->path);
}

const char *module_name(const struct module *module)
{
	return module->started_as ? module->started_as : module_file_name(module);
}

bool module_is_libc(const struct module *module)
{
	const char *name = module_file_name(module);

	return strcmp(name, "libc.so.6") == 0 || strncmp(name, "libc-2.", 7) == 0;
}

bool module_is_of_language(const struct module *module)
{
	static const char *const names[] = { "libc.so", "libc-",     "libm.so",	 "libm-", "libgcc",
					     "libc++",	"libstdc++", "ld-linux", "[vdso]" };

	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (strncmp(module_file_name(module), names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

bool module_holds(const struct image *image, const struct module *module, const void *wanted,
		  size_t wanted_size)
{
	const struct region *region = module_region_next(image, module->start, module->end);

	for (; region; region = module_region_next(image, region->end, module->end)) {
		uint64_t start = region->start > module->start ? region->start : module->start;
		uint64_t end = region->end < module->end ? region->end : module->end;

		if (region->bytes && memmem(region->bytes + (start - region->start), end - start,
					    wanted, wanted_size))
			return true;
	}
	return false;
}

/* Linkers put constants into segments of their own, or else beside code. */
static bool has_segment_of_constants(const struct image *image, uint64_t base)
{
	struct module_headers headers;

	if (!module_headers_read(image, base, &headers))
		return false;
	for (size_t i = 0; i < headers.count; i++)
		if (headers.segments[i].p_type == PT_LOAD && headers.segments[i].p_flags == PF_R)
			return true;
	return false;
}

bool module_has_constants(const struct image *image, const struct module *module)
{
	const struct region *region = module_region_next(image, module->start, module->end);
	bool whole = region != NULL;

	for (; region; region = module_region_next(image, region->end, module->end)) {
		/*
		 * Variables that nothing touched, which the kernel leaves out, are no constants;
		 * nor is what the kernel maps between segments, such as [vvar].
		 */
		if (region->origin != REGION_ABSENT || (region->rights & RIGHT_WRITE) ||
		    !region->mapping)
			continue;
		if (!(region->rights & RIGHT_EXECUTE))
			return false;
		whole = false;
	}
	return whole || has_segment_of_constants(image, module->start);
}

/*
 * The bias of the module whose header is at base, and the end of its data: zeros at first stand
 * behind the last mapping, in anonymous memory, of which only its headers tell.
 */
static bool read_extent(const struct image *image, uint64_t base, uint64_t *ret_bias,
			uint64_t *ret_end)
{
	struct module_headers headers;

	if (!module_headers_read(image, base, &headers) || !headers.is_loaded)
		return false;
	*ret_bias = headers.bias;
	*ret_end = module_headers_end(&headers);
	return true;
}

static struct error *add_module(struct program *program, struct module module)
{
	return LIST_APPEND(program->modules, program->module_count, module);
}

/* The vdso is mapped from no file. */
static struct error *add_vdso(struct program *program)
{
	const struct image *image = program->image;
	uint64_t base = image_auxiliary(image, AT_SYSINFO_EHDR, 0);
	const struct region *region = image_find(image, base);
	struct module module = { .path = "[vdso]" };

	if (!region || !read_extent(image, base, &module.bias, &module.end))
		return NULL;
	module.start = base;
	module.end = region->end;
	return add_module(program, module);
}

DEFINE_COMPARE(compare_modules, struct module, ASCENDING(start))

/*
 * The module's end, with the anonymous memory right behind its mappings as far as its
 * headers claim it.
 */
static uint64_t end_of_data(const struct image *image, uint64_t end, uint64_t claimed)
{
	const struct region *behind = image_find(image, end);

	if (claimed <= end)
		return end;
	claimed = page_above(claimed);
	/* Advice to the kernel, as on huge pages, splits the mapping of a module's variables. */
	for (; behind && !behind->mapping && end < claimed; behind = image_find(image, end))
		end = MIN(behind->end, claimed);
	return end;
}

/* True if the module has code, and so is no data file. */
static bool has_code(const struct image *image, const struct module *module)
{
	const struct region *region = module_region_next(image, module->start, module->end);

	while (region && !(region->rights & RIGHT_EXECUTE))
		region = module_region_next(image, region->end, module->end);
	return region != NULL;
}

/*
 * True if the mapped file is a module. Debuggers and linkers map modules as data, too. Modules of
 * data alone, such as ICU's, are on the loader's list; copies for dlmopen() have code. If the
 * header is not in the core, the loader knows the load bias; a program at fixed addresses has none.
 */
static bool is_module(const struct image *image, struct module *module, bool has_header)
{
	const struct loaded_list *loaded = &image->loaded;
	uint64_t size = module->end - module->start;

	for (size_t i = 0; i < loaded->count; i++)
		if (loaded->list[i].dynamic - module->start < size) {
			if (!has_header)
				module->bias = loaded->list[i].bias;
			return true;
		}
	return (has_header && loaded->count == 0) || has_code(image, module) ||
	       image_auxiliary(image, AT_ENTRY, 0) - module->start < size;
}

/*
 * True if the mapping belongs to the module that ends at end so far. If a program maps part of its
 * file again, as Node.js does with its own code, that lies behind the memory that the headers
 * claim.
 */
static bool is_next_of(const struct mapping *first, const struct mapping *mapping, uint64_t end,
		       uint64_t claimed)
{
	return mapping->base == first && (mapping->start == end || mapping->start < claimed);
}

/*
 * The loader maps the whole of a module at once, so its mappings follow each other and begin with
 * that of the ELF header.
 */
static struct error *add_files(struct program *program)
{
	enum { LARGEST_MODULE = 1 << 30 }; /* where its headers are absent */
	const struct image *image = program->image;
	size_t count = image->mapping_count, next;

	for (size_t i = 0; i < count; i = next) {
		const struct mapping *first = &image->mappings[i];
		struct module module = {
			.path = first->path,
			.start = first->start,
			.end = first->end,
			.bias = first->start,
			.file = first->file,
			.state = first->state,
		};
		uint64_t claimed = 0, reach;

		next = i + 1;
		if (first->base != first)
			continue;
		if (!read_extent(image, first->start, &module.bias, &claimed))
			reach = first->start + LARGEST_MODULE;
		else
			reach = claimed;
		while (next < count && is_next_of(first, &image->mappings[next], module.end, reach))
			module.end = image->mappings[next++].end;
		if (!is_module(image, &module, claimed != 0))
			continue;
		module.end = end_of_data(image, module.end, claimed);
		if (next < count && module.end > image->mappings[next].start)
			module.end = image->mappings[next].start;
		TRY(add_module(program, module));
	}
	return NULL;
}

/* Sort them. Only what the vdso claims to be can overlap with another. */
static void sort_modules(struct program *program)
{
	SORT(program->modules, program->module_count, compare_modules);
	program->module_count = LIST_KEEP(program->modules, program->module_count, module, last,
					  !last || module->start >= last->end);
}

/* True if the command line begins with a path whose last part is that name. */
static bool is_first_word(const char *command, const char *name)
{
	size_t size = strcspn(command, " "), length = strlen(name);

	return size >= length && strncmp(command + size - length, name, length) == 0 &&
	       (size == length || command[size - length - 1] == '/');
}

/*
 * One file is several programs, as redis-server is a link to redis-check-rdb. A name with more or
 * less of a version, as python3 of python3.11, is the file's. The path by which a script was
 * started is the script's, and then not the first word.
 */
static void name_program(struct program *program)
{
	const struct image *image = program->image;
	const char *path = image_text(image, image_auxiliary(image, AT_EXECFN, 0));
	struct module *main = (struct module *)program_main_module(program);
	const char *name = path ? last_part(path) : "";

	if (main && *name && is_first_word(image->origin.command, name) &&
	    !strstr(module_file_name(main), name) && !strstr(name, module_file_name(main)))
		main->started_as = name;
}

static struct error *add_names(struct program *program)
{
	for (size_t i = 0; i < program->module_count; i++) {
		struct module *module = &program->modules[i];

		if (!module->file)
			continue;
		module->names = symbol_names_create(module->file);
		TRY_MEMORY(module->names);
	}
	return NULL;
}

struct error *program_find_modules(struct program *program)
{
	TRY(add_vdso(program));
	TRY(add_files(program));
	sort_modules(program);
	name_program(program);
	return add_names(program);
}
