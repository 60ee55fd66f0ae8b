#include "analyzer/types/member_path.h"

#include <inttypes.h>
#include <string.h>

/* Types within types; nothing that people write is as deep. */
enum { DEEPEST = 32 };

static bool is_aggregate(const struct data_type *type)
{
	return type->kind == TYPE_STRUCTURE || type->kind == TYPE_UNION;
}

/* The first member that covers the offset. An empty one shares its place with what is meant. */
static const struct type_member *covering(const struct type_table *table,
					  const struct data_type *type, uint64_t offset)
{
	const struct type_member *members = type_members(table, type);

	for (size_t i = 0; i < type->member_count; i++) {
		const struct data_type *member = type_get(table, members[i].type);

		/* An array without bounds reaches as far as it needs to. */
		if (members[i].offset <= offset && !members[i].bit_size &&
		    (offset - members[i].offset < member->size ||
		     (member->kind == TYPE_ARRAY && member->count <= 1 &&
		      i + 1 == type->member_count)))
			return &members[i];
	}
	return NULL;
}

type_number member_path_print(const struct type_table *table, type_number number, uint64_t offset,
			      FILE *out)
{
	for (size_t depth = 0; depth < DEEPEST; depth++) {
		const struct data_type *type = type_get(table, number);

		if (is_aggregate(type)) {
			const struct type_member *member = covering(table, type, offset);

			if (!member)
				break;
			if (member->name)
				fprintf(out, ".%s", member->name);
			offset -= member->offset;
			number = member->type;
		} else if (type->kind == TYPE_ARRAY && type_get(table, type->target)->size) {
			uint64_t size = type_get(table, type->target)->size;

			fprintf(out, "[%" PRIu64 "]", offset / size);
			offset %= size;
			number = type->target;
		} else {
			break;
		}
	}
	if (offset)
		fprintf(out, "+0x%" PRIx64, offset);
	return number;
}

static const struct type_member *find_within(const struct type_table *table, type_number number,
					     const char *name, uint64_t start, size_t depth,
					     uint64_t *ret_offset)
{
	const struct data_type *type = type_get(table, number);
	const struct type_member *members, *found;

	if (depth == DEEPEST || !is_aggregate(type))
		return NULL;
	members = type_members(table, type);
	for (size_t i = 0; i < type->member_count; i++) {
		uint64_t offset = start + members[i].offset;

		if (members[i].name && strcmp(members[i].name, name) == 0) {
			*ret_offset = offset;
			return &members[i];
		}
		if (members[i].name)
			continue;
		found = find_within(table, members[i].type, name, offset, depth + 1, ret_offset);
		if (found)
			return found;
	}
	return NULL;
}

const struct type_member *member_find(const struct type_table *table, type_number type,
				      const char *name, uint64_t *ret_offset)
{
	return find_within(table, type, name, 0, 0, ret_offset);
}
