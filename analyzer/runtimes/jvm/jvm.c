/*
 * The HotSpot virtual machine of Java, OpenJDK 8 to 25: where its heap and the code that it
 *compiled are.
 *
 * libjvm.so exports what its own debuggers read, src/hotspot/share/runtime/vmStructs.hpp: a table
 * with an entry for each field that they may know, and the layout of the entries. So neither the
 * version nor debug information is needed. The table ends with an entry without a name.
 *
 *	gHotSpotVMStructs -> | type's name | field's name | ... | is static | offset | address | ...
 *
 * Objects of Java are no allocations; their heap is a root as all other memory is.
 */
#include "analyzer/base/macros.h"
#include "analyzer/image/image.h"
#include "analyzer/program/symbols.h"
#include "analyzer/runtimes/runtime.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_FIELDS = 1 << 14, RANGES = 2 };

struct jvm {
	struct object_space space;
	const struct image *image;
	struct named_range ranges[RANGES];
	size_t range_count;
};

/* The table, as the variables beside it say that it is laid out. */
struct fields {
	const struct image *image;
	uint64_t start, stride;
	uint64_t type, field, is_static, offset, address; /* places in an entry */
};

static bool read_variable(const struct image *image, const struct module *module, const char *name,
			  uint64_t *ret)
{
	uint64_t address;

	return module_find_variable(module, name, &address) && image_read_u64(image, address, ret);
}

static bool find_fields(const struct image *image, const struct module *module, struct fields *ret)
{
	enum { LARGEST_ENTRY = 1 << 10 };

	ret->image = image;
	return read_variable(image, module, "gHotSpotVMStructs", &ret->start) &&
	       read_variable(image, module, "gHotSpotVMStructEntryArrayStride", &ret->stride) &&
	       read_variable(image, module, "gHotSpotVMStructEntryTypeNameOffset", &ret->type) &&
	       read_variable(image, module, "gHotSpotVMStructEntryFieldNameOffset", &ret->field) &&
	       read_variable(image, module, "gHotSpotVMStructEntryIsStaticOffset",
			     &ret->is_static) &&
	       read_variable(image, module, "gHotSpotVMStructEntryOffsetOffset", &ret->offset) &&
	       read_variable(image, module, "gHotSpotVMStructEntryAddressOffset", &ret->address) &&
	       ret->stride > 0 && ret->stride <= LARGEST_ENTRY;
}

/* Whether the word at address leads to the text. */
static bool leads_to(const struct image *image, uint64_t address, const char *text)
{
	char found[64];
	uint64_t start;
	size_t size = strlen(text) + 1;

	return size <= sizeof(found) && image_read_u64(image, address, &start) &&
	       image_read(image, start, found, size) && memcmp(found, text, size) == 0;
}

/* Where a static field is, or the offset of another one. */
static bool find_field(const struct fields *fields, const char *type, const char *field,
		       bool is_static, uint64_t *ret)
{
	uint64_t entry = fields->start, name;

	for (size_t i = 0; i < MOST_FIELDS; i++, entry += fields->stride) {
		uint32_t found_static;

		if (!image_read_u64(fields->image, entry + fields->type, &name) || !name)
			return false;
		if (leads_to(fields->image, entry + fields->type, type) &&
		    leads_to(fields->image, entry + fields->field, field) &&
		    image_read_u32(fields->image, entry + fields->is_static, &found_static) &&
		    (found_static != 0) == is_static)
			return image_read_u64(
				fields->image,
				entry + (is_static ? fields->address : fields->offset), ret);
	}
	return false;
}

static bool read_static(const struct fields *fields, const char *type, const char *field,
			uint64_t *ret)
{
	uint64_t address;

	return find_field(fields, type, field, true, &address) &&
	       image_read_u64(fields->image, address, ret);
}

static void add_range(struct jvm *jvm, uint64_t start, uint64_t end, const char *name)
{
	for (size_t i = 0; i < jvm->range_count; i++)
		if (start < jvm->ranges[i].range.end && end > jvm->ranges[i].range.start)
			return;
	if (start < end && jvm->range_count < RANGES)
		jvm->ranges[jvm->range_count++] = (struct named_range){ { start, end }, name };
}

/* The memory that is reserved for objects, whichever collector they have. */
static void find_heap(struct jvm *jvm, const struct fields *fields)
{
	static const uint64_t most = UINT64_C(1) << 44;
	uint64_t heap, reserved, start_at, words_at, start, words;

	if (read_static(fields, "Universe", "_collectedHeap", &heap) &&
	    find_field(fields, "CollectedHeap", "_reserved", false, &reserved) &&
	    find_field(fields, "MemRegion", "_start", false, &start_at) &&
	    find_field(fields, "MemRegion", "_word_size", false, &words_at) &&
	    image_read_u64(jvm->image, heap + reserved + start_at, &start) &&
	    image_read_u64(jvm->image, heap + reserved + words_at, &words) && words < most)
		add_range(jvm, start, start + words * sizeof(uint64_t), "Java's heap");
}

/* From JDK 9 on; before, it is found by its rights. */
static void find_code(struct jvm *jvm, const struct fields *fields)
{
	uint64_t start, end;

	if (read_static(fields, "CodeCache", "_low_bound", &start) &&
	    read_static(fields, "CodeCache", "_high_bound", &end))
		add_range(jvm, start, end, "Java's code cache");
}

static struct error *open_space(const struct runtime_context *context, struct object_space **ret)
{
	const struct program *program = context->program;
	struct fields fields;
	struct jvm *jvm;

	for (size_t i = 0; i < program->module_count; i++) {
		const char *slash = strrchr(program->modules[i].path, '/');

		if (!slash || strcmp(slash + 1, "libjvm.so") != 0 ||
		    !find_fields(context->image, &program->modules[i], &fields))
			continue;
		jvm = calloc(1, sizeof(*jvm));
		if (!jvm)
			return &error_no_memory;
		jvm->image = context->image;
		find_heap(jvm, &fields);
		find_code(jvm, &fields);
		*ret = &jvm->space;
		return NULL;
	}
	return NULL;
}

static void close_space(struct object_space *space)
{
	free(space);
}

static const struct named_range *memory(const struct object_space *space, size_t *ret_count)
{
	const struct jvm *jvm = (const struct jvm *)space;

	*ret_count = jvm->range_count;
	return jvm->ranges;
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
