#include "analyzer/types/member_path.h"

#include <inttypes.h>

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
