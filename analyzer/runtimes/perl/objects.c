#include "analyzer/runtimes/perl/space.h"

#include <inttypes.h>

enum {
	PACKAGE = 0, /* of bodies from PVMG on */
	NAME = 0,    /* struct xpvhv_aux */
	NAMES = 28,  /* how many, if several */
	KEY_LENGTH = 4,
	KEY_TEXT = 8,
};

static const char *const kinds[PERL_KINDS] = {
	[KIND_UNDEF] = "undef",		[KIND_INTEGER] = "integer",
	[KIND_NUMBER] = "number",	[KIND_STRING] = "string",
	[KIND_REFERENCE] = "reference", [KIND_WEAK_REFERENCE] = "weakref",
	[KIND_INVLIST] = "INVLIST",	[KIND_REGEXP] = "REGEXP",
	[KIND_GLOB] = "GLOB",		[KIND_LVALUE] = "LVALUE",
	[KIND_ARRAY] = "ARRAY",		[KIND_HASH] = "HASH",
	[KIND_STASH] = "stash",		[KIND_CODE] = "CODE",
	[KIND_FORMAT] = "FORMAT",	[KIND_IO] = "IO",
	[KIND_OBJECT] = "OBJECT",
};

void perl_release(struct object_space *space)
{
	struct perl *perl = (struct perl *)space;

	arrays_release(&perl->parts, &perl->links, &perl->found, &perl->live, &perl->interpreters,
		       &perl->left);
	table_release(&perl->weak);
}

allocation_id perl_find_head(const struct perl *perl, uint64_t address)
{
	const struct allocation_index *index = perl->space.index;
	allocation_id id = address ? allocation_find(index, address) : NO_ALLOCATION;

	return id != NO_ALLOCATION && perl->parts.items[id] == PART_HEAD &&
			       allocation_start(index, id) == address
		       ? id
		       : NO_ALLOCATION;
}

allocation_id perl_whole(const struct object_space *space, allocation_id block)
{
	const struct perl *perl = (const struct perl *)space;

	return block < perl->parts.count && perl->parts.items[block] > PART_HEAD
		       ? perl->links.items[block]
		       : NO_ALLOCATION;
}

bool perl_read_key(struct view *view, uint64_t address, char *ret, size_t size)
{
	int32_t length;

	if (!address || !view_read(view, address + KEY_LENGTH, &length, sizeof(length)) ||
	    length < 0)
		return false;
	if ((size_t)length > size - 1)
		length = (int32_t)(size - 1);
	ret[length] = '\0';
	return view_read(view, address + KEY_TEXT, ret, (size_t)length);
}

bool perl_read_package(const struct perl *perl, struct view *view, uint64_t stash, char *ret,
		       size_t size)
{
	struct perl_head head;
	struct perl_hash hash;
	uint64_t name;
	int32_t names;

	return perl_find_head(perl, stash) != NO_ALLOCATION && perl_read_head(view, stash, &head) &&
	       perl_read_hash(perl->arenas, view, &head, &hash) && hash.more &&
	       view_word(view, hash.more + NAME, &name) && name &&
	       view_read(view, hash.more + NAMES, &names, sizeof(names)) &&
	       (names == 0 || view_word(view, name, &name)) && perl_read_key(view, name, ret, size);
}

static enum perl_kind kind_of_scalar(uint32_t flags)
{
	if (flags & PERL_ROK)
		return flags & PERL_WEAK ? KIND_WEAK_REFERENCE : KIND_REFERENCE;
	if (flags & PERL_POK)
		return KIND_STRING;
	if (flags & PERL_NOK)
		return KIND_NUMBER;
	return flags & PERL_IOK ? KIND_INTEGER : KIND_UNDEF;
}

static enum perl_kind find_kind(const struct perl *perl, struct view *view, uint64_t address,
				const struct perl_head *head)
{
	char name[PERL_MOST_NAME];

	switch (perl_type(head)) {
	case PERL_INVLIST:
		return KIND_INVLIST;
	case PERL_REGEXP:
		return KIND_REGEXP;
	case PERL_PVGV:
	case PERL_PVLV:
		if (head->flags & PERL_GLOB)
			return KIND_GLOB;
		return perl_type(head) == PERL_PVLV ? KIND_LVALUE : kind_of_scalar(head->flags);
	case PERL_PVAV:
		return KIND_ARRAY;
	case PERL_PVHV:
		return perl_read_package(perl, view, address, name, sizeof(name)) ? KIND_STASH
										  : KIND_HASH;
	case PERL_PVCV:
		return KIND_CODE;
	case PERL_PVFM:
		return KIND_FORMAT;
	case PERL_PVIO:
		return KIND_IO;
	case PERL_PVOBJ:
		return KIND_OBJECT;
	default:
		return kind_of_scalar(head->flags);
	}
}

/* The package that it is blessed into, or its kind. */
static uint64_t find_class(const struct perl *perl, struct view *view, uint64_t address,
			   const struct perl_head *head)
{
	uint64_t package;

	if ((head->flags & PERL_BLESSED) && perl_type(head) >= PERL_PVMG &&
	    view_word(view, head->body + PACKAGE, &package) &&
	    perl_find_head(perl, package) != NO_ALLOCATION)
		return package;
	return find_kind(perl, view, address, head);
}

static void find_heads(struct perl *perl)
{
	const struct allocation_index *index = perl->space.index;

	array_for_each(arena, &perl->arenas->list) {
		if (arena->kind != PERL_FREE)
			continue;
		for (uint32_t i = 1; i < arena->size / arena->slot; i++) {
			uint64_t start = arena->address + (uint64_t)i * arena->slot;
			allocation_id id = perl_bit(arena->claimed, i)
						   ? allocation_find(index, start)
						   : NO_ALLOCATION;

			/* Not if damage made it overlap another. */
			if (id != NO_ALLOCATION && bitmap_get(allocation_used(index), id) &&
			    allocation_start(index, id) == start &&
			    allocation_size(index, id) == arena->slot)
				perl->parts.items[id] = PART_HEAD;
		}
	}
}

static struct error *find_classes(struct perl *perl)
{
	struct object_classes *classes = &perl->space.classes;
	struct view view = { perl->space.image };
	struct perl_head head;
	size_t hint = 0;

	for (size_t i = 0; i < perl->parts.count; i++) {
		uint64_t start;
		uint32_t class;

		if (perl->parts.items[i] != PART_HEAD)
			continue;
		start = allocation_range_near(perl->space.index, (allocation_id)i, &hint).start;
		if (!perl_read_head(&view, start, &head))
			continue;
		TRY(object_classes_know(classes, find_class(perl, &view, start, &head), &class));
		TRY(object_classes_set(classes, (allocation_id)i, class));
	}
	return NULL;
}

struct error *perl_find_objects(struct object_space *space, struct debug *debug)
{
	struct perl *perl = (struct perl *)space;
	const struct runtime_context *context = &perl->space.context;
	size_t count = allocation_count(context->index);
	const struct heap *heap;

	TRY(heaps_find(context->heaps, &allocator_perl, &heap));
	if (!heap)
		return NULL;
	perl->arenas = perl_heap_arenas(heap);
	arrays_use(context->account, &perl->parts, &perl->links, &perl->found, &perl->live,
		   &perl->weak, &perl->interpreters, &perl->left);
	TRY(array_resize(&perl->parts, count));
	TRY(array_resize(&perl->links, count));
	if (count > 0)
		memset(perl->links.items, 0xff, count * sizeof(*perl->links.items));
	TRY(object_classes_init(&perl->space.classes, count, context->account));
	find_heads(perl);
	TRY(find_classes(perl));
	TRY(perl_find_interpreters(perl));
	perl_learn_names(perl);
	TRY(perl_find_parts(perl));
	array_release(&perl->found);
	perl->space.has_objects = perl->space.classes.list.count > 0;
	return NULL;
}

const char *perl_class_name(struct object_space *space, uint64_t number,
			    enum class_name_kind *ret_kind)
{
	struct perl *perl = (struct perl *)space;
	struct view view = { perl->space.image };
	char name[PERL_MOST_NAME];

	*ret_kind = CLASS_NAMED;
	if (number < PERL_KINDS)
		return kinds[number];
	if (perl_read_package(perl, &view, number, name, sizeof(name)))
		return name_pool_print(&perl->space.texts, "%s", name);
	return name_pool_print(&perl->space.texts, "package@0x%" PRIx64, number);
}
