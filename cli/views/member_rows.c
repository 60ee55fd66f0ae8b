#include "cli/views/member_rows.h"

#include "analyzer/kinds/value_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_ELEMENTS = 200 };

static const struct table table =
	TABLE("member", "  [{member} = ]{value}", { "address", VALUE_ADDRESS },
	      { "offset", VALUE_ADDRESS }, { "type", VALUE_TEXT }, { "member", VALUE_TEXT },
	      { "value", VALUE_TEXT });

/* The values to write, and the allocation or variable that they are part of. */
struct parts {
	struct report *report;
	const struct analysis *analysis;
	const struct type_table *types;
	uint64_t start, size; /* size 0: as large as its type */
};

/* Frees the value. */
static void write_part(const struct parts *parts, uint64_t address, const char *type,
		       const char *member, char *value)
{
	report_row(parts->report, address, address - parts->start, type, member,
		   report_content(parts->report, value ? value : "(memory is short)"));
	free(value);
}

static bool is_aggregate(const struct data_type *type)
{
	return type->kind == TYPE_STRUCTURE || type->kind == TYPE_UNION;
}

/* The last member of a structure may have as many elements as there is room for. */
static bool write_tail(const struct parts *parts, const struct type_member *member)
{
	const struct data_type *type = type_get(parts->types, member->type);
	const struct data_type *element = type_get(parts->types, type->target);

	if (type->kind != TYPE_ARRAY || type->count > 1 || !element->size ||
	    parts->size <= member->offset)
		return false;
	write_part(parts, parts->start + member->offset,
		   type_text(parts->types, member->type, "", ""), member->name,
		   value_text_of_elements(parts->analysis, type->target,
					  parts->start + member->offset,
					  (parts->size - member->offset) / element->size));
	return true;
}

/* The keys and values in a node of a BTreeMap, of which only so many are there as `len` says. */
static bool write_counted(const struct parts *parts, const struct data_type *type,
			  const struct type_member *member)
{
	static const char node[] = "alloc::collections::btree::node::LeafNode<";
	const struct data_type *array = type_get(parts->types, member->type);
	const struct type_member *members = type_members(parts->types, type);
	uint16_t count;

	if (array->kind != TYPE_ARRAY || !type->name ||
	    strncmp(type->name, node, sizeof(node) - 1) != 0)
		return false;
	for (size_t i = 0; i < type->member_count; i++) {
		if (!members[i].name || strcmp(members[i].name, "len") != 0 ||
		    !image_read(analysis_image(parts->analysis), parts->start + members[i].offset,
				&count, sizeof(count)) ||
		    count > array->count)
			continue;
		write_part(parts, parts->start + member->offset,
			   type_text(parts->types, member->type, "", ""), member->name,
			   value_text_of_elements(parts->analysis, array->target,
						  parts->start + member->offset, count));
		return true;
	}
	return false;
}

static const char *member_name(const struct parts *parts, const struct type_member *member)
{
	return member->is_base ? type_text(parts->types, member->type, "<", ">") : member->name;
}

static void write_value(const struct parts *parts, type_number number)
{
	const struct data_type *type = type_get(parts->types, number);
	const struct type_member *members;

	if (!is_aggregate(type) || type->member_count == 0) {
		write_part(parts, parts->start, type_text(parts->types, number, "", ""), NULL,
			   value_text_of(parts->analysis, number, parts->start));
		return;
	}
	members = type_members(parts->types, type);
	for (size_t i = 0; i < type->member_count && !report_broken(parts->report); i++) {
		if (i + 1 == type->member_count && write_tail(parts, &members[i]))
			break;
		if (write_counted(parts, type, &members[i]))
			continue;
		write_part(parts, parts->start + members[i].offset,
			   type_text(parts->types, members[i].type, "", ""),
			   member_name(parts, &members[i]),
			   value_text_of_member(parts->analysis, &members[i], parts->start));
	}
}

static void write_array(const struct parts *parts, type_number number)
{
	const struct data_type *type = type_get(parts->types, number);
	const char *name = type_text(parts->types, number, "", "");
	uint64_t count = parts->size / type->size;
	char text[64];

	if (!is_aggregate(type)) {
		write_part(parts, parts->start, type_text(parts->types, number, "", "[]"), NULL,
			   value_text_of_elements(parts->analysis, number, parts->start, count));
		return;
	}
	for (uint64_t i = 0; i < count && i < MOST_ELEMENTS && !report_broken(parts->report); i++) {
		uint64_t address = parts->start + i * type->size;

		snprintf(text, sizeof(text), "[%" PRIu64 "]", i);
		write_part(parts, address, name, text,
			   value_text_of(parts->analysis, number, address));
	}
	if (count > MOST_ELEMENTS) {
		snprintf(text, sizeof(text), "... and %" PRIu64 " more elements",
			 count - MOST_ELEMENTS);
		report_row(parts->report, parts->start + MOST_ELEMENTS * type->size,
			   MOST_ELEMENTS * type->size, name, ABSENT, (const char *)text);
	}
}

/* The elements of a hash table that are there, by place. */
static void write_table(const struct parts *parts, type_number number)
{
	const struct image *image = analysis_image(parts->analysis);
	uint64_t size = type_get(parts->types, number)->size, written = 0;
	const struct memory_range range = { parts->start, parts->start + parts->size };
	struct hash_table hash;
	char text[32];

	if (!hash_table_of(analysis_index(parts->analysis), range, size, &hash))
		return;
	for (uint64_t i = 0; i < hash.count && !report_broken(parts->report); i++) {
		uint64_t address = hash.control - (i + 1) * size;
		uint8_t control;

		if (!image_read(image, hash.control + i, &control, sizeof(control)) ||
		    control & TABLE_EMPTY)
			continue;
		if (written++ == MOST_ELEMENTS) {
			report_row(parts->report, address, address - parts->start, ABSENT, ABSENT,
				   "... and more elements");
			return;
		}
		snprintf(text, sizeof(text), "[%" PRIu64 "]", i);
		write_part(parts, address, type_text(parts->types, number, "", ""), text,
			   value_text_of(parts->analysis, number, address));
	}
}

static struct parts parts_of(struct report *report, const struct analysis *analysis, uint64_t start,
			     uint64_t size)
{
	return (struct parts){ report, analysis, typing_types(analysis_typing(analysis)), start,
			       size };
}

/* Write the members of an allocation. Needs STAGE_TYPES and STAGE_CLASSES. */
static void member_rows_of_allocation(struct report *report, const struct analysis *analysis,
				      allocation_id id, struct typed typed)
{
	const struct allocation_index *index = analysis_index(analysis);
	uint64_t start = allocation_start(index, id), size = allocation_size(index, id);
	struct parts parts = parts_of(report, analysis, start, typed.fit == FIT_TAIL ? size : 0);
	uint64_t covered = type_get(parts.types, typed.type)->size;
	char text[64];

	report_begin_table(report, &table);
	if (typed.fit == FIT_ARRAY || typed.fit == FIT_LIKE_ARRAY) {
		parts.size = size;
		write_array(&parts, typed.type);
	} else if (typed.fit == FIT_TABLE) {
		parts.size = size;
		write_table(&parts, typed.type);
	} else {
		write_value(&parts, typed.type);
	}
	if (typed.fit == FIT_PREFIX && covered < size) {
		snprintf(text, sizeof(text), "... and %" PRIu64 " bytes of no known type",
			 size - covered);
		report_row(report, start + covered, covered, ABSENT, ABSENT, (const char *)text);
	}
	report_end_table(report);
}

/* Write an object whose members have no names: its words by offset, or its text. */
static void member_rows_of_object(struct report *report, const struct analysis *analysis,
				  allocation_id id)
{
	const struct allocation_index *index = analysis_index(analysis);
	struct parts parts = { .report = report,
			       .analysis = analysis,
			       .start = allocation_start(index, id) };
	const unsigned int word = image_word_size(analysis_image(analysis));
	uint64_t size = allocation_size(index, id), text, text_size;
	char name[32];

	report_begin_table(report, &table);
	if (runtimes_text(analysis_runtimes(analysis), id, &text, &text_size)) {
		write_part(&parts, text, NULL, NULL, value_text_of_text(analysis, text, text_size));
		size = 0;
	}
	for (uint64_t offset = 0; offset + word <= size && !report_broken(report); offset += word) {
		if (offset == MOST_ELEMENTS * word) {
			snprintf(name, sizeof(name), "... and %" PRIu64 " more bytes",
				 size - offset);
			report_row(report, parts.start + offset, offset, ABSENT, ABSENT,
				   (const char *)name);
			break;
		}
		snprintf(name, sizeof(name), "+0x%" PRIx64, offset);
		write_part(&parts, parts.start + offset, NULL, name,
			   value_text_of_word(analysis, parts.start + offset));
	}
	report_end_table(report);
}

struct naming {
	struct report *report;
	struct memory_range object;
	uint64_t count;
};

static bool write_named(void *data, const struct runtime_member *member)
{
	struct naming *naming = data;
	const char *content = report_content(naming->report, member->value);
	uint64_t offset = member->place - naming->object.start;
	bool is_inside = offset < naming->object.end - naming->object.start;
	char text[512];

	if (naming->count++ == MOST_ELEMENTS) {
		report_row(naming->report, member->place, ABSENT, ABSENT, ABSENT, "... and more");
		return false;
	}
	if (member->address)
		snprintf(text, sizeof(text), "0x%" PRIx64 " (%s)%s%s", member->address,
			 member->class_name, content ? " " : "", content ? content : "");
	else
		snprintf(text, sizeof(text), "%s", content ? content : member->class_name);
	report_row(naming->report, member->place, VALUE_IF(is_inside, offset), member->class_name,
		   member->name, (const char *)text);
	return !report_broken(naming->report);
}

/* Write an object's members by name or key, see runtimes_have_members(). */
static struct error *member_rows_of_value(struct report *report, const struct analysis *analysis,
					  allocation_id id)
{
	const struct allocation_index *index = analysis_index(analysis);
	uint64_t start = allocation_start(index, id);
	struct naming naming = { report, { start, start + allocation_size(index, id) }, 0 };
	struct error *error;

	report_begin_table(report, &table);
	error = runtimes_visit_members(analysis_runtimes(analysis), id,
				       report_content(report, "") != report_left_out, write_named,
				       &naming);
	report_end_table(report);
	return error;
}

enum members_by members_by(const struct analysis *analysis, allocation_id id)
{
	const struct runtimes *runtimes = analysis_runtimes(analysis);
	uint64_t text, text_size;
	struct typed typed;

	if (runtimes_have_members(runtimes, id))
		return MEMBERS_BY_NAME;
	if (analysis_type_of(analysis, id, &typed) && typed.fit > FIT_PART &&
	    !runtimes_text(runtimes, id, &text, &text_size))
		return MEMBERS_BY_TYPE;
	return runtimes_have_fields(runtimes, id) ? MEMBERS_BY_PLACE : MEMBERS_UNKNOWN;
}

struct error *member_rows(struct report *report, const struct analysis *analysis, allocation_id id,
			  enum members_by by)
{
	struct typed typed;

	if (by == MEMBERS_BY_NAME)
		return member_rows_of_value(report, analysis, id);
	if (by == MEMBERS_BY_TYPE && analysis_type_of(analysis, id, &typed))
		member_rows_of_allocation(report, analysis, id, typed);
	else if (by == MEMBERS_BY_PLACE)
		member_rows_of_object(report, analysis, id);
	return NULL;
}
