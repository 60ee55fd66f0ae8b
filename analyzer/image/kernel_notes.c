#include "analyzer/image/kernel_notes.h"

#include "analyzer/base/list.h"
#include "analyzer/base/macros.h"

#include <string.h>

enum { HEAD = sizeof(uint64_t) };

size_t image_held_count(const struct image *image)
{
	struct own_note note = image_note(image, NOTE_HELD);

	return note.size < HEAD ? 0 : (note.size - HEAD) / sizeof(struct held_value);
}

struct held_value image_held(const struct image *image, size_t number)
{
	struct own_note note = image_note(image, NOTE_HELD);
	struct held_value value;

	memcpy(&value, note.bytes + HEAD + number * sizeof(value), sizeof(value));
	return value;
}

bool image_held_sought(const struct image *image, enum held_kind kind)
{
	struct own_note note = image_note(image, NOTE_HELD);
	uint64_t sought = 0;

	if (note.size >= HEAD)
		memcpy(&sought, note.bytes, HEAD);
	return sought >> kind & 1;
}

enum { HEAD_SIZE = 128 };

/* "7f00-7f01 rw-s 00000000 ...": false if it is no such line. */
static bool parse_head(const char *line, size_t length, struct smaps_area *ret)
{
	char head[HEAD_SIZE], *next;

	if (length >= sizeof(head))
		length = sizeof(head) - 1;
	memcpy(head, line, length);
	head[length] = '\0';
	*ret = (struct smaps_area){ .start = strtoull(head, &next, 16) };
	if (*next != '-')
		return false;
	ret->end = strtoull(next + 1, &next, 16);
	next += *next == ' ';
	ret->shared = strnlen(next, 4) == 4 && next[3] == 's';
	return ret->start < ret->end;
}

/* "Rss:       12 kB" */
static void parse_detail(const char *line, size_t length, struct smaps_area *area)
{
	const struct {
		const char *name;
		uint64_t *bytes;
	} fields[] = {
		{ "Rss:", &area->resident },
		{ "Locked:", &area->locked },
		{ "AnonHugePages:", &area->huge },
		{ "LazyFree:", &area->lazily_free },
	};
	char detail[HEAD_SIZE];

	if (length >= sizeof(detail))
		return;
	memcpy(detail, line, length);
	detail[length] = '\0';
	for (size_t i = 0; i < COUNT_OF(fields); i++) {
		size_t name = strlen(fields[i].name);

		if (strncmp(detail, fields[i].name, name) == 0)
			*fields[i].bytes = strtoull(detail + name, NULL, 10) * 1024;
	}
}

static struct error *add_area(struct smaps *smaps, struct smaps_area area)
{
	return LIST_APPEND(smaps->areas, smaps->count, area);
}

/* Areas that are not in order, as no kernel has them, are left out. */
struct error *smaps_read(const struct image *image, struct smaps *ret)
{
	_cleanup_(smaps_deinit) struct smaps smaps = { 0 };
	struct own_note note = image_note(image, NOTE_SMAPS);
	const char *text = (const char *)note.bytes;
	size_t size = note.size;

	while (text && size > 0) {
		const char *end = memchr(text, '\n', size);
		size_t length = end ? (size_t)(end - text) : size;
		struct smaps_area *last = smaps.count ? &smaps.areas[smaps.count - 1] : NULL;
		struct smaps_area area;

		if (length > 0 && text[0] >= 'A' && text[0] <= 'Z') {
			if (last)
				parse_detail(text, length, last);
		} else if (parse_head(text, length, &area) && (!last || area.start >= last->end)) {
			TRY(add_area(&smaps, area));
		}
		length += end != NULL;
		text += length;
		size -= length;
	}
	*ret = smaps;
	smaps = (struct smaps){ 0 };
	return NULL;
}

void smaps_deinit(struct smaps *smaps)
{
	free(smaps->areas);
}

const struct smaps_area *smaps_find(const struct smaps *smaps, uint64_t address)
{
	size_t low = LIST_ABOVE(smaps->areas, smaps->count, end, address);

	return low < smaps->count && smaps->areas[low].start <= address ? &smaps->areas[low] : NULL;
}
