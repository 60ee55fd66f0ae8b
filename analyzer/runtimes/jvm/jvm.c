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
	array_for_each(other, &jvm->space.ranges) {
		if (start < other->range.end && end > other->range.start)
			return NULL;
		if (other->range.end == start && strcmp(other->name, name) == 0) {
			other->range.end = end;
			return NULL;
		}
	}
	return array_append(&jvm->space.ranges, (struct named_range){ { start, end }, name });
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

DEFINE_COMPARE(compare_ranges, struct named_range, ASCENDING(range.start))

static struct error *find_all(struct jvm *jvm)
{
	TRY(jvm_find_heap(jvm));
	TRY(find_code(jvm));
	TRY(jvm_find_classes(jvm));
	array_sort(&jvm->space.ranges, compare_ranges);
	return NULL;
}

static struct error *open_space(struct object_space *space, bool *ret)
{
	struct jvm *jvm = (struct jvm *)space;

	list_for_each(module, space->program->modules, space->program->module_count) {
		const char *slash = strrchr(module->path, '/');

		if (!slash || strcmp(slash + 1, "libjvm.so") != 0 ||
		    !jvm_find_tables(space->image, module, &jvm->tables))
			continue;
		*ret = true;
		return find_all(jvm);
	}
	return NULL;
}

const struct runtime runtime_jvm = {
	.name = "jvm",
	.modules = "libjvm.so$",
	.space_size = sizeof(struct jvm),
	.open = open_space,
	.leaks_note =
		"a Java virtual machine is loaded: its objects are not counted as allocations, and hold what they refer to",
};
