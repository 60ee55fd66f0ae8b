#include "analyzer/program/debug/build.h"

#include "analyzer/program/debug/debug_parts.h"
#include "analyzer/program/debug/type_reader.h"

#include <string.h>
#include <sys/stat.h>

static void add_number(struct cache_key *key, uint64_t number)
{
	cache_key_add(key, &number, sizeof(number));
}

/*
 * Its content is that of its build-id; but it may have been stripped, or say so falsely. False: it
 * is no file.
 */
static bool add_file(struct cache_key *key, const struct debug_file *file)
{
	struct stat status;

	add_number(key, file->elf != NULL);
	if (!file->elf)
		return true;
	if (file->fd < 0 || fstat(file->fd, &status) < 0)
		return false;
	add_number(key, (uint64_t)status.st_size);
	add_number(key, (uint64_t)status.st_mtim.tv_sec);
	add_number(key, (uint64_t)status.st_mtim.tv_nsec);
	return true;
}

/* libdwfl would find the same file later. */
static bool add_shared(struct cache_key *key, struct debug_module *module)
{
	const struct debug_file *holder = module->separate.elf ? &module->separate : &module->main;

	if (!module->shared.elf)
		debug_file_find_shared(&module->debug->options, holder, &module->shared);
	return add_file(key, &module->shared);
}

/* The code as the process had it, which is what is read. */
static void add_code(struct cache_key *key, const struct image *image, const struct module *module)
{
	list_for_each(region, image->regions, image->region_count) {
		if (!(region->rights & RIGHT_EXECUTE) || region->start < module->start ||
		    region->start >= module->end)
			continue;
		add_number(key, region->start - module->start);
		add_number(key, region->end - region->start);
		if (region->bytes)
			cache_key_add(key, region->bytes, region->end - region->start);
	}
}

static bool add_module(struct cache_key *key, struct debug *debug, size_t number, bool symbols)
{
	const struct module *described = &debug->program->modules[number];
	struct debug_module *module = debug_find_module(debug, described->start);
	bool is_typed = debug_typed_module(debug, number);
	const char *name = module_file_name(described);

	if (!module || module->module != described)
		return false;
	cache_key_add(key, name, strlen(name) + 1);
	cache_key_add(key, module->id.bytes, module->id.size);
	add_number(key, described->end - described->start);
	add_number(key, is_typed);
	if (!is_typed && !symbols)
		return true;
	debug_module_separate(module);
	if (module->memory)
		cache_key_add(key, module->memory, described->end - described->start);
	else if (!add_file(key, &module->main))
		return false;
	if (!add_file(key, &module->separate))
		return false;
	if (!is_typed)
		return true;
	if (module->memory || module->id.size == 0 || !add_shared(key, module))
		return false;
	add_code(key, debug->image, described);
	return true;
}

bool build_identify(struct debug *debug, bool symbols, struct cache_key *key)
{
	const char *arch = debug->image->arch->name;

	cache_key_add(key, arch, strlen(arch));
	for (size_t i = 0; i < debug->program->module_count; i++)
		if (!add_module(key, debug, i, symbols))
			return false;
	return true;
}

bool build_was_read_whole(const struct debug *debug)
{
	return !debug->has_split && !debug->lacks_memory;
}

const char *build_cache(const struct debug *debug)
{
	return debug->options.cache_folder;
}

enum { OFFSET_BITS = 48 };

kept_address build_keep_address(const struct debug *debug, uint64_t address)
{
	const struct module *module = program_find_module(debug->program, address);
	uint64_t number = module ? (uint64_t)(module - debug->program->modules) : 0;

	if (!address)
		return 0;
	if (!module || number >= (1 << 15) || (address - module->start) >> OFFSET_BITS)
		return KEPT_OUTSIDE;
	return (number + 1) << OFFSET_BITS | (address - module->start);
}

bool build_find_address(const struct debug *debug, kept_address kept, uint64_t *ret)
{
	uint64_t number = (kept >> OFFSET_BITS) - 1;
	uint64_t offset = kept & ((UINT64_C(1) << OFFSET_BITS) - 1);
	const struct module *module;

	if (kept == 0 || kept == KEPT_OUTSIDE) {
		*ret = kept;
		return true;
	}
	if (number >= debug->program->module_count)
		return false;
	module = &debug->program->modules[number];
	*ret = module->start + offset;
	return offset < module->end - module->start;
}
