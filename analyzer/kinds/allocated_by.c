#include "analyzer/kinds/allocated_by.h"

#include "analyzer/base/text.h"
#include "analyzer/classify/type_names.h"
#include "analyzer/image/mapped_file.h"
#include "analyzer/kinds/kind_key.h"
#include "analyzer/program/debug/functions.h"

#include <string.h>

/* The class of an object; NULL: it is none, or has no name. */
static const char *find_class(const struct analysis *analysis, allocation_id id)
{
	struct classes *classes = analysis_classes(analysis);
	uint64_t signature = analysis_signature(analysis, id);

	return signature && classes_is_class(classes, signature) &&
			       classes_control_block(classes, signature) == NO_CONTROL_BLOCK
		       ? classes_full_name(classes, signature)
		       : NULL;
}

/*
 * True if it is the control block of a std::shared_ptr, which may have the class or type of the
 * object in it. The function that allocates such an object alone did not allocate the block.
 */
static bool is_control_block(const struct analysis *analysis, allocation_id id)
{
	uint64_t word = 0;

	return analysis_signature(analysis, id) &&
	       image_read_word(analysis_image(analysis),
			       allocation_start(analysis_index(analysis), id), &word) &&
	       word && classes_is_class(analysis_classes(analysis), word) &&
	       classes_control_block(analysis_classes(analysis), word) != NO_CONTROL_BLOCK;
}

/* The type of the one value that the allocation is; NO_TYPE: it is not known, or none. */
static type_number find_type(const struct analysis *analysis, allocation_id id)
{
	struct typed typed;

	if (!analysis_type_of(analysis, id, &typed))
		return NO_TYPE;
	return typed.fit == FIT_ONE || typed.fit == FIT_TAIL || typed.fit == FIT_LIKE ? typed.type
										      : NO_TYPE;
}

static char *list_functions(const struct site_functions *functions)
{
	_cleanup_(free) char *first = short_name(functions->names[0]);
	_cleanup_(free) char *second =
		functions->count > 1 ? short_name(functions->names[1]) : NULL;
	_cleanup_(free) char *third = functions->count > 2 ? short_name(functions->names[2]) : NULL;

	if (!first || !second != (functions->count < 2) || !third != (functions->count < 3))
		return NULL;
	if (functions->count == 1)
		return functions->source ? format_text("%s (%s)", first, functions->source)
					 : format_text("%s", first);
	return functions->count == 2 ? format_text("one of %s, %s", first, second)
				     : format_text("one of %s, %s, %s", first, second, third);
}

/* True if it came from malloc() or the like, and only its size is known. */
static bool is_nameless(const struct analysis *analysis, allocation_id id)
{
	const struct allocation_index *index = analysis_index(analysis);
	const struct heap_region *region = heap_region_find(index, allocation_start(index, id));
	const struct allocator *allocator =
		region ? heaps_arena_allocator(analysis_heaps(analysis), region->arena) : NULL;
	bool is_leaked = analysis_cost(analysis, STAGE_REACHABILITY).built &&
			 bitmap_get(analysis_leaked(analysis), id);
	const struct patterns *patterns =
		is_leaked ? analysis_leaked_patterns(analysis) : analysis_owners(analysis);

	return allocator && !allocator->is_private && bitmap_get(allocation_used(index), id) &&
	       kind_typed(analysis, patterns, analysis_typing(analysis), id) == KIND_UNKNOWN;
}

static uint64_t code_size(const struct image *image, const struct module *module)
{
	const struct region *region = module_region_next(image, module->start, module->end);
	uint64_t size = 0;

	for (; region; region = module_region_next(image, region->end, module->end))
		size += region->rights & RIGHT_EXECUTE ? region->end - region->start : 0;
	return size;
}

/* How many bytes of code have debug information, by which calls are read. */
static uint64_t readable_code(const struct analysis *analysis)
{
	const struct program *program = analysis_program(analysis);
	uint64_t size = 0;

	for (size_t i = 0; i < program->module_count; i++)
		if (debug_has_functions(analysis_debug(analysis), i))
			size += code_size(analysis_image(analysis), &program->modules[i]);
	return size;
}

/* Add what may have allocated another one; false: there are too many in all. */
static bool join_functions(struct site_functions *all, const struct site_functions *more)
{
	all->may_vary |= more->may_vary;
	all->type = all->type == more->type ? all->type : NO_TYPE;
	for (size_t i = 0; i < more->count; i++) {
		size_t known = 0;

		while (known < all->count && strcmp(all->names[known], more->names[i]) != 0)
			known++;
		if (known == MOST_MAKERS_NAMED)
			return false;
		if (known < all->count)
			continue;
		all->source = NULL;
		all->names[all->count++] = more->names[i];
	}
	return true;
}

/* Find the functions of several allocations of one size, if most of them have some. */
static struct error *find_functions(struct analysis *analysis, const allocation_id *ids,
				    size_t count, struct site_functions *ret)
{
	struct site_functions all = { .count = 0 }, one;
	size_t known = 0;

	*ret = all;
	for (size_t i = 0; i < count; i++) {
		TRY(sites_find_by_size(analysis_sites(analysis),
				       analysis_typing_to_compare(analysis), ids[i], &one));
		if (one.count > 0 && known++ == 0)
			all = one;
		else if (!join_functions(&all, &one))
			return NULL;
	}
	all.may_vary |= known < count;
	if (known * 2 > count)
		*ret = all;
	return NULL;
}

/*
 * True if most of what is held has no type: there is much that calls do not tell, as what a library
 * allocates, and a size says little of who asked for it.
 */
static bool is_little_known(const struct analysis *analysis)
{
	const struct typing *typing = analysis_typing_to_compare(analysis);
	size_t held = bitmap_weight(allocation_used(analysis_index(analysis)));

	if (analysis_cost(analysis, STAGE_REACHABILITY).built)
		held -= bitmap_weight(analysis_leaked(analysis));
	return typing && !typing_is_partial(typing) && typing_count(typing) < held / 2;
}

static struct error *find_by_size(struct analysis *analysis, const allocation_id *ids, size_t count,
				  bool is_soon, char **ret)
{
	enum { READ_SOON = 512 << 10 }; /* in a tenth of a second at most */
	_cleanup_(free) char *names = NULL;
	struct site_functions functions;

	TRY(analysis_need(analysis, STAGE_TYPE_TABLE));
	if (is_soon && readable_code(analysis) > READ_SOON)
		return NULL;
	TRY(analysis_need(analysis, STAGE_SITES));
	TRY(find_functions(analysis, ids, count, &functions));
	if (functions.count == 0 || (functions.may_vary && is_little_known(analysis)))
		return NULL;
	names = list_functions(&functions);
	if (names && functions.type != NO_TYPE && !functions.may_vary &&
	    !analysis_signature(analysis, ids[0]))
		*ret = format_text(
			"%s, by its size, as %s", names,
			type_text(analysis_type_table(analysis), functions.type, "", ""));
	else if (names)
		*ret = format_text("%s%s, by its size", names,
				   functions.may_vary ? " or others" : "");
	return *ret ? NULL : &error_no_memory;
}

char *call_text(const struct frame *frame)
{
	_cleanup_(free) char *name = NULL;
	const char *folder = frame->source ? strrchr(frame->source, '/') : NULL;
	const char *source = folder ? folder + 1 : frame->source;

	if (!frame->function)
		return strdup(source ? source : module_name(frame->module));
	name = frame->is_script ? strdup(frame->function) : short_name(frame->function);
	return name ? format_text("%s (%s)", name, source ? source : module_name(frame->module))
		    : NULL;
}

/* The innermost function of the program. */
static char *name_call(const struct backtrace *calls)
{
	list_for_each(frame, calls->frames, calls->count)
		if (frame->function && frame->module && !module_is_of_language(frame->module) &&
		    !name_is_of_library(frame->function))
			return call_text(frame);
	return NULL;
}

/* Name the function that called the allocator in the noted calls; NULL: it is not known. */
static struct error *name_noted(struct analysis *analysis, const struct noting *noting, void *owner,
				uint64_t calls, char **ret)
{
	enum { MOST_CALLS = 32 };
	uint64_t addresses[MOST_CALLS];
	struct backtrace found;

	TRY(debug_calls_at(analysis_debug(analysis), addresses,
			   noting->read_calls(owner, calls, addresses, MOST_CALLS), &found));
	*ret = name_call(&found);
	free(found.frames);
	return NULL;
}

/* Find the function that the program's allocator noted, or say that there are others. */
static struct error *find_noted(struct analysis *analysis, const allocation_id *ids, size_t count,
				char **ret)
{
	_cleanup_(free) char *first = NULL;
	const struct noting *noting;
	bool may_vary = false;
	uint64_t last = 0;
	void *owner;

	TRY(heaps_find_noting(analysis_heaps(analysis), &noting, &owner));
	if (!noting)
		return NULL;
	TRY(analysis_need(analysis, STAGE_DEBUG));
	for (size_t i = 0; i < count && !may_vary; i++) {
		uint64_t start = allocation_start(analysis_index(analysis), ids[i]);
		uint64_t calls = noting->calls_of(owner, start);
		_cleanup_(free) char *name = NULL;

		if (i > 0 && calls == last)
			continue;
		TRY(name_noted(analysis, noting, owner, calls, &name));
		may_vary = i > 0 && (!name || !first || strcmp(name, first) != 0);
		if (i == 0)
			first = take(name);
		last = calls;
	}
	if (first)
		*ret = format_text("%s%s", first, may_vary ? " or others" : "");
	return NULL;
}

static struct error *find(struct analysis *analysis, const allocation_id *ids, size_t count,
			  bool is_soon, char **ret)
{
	const allocation_id id = ids[0];
	bool is_shared = is_control_block(analysis, id);
	const char *class = is_shared ? NULL : find_class(analysis, id);
	struct site_functions functions;
	enum type_kind kind;
	type_number type;

	*ret = NULL;
	TRY(find_noted(analysis, ids, count, ret));
	if (*ret)
		return NULL;
	if (class)
		TRY(analysis_need(analysis, STAGE_TYPE_TABLE));
	type = is_shared ? NO_TYPE
	       : class	 ? type_find(analysis_type_table(analysis), class)
			 : find_type(analysis, id);
	kind = type != NO_TYPE ? type_get(analysis_type_table(analysis), type)->kind : TYPE_NONE;
	if (is_shared || (!class && type == NO_TYPE && is_nameless(analysis, id)))
		return find_by_size(analysis, ids, is_shared ? 1 : count, is_soon, ret);
	if (kind != TYPE_STRUCTURE && kind != TYPE_UNION)
		return NULL;
	TRY(analysis_need(analysis, STAGE_SITES));
	TRY(sites_find(analysis_sites(analysis), id, type, &functions));
	if (functions.count == 0)
		return NULL;
	*ret = list_functions(&functions);
	return *ret ? NULL : &error_no_memory;
}

struct error *allocated_by_find(struct analysis *analysis, allocation_id id, char **ret)
{
	return find(analysis, &id, 1, false, ret);
}

struct error *allocated_by_find_all(struct analysis *analysis, const allocation_id *ids,
				    size_t count, char **ret)
{
	return find(analysis, ids, count, false, ret);
}

struct error *allocated_by_find_soon(struct analysis *analysis, const allocation_id *ids,
				     size_t count, char **ret)
{
	return find(analysis, ids, count, true, ret);
}
