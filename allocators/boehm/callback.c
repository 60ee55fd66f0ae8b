#include "allocators/boehm/callback.h"

#include "analyzer/program/symbols.h"

/*
 * Whether the function is the collector's own, which is there at first. Its name is local, so a
 * stripped library does not tell it; but then the program is not part of the same module.
 */
static bool is_default(const struct module *module, uint64_t function)
{
	uint64_t known;

	if (function == 0)
		return true;
	if (module_find_function(module, "GC_default_push_other_roots", &known))
		return function == known;
	return function - module->start < module->end - module->start;
}

/* Whether objects of that block are marked by a function of their own. */
static bool has_procedure(const struct heap_context *context, const struct boehm_block *block)
{
	/* Tags of a descriptor are its lower two bits, from 7.2 to 8.3. */
	enum { HEADER_DESCRIPTOR = 40, TAGS = 3, TAG_PROCEDURE = 2 };
	uint64_t descriptor;

	return !is_free(block) && !block->pointerless && block->kind >= KIND_FIRST_OWN &&
	       image_read_u64(context->image, block->header + HEADER_DESCRIPTOR, &descriptor) &&
	       (descriptor & TAGS) == TAG_PROCEDURE;
}

static bool has_procedures(const struct heap_context *context, const struct collector *collector)
{
	const struct boehm_block *blocks = boehm_blocks(collector);

	for (size_t i = 0; i < collector->blocks.count; i++)
		if (has_procedure(context, &blocks[i]))
			return true;
	return false;
}

static enum more_roots look_at(const struct heap_context *context,
			       const struct collector *collector)
{
	const struct module *module = program_find_module(context->program, collector->start);
	uint64_t variable, function;

	if (has_procedures(context, collector))
		return MORE_ROOTS_CALLBACK;
	if (!module || !module_find_variable(module, "GC_push_other_roots", &variable) ||
	    !image_read_u64(context->image, variable, &function))
		return MORE_ROOTS_UNKNOWN;
	return is_default(module, function) ? MORE_ROOTS_NONE : MORE_ROOTS_CALLBACK;
}

enum more_roots boehm_more_roots(const struct heap *heap)
{
	const struct boehm_heap *boehm = (const struct boehm_heap *)heap;
	enum more_roots most = MORE_ROOTS_NONE;

	for (size_t i = 0; i < boehm->collector_count; i++) {
		enum more_roots more = look_at(&boehm->context, &boehm->collectors[i]);

		if (more > most)
			most = more;
	}
	return most;
}
