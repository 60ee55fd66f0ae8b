#include "analyzer/runtimes/jvm/tables.h"

#include "analyzer/program/symbols.h"

#include <string.h>

enum { MOST_ENTRIES = 1 << 14, LARGEST_ENTRY = 1 << 10 };

static bool read_variable(const struct image *image, const struct module *module, const char *name,
			  uint64_t *ret)
{
	uint64_t address;

	return module_find_variable(module, name, &address) && image_read_u64(image, address, ret);
}

static void find_constants(const struct module *module, struct jvm_tables *tables)
{
	const struct image *image = tables->image;

	if (!read_variable(image, module, "gHotSpotVMIntConstants", &tables->constants) ||
	    !read_variable(image, module, "gHotSpotVMIntConstantEntryNameOffset",
			   &tables->constant_name) ||
	    !read_variable(image, module, "gHotSpotVMIntConstantEntryValueOffset",
			   &tables->constant_value) ||
	    !read_variable(image, module, "gHotSpotVMIntConstantEntryArrayStride",
			   &tables->constant_stride) ||
	    tables->constant_stride > LARGEST_ENTRY)
		tables->constant_stride = 0;
}

bool jvm_find_tables(const struct image *image, const struct module *module, struct jvm_tables *ret)
{
	ret->image = image;
	find_constants(module, ret);
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

/* True if the word at address points to the text. */
static bool leads_to(const struct image *image, uint64_t address, const char *text)
{
	char found[64];
	uint64_t start;
	size_t size = strlen(text) + 1;

	return size <= sizeof(found) && image_read_u64(image, address, &start) &&
	       image_read(image, start, found, size) && memcmp(found, text, size) == 0;
}

/* Find the address of a static field, or the offset of another one. */
static bool find_field(const struct jvm_tables *tables, const char *type, const char *field,
		       bool is_static, uint64_t *ret)
{
	uint64_t entry = tables->start, name;

	for (size_t i = 0; i < MOST_ENTRIES; i++, entry += tables->stride) {
		uint32_t found_static;

		if (!image_read_u64(tables->image, entry + tables->type, &name) || !name)
			return false;
		if (leads_to(tables->image, entry + tables->type, type) &&
		    leads_to(tables->image, entry + tables->field, field) &&
		    image_read_u32(tables->image, entry + tables->is_static, &found_static) &&
		    (found_static != 0) == is_static)
			return image_read_u64(
				tables->image,
				entry + (is_static ? tables->address : tables->offset), ret);
	}
	return false;
}

bool jvm_offset(const struct jvm_tables *tables, const char *type, const char *field, uint64_t *ret)
{
	return find_field(tables, type, field, false, ret);
}

bool jvm_static(const struct jvm_tables *tables, const char *type, const char *field, uint64_t *ret)
{
	uint64_t address;

	return find_field(tables, type, field, true, &address) &&
	       image_read_u64(tables->image, address, ret);
}

bool jvm_field(const struct jvm_tables *tables, uint64_t object, const char *type,
	       const char *field, uint64_t *ret)
{
	uint64_t offset;

	return jvm_offset(tables, type, field, &offset) &&
	       image_read_u64(tables->image, object + offset, ret);
}

bool jvm_constant(const struct jvm_tables *tables, const char *name, uint32_t *ret)
{
	uint64_t entry = tables->constants, text;

	for (size_t i = 0; i < MOST_ENTRIES && tables->constant_stride; i++) {
		if (!image_read_u64(tables->image, entry + tables->constant_name, &text) || !text)
			return false;
		if (leads_to(tables->image, entry + tables->constant_name, name))
			return image_read_u32(tables->image, entry + tables->constant_value, ret);
		entry += tables->constant_stride;
	}
	return false;
}
