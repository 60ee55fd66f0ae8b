/*
 * The session of libdwfl, and the files of its modules.
 */
#include "analyzer/program/debug/build.h"
#include "analyzer/program/debug/debug_parts.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

void debug_lacks_memory(struct debug *debug)
{
	if (!debug->lacks_memory)
		findings_add(
			debug->findings, FINDING_INCOMPLETE,
			"there is not enough memory to read debug information: names and calls are missing");
	debug->lacks_memory = true;
}

struct debug_module *debug_find_module(struct debug *debug, uint64_t address)
{
	const struct module *module = program_find_module(debug->program, address);
	struct debug_module *found;

	if (!module)
		return NULL;
	if (!debug->modules) {
		size_t count = debug->program->module_count;

		debug->modules = calloc(count + 1, sizeof(*debug->modules));
		if (!debug->modules) {
			debug_lacks_memory(debug);
			return NULL;
		}
		debug->module_count = count;
	}
	found = &debug->modules[module - &debug->program->modules[0]];
	if (!found->debug) {
		found->debug = debug;
		found->module = module;
		found->id = build_id_of_image(debug->image, module->start, module->end);
		found->main.fd = found->separate.fd = found->shared.fd = -1;
	}
	return found;
}

/* Read a module without a file, such as the vdso. */
static void read_from_memory(struct debug_module *module)
{
	enum { MOST = 1 << 20 };
	const struct module *described = module->module;
	uint64_t size = described->end - described->start;

	if (described->path[0] == '/' || size > MOST)
		return;
	module->memory = malloc(size);
	if (!module->memory || elf_version(EV_CURRENT) == EV_NONE ||
	    !image_read(module->debug->image, described->start, module->memory, size))
		return;
	module->main.elf = elf_memory((char *)module->memory, size);
	module->main.path = strdup(described->path);
}

/* Opened for reading, it is not written to: the mapping is read-only. */
static void read_from_dump(struct debug_module *module, const struct image_file *file)
{
	if (elf_version(EV_CURRENT) == EV_NONE)
		return;
	module->main.elf = elf_memory((char *)(uintptr_t)file->bytes, file->size);
	module->main.path = strdup(file->path);
}

/*
 * Let libdwfl download the file if the user enabled that. It also searches local folders, where we
 * found nothing before.
 */
static void fetch(struct debug_module *module, bool separate, struct debug_file *ret)
{
	Dwfl_Module *dwfl = module->debug->options.debuginfod ? debug_module_dwfl(module) : NULL;
	char *path = NULL;
	void *data = NULL;
	Elf *elf = NULL;
	int fd;

	if (!dwfl || module->id.size == 0)
		return;
	if (separate)
		fd = dwfl_standard_find_debuginfo(dwfl, &data, NULL, 0, NULL, NULL, 0, &path);
	else
		fd = dwfl_build_id_find_elf(dwfl, &data, NULL, 0, &path, &elf);
	if (fd >= 0)
		debug_file_adopt(fd, path ? path : "", &module->id, ret);
	elf_end(elf);
	free(path);
}

Elf *debug_module_main(struct debug_module *module)
{
	const struct debug_options *options = &module->debug->options;
	const struct image_file *file = module->module->file;

	if (module->searched_main)
		return module->main.elf;
	module->searched_main = true;
	errno = 0;
	/* Without a build-id, it was compared. */
	if (file && !file->partial && module->id.size == 0)
		debug_file_adopt(file_open_below(options->sysroot, file->path), file->path,
				 &module->id, &module->main);
	else if (file && !file->partial)
		debug_file_open(options->sysroot, file->path, &module->id, &module->main);
	else if (!file)
		read_from_memory(module);
	if (!module->main.elf)
		fetch(module, false, &module->main);
	if (!module->main.elf && file && file->partial)
		read_from_dump(module, file);
	if (!module->main.elf && errno == ENOMEM)
		debug_lacks_memory(module->debug);
	return module->main.elf;
}

Elf *debug_module_separate(struct debug_module *module)
{
	if (module->searched_separate)
		return module->separate.elf;
	module->searched_separate = true;
	debug_module_main(module);
	errno = 0;
	debug_file_find_separate(&module->debug->options, &module->main, &module->id,
				 &module->separate);
	if (!module->separate.elf)
		fetch(module, true, &module->separate);
	if (!module->separate.elf && errno == ENOMEM)
		debug_lacks_memory(module->debug);
	return module->separate.elf;
}

static int find_elf(Dwfl_Module *dwfl, void **data, const char *name, Dwarf_Addr base,
		    char **ret_path, Elf **ret_elf)
{
	struct debug_module *module = *data;
	Elf *elf = debug_module_main(module);
	int unpacked;

	if (!elf)
		return -1;
	*ret_path = strdup(module->main.path);
	if (module->main.fd < 0) {
		size_t size;
		char *bytes = elf_rawfile(elf, &size);

		*ret_elf = elf_memory(bytes, size);
		return -1;
	}
	unpacked = debug_file_unpack(&module->main, build_cache(module->debug));
	/* Else one more reference to the same, which libdwfl ends. */
	*ret_elf = elf_begin(unpacked < 0 ? module->main.fd : unpacked, ELF_C_READ_MMAP_PRIVATE,
			     unpacked < 0 ? elf : NULL);
	return unpacked;
}

/* Hand the file to libdwfl, which closes what it is given. */
static int hand_over(const struct debug_module *module, const struct debug_file *file,
		     char **ret_path)
{
	int unpacked = debug_file_unpack(file, build_cache(module->debug));

	*ret_path = strdup(file->path);
	return unpacked >= 0 ? unpacked : fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
}

/*
 * libdwfl asks for a module's separate debug file, and for the one that it shares with others; then
 * it names that.
 */
static int find_debuginfo(Dwfl_Module *dwfl, void **data, const char *name, Dwarf_Addr base,
			  const char *file_name, const char *link, GElf_Word checksum,
			  char **ret_path)
{
	struct debug_module *module = *data;
	bool separate = debug_module_separate(module) != NULL;
	const struct debug_file *holder = separate ? &module->separate : &module->main;

	if (link && checksum == 0 && debug_file_shares(holder, link)) {
		if (!module->shared.elf)
			debug_file_find_shared(&module->debug->options, holder, &module->shared);
		return module->shared.elf ? hand_over(module, &module->shared, ret_path) : -1;
	}
	return separate ? hand_over(module, &module->separate, ret_path) : -1;
}

/* libdwfl goes over all modules it knows for each new one. */
static void report_modules(struct debug *debug)
{
	enum { MOST_REPORTED = 1 << 13 };
	size_t count = debug->program->module_count;

	count = MIN(count, MOST_REPORTED);
	dwfl_report_begin(debug->dwfl);
	list_for_each(described, debug->program->modules, count) {
		struct debug_module *module = debug_find_module(debug, described->start);
		void **data;

		if (!module || module->module != described)
			continue;
		module->dwfl = dwfl_report_module(debug->dwfl, described->path, described->start,
						  described->end);
		if (!module->dwfl)
			continue;
		dwfl_module_info(module->dwfl, &data, NULL, NULL, NULL, NULL, NULL, NULL);
		*data = module;
		/* libdwfl uses the build-id to ask a server. */
		if (debug->options.debuginfod && module->id.size > 0)
			dwfl_module_report_build_id(module->dwfl, module->id.bytes, module->id.size,
						    0);
	}
	dwfl_report_end(debug->dwfl, NULL, NULL);
}

/*
 * Some of libdw crashes where malloc() returns NULL. So it is asked only while there is much more
 * than it usually takes for a step.
 */
static bool has_room(struct debug *debug)
{
	enum { ROOM = 32 << 20, USES_PER_CHECK = 64 };
	void *room;

	if (debug->lacks_memory || debug->uses++ % USES_PER_CHECK != 0)
		return !debug->lacks_memory;
	room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED)
		debug_lacks_memory(debug);
	else
		munmap(room, ROOM);
	return !debug->lacks_memory;
}

Dwfl *debug_session(struct debug *debug)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = find_elf,
		.find_debuginfo = find_debuginfo,
	};

	if (!has_room(debug))
		return NULL;
	if (debug->dwfl || debug->failed)
		return debug->dwfl;
	debug->dwfl = dwfl_begin(&callbacks);
	if (debug->dwfl)
		report_modules(debug);
	else
		debug_lacks_memory(debug);
	debug->failed = !debug->dwfl;
	return debug->dwfl;
}

Dwfl_Module *debug_module_dwfl(struct debug_module *module)
{
	return debug_session(module->debug) ? module->dwfl : NULL;
}

Dwarf *debug_module_dwarf(struct debug_module *module, uint64_t *ret_bias)
{
	Dwfl_Module *dwfl = debug_module_dwfl(module);
	Dwarf *dwarf = dwfl ? dwfl_module_getdwarf(dwfl, ret_bias) : NULL;

	if (dwarf && module->debug->options.give_up)
		dwarf_new_oom_handler(dwarf, module->debug->options.give_up);
	module->has_dwarf |= dwarf != NULL;
	return dwarf;
}

void debug_modules_deinit(struct debug *debug)
{
	if (debug->dwfl)
		dwfl_end(debug->dwfl);
	list_for_each(module, debug->modules, debug->module_count) {
		if (!module->debug)
			continue;
		static_index_deinit(&module->static_variables);
		static_index_deinit(&module->thread_local_variables);
		symbol_tables_deinit(&module->symbols);
		debug_file_close(&module->shared);
		debug_file_close(&module->separate);
		debug_file_close(&module->main);
		free(module->memory);
	}
	free(debug->modules);
}
