/*
 * The HotSpot virtual machine of Java, OpenJDK 8 to 25: where its heap, its classes and the code
 * that it compiled are.
 *
 * Objects of Java are no allocations; their heap is a root as all other memory is.
 */
#include "analyzer/base/macros.h"
#include "analyzer/base/sort.h"
#include "analyzer/runtimes/jvm/space.h"

#include <stdlib.h>
#include <string.h>

struct error *jvm_add(struct jvm *jvm, uint64_t start, uint64_t end, const char *name)
{
	if (start >= end)
		return NULL;
	array_for_each(other, &jvm->ranges) {
		if (start < other->range.end && end > other->range.start)
			return NULL;
		if (other->range.end == start && strcmp(other->name, name) == 0) {
			other->range.end = end;
			return NULL;
		}
	}
	return array_append(&jvm->ranges, (struct named_range){ { start, end }, name });
}

/* From JDK 9 on; before, it is found by its rights. */
static struct error *find_code(struct jvm *jvm)
{
	uint64_t start, end;

	if (!jvm_static(&jvm->tables, "CodeCache", "_low_bound", &start) ||
	    !jvm_static(&jvm->tables, "CodeCache", "_high_bound", &end))
		return NULL;
	return jvm_add(jvm, start, end, "Java's code cache");
}

static void close_space(struct object_space *space)
{
	struct jvm *jvm = (struct jvm *)space;

	array_release(&jvm->ranges);
	free(jvm);
}

DEFINE_COMPARE(compare_ranges, struct named_range, ASCENDING(range.start))

static struct error *find_all(struct jvm *jvm)
{
	TRY(jvm_find_heap(jvm));
	TRY(find_code(jvm));
	TRY(jvm_find_classes(jvm));
	array_sort(&jvm->ranges, compare_ranges);
	return NULL;
}

static struct error *open_space(const struct runtime_context *context, struct object_space **ret)
{
	const struct program *program = context->program;
	struct jvm_tables tables = { 0 };
	struct error *error;
	struct jvm *jvm;

	for (size_t i = 0; i < program->module_count; i++) {
		const char *slash = strrchr(program->modules[i].path, '/');

		if (!slash || strcmp(slash + 1, "libjvm.so") != 0 ||
		    !jvm_find_tables(context->image, &program->modules[i], &tables))
			continue;
		jvm = calloc(1, sizeof(*jvm));
		TRY_MEMORY(jvm);
		jvm->tables = tables;
		jvm->ranges.memory.account = context->account;
		error = find_all(jvm);
		if (error)
			close_space(&jvm->space);
		else
			*ret = &jvm->space;
		return error;
	}
	return NULL;
}

static const struct named_range *memory(const struct object_space *space, size_t *ret_count)
{
	const struct jvm *jvm = (const struct jvm *)space;

	*ret_count = jvm->ranges.count;
	return jvm->ranges.items;
}

const struct runtime runtime_jvm = {
	.name = "jvm",
	.modules = "libjvm.so$",
	.open = open_space,
	.close = close_space,
	.memory = memory,
	.leaks_note =
		"a Java virtual machine is loaded: its objects are no allocations here, and hold what they refer to",
};
