#include "analyzer/heap/unsupported.h"

#include "analyzer/capture/recorder.h"
#include "analyzer/program/symbols.h"

#include <elf.h>
#include <string.h>

#define GO "Go's runtime"

/*
 * Unsupported allocators, recognised by a part of their library's path, or by functions that only
 * they have, linked into a program.
 */
static const struct {
	const char *name;
	const char *libraries[2];
	const char *functions[4];
	const char *read;   /* name of what is read another way, with words of 8 bytes */
	const char *narrow; /* and where they are of 4 */
} unsupported[] = {
	{ "jemalloc",
	  { "/libjemalloc" },
	  { "mallctl", "je_mallctl", "_rjem_mallctl" },
	  "versions 5.0 to 5.3",
	  "versions 5.0 to 5.3" },
	{ "mozjemalloc",
	  { "/libmozglue" },
	  { "jemalloc_stats_internal", "jemalloc_thread_local_arena" } },
	{ "Google's tcmalloc", { NULL }, { "TCMallocInternalMalloc" }, "versions of 2023 to 2026" },
	{ "tcmalloc",
	  { "/libtcmalloc" },
	  { "tc_malloc" },
	  "versions 2.8 to 2.18 of gperftools",
	  "versions 2.8 to 2.18 of gperftools" },
	{ "mimalloc", { "/libmimalloc" }, { "mi_malloc" }, "versions 1.7 to 3.6" },
	{ "musl's malloc",
	  { "/ld-musl-", "-musl/libc.so" },
	  { "__libc_malloc_impl", "__malloc_donate" },
	  "versions from 1.2.1 on",
	  "versions from 1.2.1 on" },
	{ "snmalloc", { "/libsnmalloc" }, { "sn_rust_alloc" } },
	{ "Hoard", { "/libhoard" }, { NULL } },
	{ "hardened_malloc", { "/libhardened_malloc" }, { NULL } },
	{ "V8", { "/libv8" }, { "_ZN2v87Isolate8AllocateEv" } },
	{ "AddressSanitizer",
	  { "/libasan" },
	  { "__asan_init" },
	  "versions for x86-64 of GCC 12 and Clang 14 or later" },
	{ "ThreadSanitizer", { "/libtsan" }, { "__tsan_init" } },
	{ "LeakSanitizer", { "/liblsan" }, { "__lsan_init" } },
	{ "HWAddressSanitizer", { "/libhwasan" }, { "__hwasan_init" } },
	{ "Scudo", { "scudo" }, { "__scudo_print_stats" } },
	{ "the TBB allocator", { "/libtbbmalloc" }, { "scalable_malloc" } },
	/* The program has its malloc, and the core its registers. */
	{ "valgrind", { "/libexec/valgrind/", "/vgpreload_" }, { NULL } },
	{ GO, { NULL }, { "runtime.mallocgc" } },
};

enum { UNSUPPORTED = COUNT_OF(unsupported), NAMES = 64 };

/* A mark near the beginning of the data of Go programs, even stripped ones. */
static const char GO_MARK[] = "\xff Go buildinf:";
enum { GO_MARK_REACH = 64 << 10 };

static bool is_narrow(const struct heap_context *context)
{
	return image_word_size(context->image) == sizeof(uint32_t);
}

/* The functions of all, for one pass over the symbols of a module. */
struct function_names {
	const char *names[NAMES];
	size_t owners[NAMES]; /* UNSUPPORTED: the function malloc itself */
	size_t count;
};

static struct function_names list_names(const struct heap_context *context)
{
	struct function_names list = { .count = 0 };

	for (size_t i = 0; i < UNSUPPORTED; i++)
		for (size_t j = 0; j < 4 && unsupported[i].functions[j]; j++) {
			list.owners[list.count] = i;
			list.names[list.count++] = unsupported[i].functions[j];
		}
	list.owners[list.count] = UNSUPPORTED;
	list.names[list.count++] = "malloc";
	return list;
}

static bool is_library_of(const struct module *module, size_t number)
{
	for (size_t i = 0; i < 2 && unsupported[number].libraries[i]; i++)
		if (strstr(module->path, unsupported[number].libraries[i]))
			return true;
	return false;
}

/*
 * For Node.js, the references of V8's objects are found, and a note says that the objects are not
 * counted.
 */
static bool is_node(const struct image *image, const struct module *module)
{
	const char *name = module_file_name(module);

	return strcmp(name, "node") == 0 || strcmp(name, "nodejs") == 0 ||
	       strncmp(name, "libnode.so", strlen("libnode.so")) == 0 ||
	       module_exports(image, module, "node_module_register");
}

bool module_is_in_go(const struct image *image, const struct module *module)
{
	size_t first = LIST_ABOVE(image->regions, image->region_count, end, module->start);

	/* From its first region: a hostile dump has many modules and regions. */
	for (const struct region *region = image->regions + first;
	     region < image->regions + image->region_count && region->end <= module->end;
	     region++) {
		uint64_t size = region->end - region->start;

		if (!region->bytes || region->start < module->start ||
		    (region->rights & RIGHT_EXECUTE))
			continue;
		if (memmem(region->bytes, MIN(size, GO_MARK_REACH), GO_MARK, sizeof(GO_MARK) - 1))
			return true;
	}
	return false;
}

/* The number of the one with that name. */
static int number_of(const char *name)
{
	int number = 0;

	while (strcmp(unsupported[number].name, name) != 0)
		number++;
	return number;
}

/* The number of the module's allocator, UNSUPPORTED for a malloc without a name here, or -1. */
static int allocator_of(const struct heap_context *context, const struct module *module,
			const struct function_names *list)
{
	uint64_t defined;

	for (size_t i = 0; i < UNSUPPORTED; i++)
		if (is_library_of(module, i))
			return (int)i;
	defined = module_defines(module, list->names);
	for (size_t i = 0; i < list->count; i++)
		if (defined >> i & 1)
			return (int)list->owners[i];
	return module == program_find_module(context->program,
					     image_auxiliary(context->image, AT_ENTRY, 0)) &&
			       module_is_in_go(context->image, module)
		       ? number_of(GO)
		       : -1;
}

/* libc, and glibc's loader, which has a malloc for itself. */
static bool is_libc(const struct module *module)
{
	const char *name = module_file_name(module);

	return module_is_libc(module) || strncmp(name, "ld-linux", 8) == 0 ||
	       strncmp(name, "ld-2.", 5) == 0 || strcmp(module->path, "[vdso]") == 0;
}

/* True if an unnamed malloc may only forward to the one in libc, as profilers do. */
static bool may_pass_on(const struct module *module)
{
	static const char *const names[] = { "__libc_malloc", "dlsym", NULL };

	return module_needs(module, names) != 0;
}

static bool has_libc(const struct heap_context *context)
{
	const struct program *program = context->program;
	bool has_libc = false;

	for (size_t i = 0; i < program->module_count; i++)
		has_libc |= module_is_libc(&program->modules[i]);
	return has_libc;
}

static void report(const struct heap_context *context, const struct module *module, int number)
{
	/* It calls the allocator that the program has without it. */
	if (strncmp(module_file_name(module), RECORDER_FILE, strlen(RECORDER_FILE)) == 0)
		return;
	if (number < UNSUPPORTED && strcmp(unsupported[number].name, GO) == 0 && has_libc(context))
		findings_add(
			context->findings, FINDING_NOTE,
			"%s is in Go: objects of Go are not counted as allocations, and hold what they refer to until Go frees them",
			module->path);
	else if (number == UNSUPPORTED && may_pass_on(module))
		findings_add(
			context->findings, FINDING_NOTE,
			"%s defines malloc: unless it calls libc's, what it allocated is not counted",
			module->path);
	else if (number < UNSUPPORTED && is_narrow(context) && unsupported[number].read &&
		 !unsupported[number].narrow)
		findings_add(
			context->findings, FINDING_INCOMPLETE,
			"%s is loaded (%s), and its heap is not read in 32-bit programs: what it allocated is not counted",
			unsupported[number].name, module->path);
	else if (number < UNSUPPORTED && unsupported[number].read)
		findings_add(
			context->findings, FINDING_INCOMPLETE,
			"%s is loaded (%s), and its heap could not be read: only %s are, undamaged. What it allocated is not counted",
			unsupported[number].name, module->path,
			is_narrow(context) ? unsupported[number].narrow : unsupported[number].read);
	else
		findings_add(
			context->findings, FINDING_INCOMPLETE,
			"%s is loaded (%s), and its heap is not supported: what it allocated is not counted",
			number < UNSUPPORTED ? unsupported[number].name : "another malloc",
			module->path);
}

bool report_unsupported(const struct heap_context *context,
			bool (*is_understood)(const void *data, const struct module *module),
			const void *data)
{
	struct function_names list = list_names(context);
	uint64_t reported = 0;

	list_for_each(module, context->program->modules, context->program->module_count) {
		int number = -1;

		if (!is_libc(module) && !is_node(context->image, module) &&
		    !is_understood(data, module))
			number = allocator_of(context, module, &list);
		/* One allocator may be in several modules. */
		if (number < 0 || (number < UNSUPPORTED && (reported >> number & 1)))
			continue;
		report(context, module, number);
		reported |= UINT64_C(1) << number;
	}
	return reported != 0;
}

/* The program's environment, on the main stack, has what valgrind preloads. */
static bool ran_under_valgrind(const struct image *image)
{
	static const char preloaded[] = "/vgpreload_core-";
	enum { STACK_MOST = 64 << 20 };

	for (size_t i = 0; i < image->region_count; i++) {
		const struct region *region = &image->regions[i];
		uint64_t size = region->end - region->start;

		if (region->bytes && (region->rights & RIGHT_WRITE) && size <= STACK_MOST &&
		    memmem(region->bytes, size, preloaded, sizeof(preloaded) - 1))
			return true;
	}
	return false;
}

void report_no_modules(const struct heap_context *context)
{
	if (ran_under_valgrind(context->image)) {
		findings_add(
			context->findings, FINDING_INCOMPLETE,
			"the program ran under valgrind, whose malloc takes the place of the program's: what it allocated is not counted, and what leaked is unknown");
		return;
	}
	findings_add(
		context->findings, FINDING_INCOMPLETE,
		"the core names neither the program nor its libraries, like the cores that valgrind writes: if they have a malloc of their own, what it allocated is not counted");
}

void report_no_heap(const struct heap_context *context)
{
	findings_add(
		context->findings, FINDING_INCOMPLETE,
		"no heap was found: %s. Counts of 0 mean nothing",
		has_libc(context)
			? "libc is loaded, but its data (main_arena) is not in the core"
			: "neither glibc's malloc nor any other known allocator is seen in the core");
}
