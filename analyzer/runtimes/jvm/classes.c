/*
 * Finds classes: in the archive that the virtual machine maps (CDS), and in metaspace.
 *
 * From JDK 16 on, metaspace is reserved in pieces of 4 MiB or more at multiples of that (root
 *chunks of src/hotspot/share/memory/metaspace). So all of a piece is metaspace if anything in it
 *is. What has pointers of 32 bits to it (classes), has a memory of its own.
 *
 *	ClassLoaderDataGraph._head -> ClassLoaderData | klasses | next |
 *					Klass | next | constants | methods |
 */
#include "analyzer/base/budget.h"
#include "analyzer/base/macros.h"
#include "analyzer/base/sort.h"
#include "analyzer/heap/cycle.h"
#include "analyzer/runtimes/jvm/space.h"

enum {
	PIECE = 4 << 20,
	MOST_PIECES = 1 << 12, /* looked at one by one */
	MOST_CLASSES = 1 << 18,
	FIRST_VERSION = 16,
};

/* A piece of metaspace. */
struct piece {
	uint64_t start;
	bool has_classes, has_others;
};

struct search {
	ARRAY(struct piece) pieces;
	const struct jvm_tables *tables;
	struct memory_range archive;
	size_t last; /* the piece found last */
	struct budget steps;
	uint64_t loader_next, loader_classes, class_next, class_kind, constants, methods;
};

static bool find_fields(struct search *search)
{
	const struct jvm_tables *tables = search->tables;

	return jvm_offset(tables, "ClassLoaderData", "_next", &search->loader_next) &&
	       jvm_offset(tables, "ClassLoaderData", "_klasses", &search->loader_classes) &&
	       jvm_offset(tables, "Klass", "_next_link", &search->class_next) &&
	       jvm_offset(tables, "Klass", "_layout_helper", &search->class_kind) &&
	       jvm_offset(tables, "InstanceKlass", "_constants", &search->constants) &&
	       jvm_offset(tables, "InstanceKlass", "_methods", &search->methods);
}

/* The piece that address is in, added if it is new; NULL in *ret: it is none. */
static struct error *find_piece(struct search *search, uint64_t address, struct piece **ret)
{
	uint64_t start = address & ~(uint64_t)(PIECE - 1);
	const struct memory_range *archive = &search->archive;

	*ret = NULL;
	if ((start < archive->end && start + PIECE > archive->start) ||
	    !image_find(search->tables->image, address))
		return NULL;
	for (size_t i = 0; i < search->pieces.count; i++) {
		size_t number = (search->last + i) % search->pieces.count;

		if (search->pieces.items[number].start != start)
			continue;
		search->last = number;
		*ret = &search->pieces.items[number];
		return NULL;
	}
	if (search->pieces.count == MOST_PIECES)
		return NULL;
	search->last = search->pieces.count;
	TRY(array_append(&search->pieces, (struct piece){ .start = start }));
	*ret = &search->pieces.items[search->last];
	return NULL;
}

static struct error *add_part(struct search *search, uint64_t class, uint64_t offset)
{
	struct piece *piece = NULL;
	uint64_t address;

	if (image_read_u64(search->tables->image, class + offset, &address))
		TRY(find_piece(search, address, &piece));
	if (piece)
		piece->has_others = true;
	return NULL;
}

static struct error *add_class(struct search *search, uint64_t class)
{
	struct piece *piece;
	uint32_t kind;

	TRY(find_piece(search, class, &piece));
	if (piece)
		piece->has_classes = true;
	/* Positive: its objects are instances, so it has members. */
	if (!image_read_u32(search->tables->image, class + search->class_kind, &kind) ||
	    (int32_t)kind <= 0)
		return NULL;
	TRY(add_part(search, class, search->constants));
	return add_part(search, class, search->methods);
}

static struct error *find_pieces(struct search *search)
{
	const struct image *image = search->tables->image;
	struct cycle_search loaders = { .power = 1 };
	uint64_t loader, class;

	if (!jvm_static(search->tables, "ClassLoaderDataGraph", "_head", &loader))
		return NULL;
	while (loader && !cycle_closes(&loaders, loader) && budget_take(&search->steps) &&
	       image_read_u64(image, loader + search->loader_classes, &class)) {
		struct cycle_search classes = { .power = 1 };

		/* A damaged list that returns to itself takes no steps from other loaders. */
		while (class && !cycle_closes(&classes, class) && budget_take(&search->steps)) {
			TRY(add_class(search, class));
			if (!image_read_u64(image, class + search->class_next, &class))
				break;
		}
		if (!image_read_u64(image, loader + search->loader_next, &loader))
			break;
	}
	return NULL;
}

DEFINE_COMPARE(compare_pieces, struct piece, ASCENDING(start))

static struct error *add_pieces(struct jvm *jvm, struct search *search)
{
	bool mixed = false;

	array_sort(&search->pieces, compare_pieces);
	array_for_each(piece, &search->pieces)
		mixed |= piece->has_classes && piece->has_others;
	array_for_each(piece, &search->pieces)
		TRY(jvm_add(jvm, piece->start, piece->start + PIECE,
			    piece->has_others || mixed ? "Java's metaspace"
						       : "Java's compressed class space"));
	return NULL;
}

struct error *jvm_find_classes(struct jvm *jvm)
{
	_cleanup_(array_release) struct search search = { .tables = &jvm->tables,
							  .steps = { MOST_CLASSES } };
	uint64_t version;

	if (!jvm_static(search.tables, "MetaspaceObj", "_shared_metaspace_base",
			&search.archive.start) ||
	    !jvm_static(search.tables, "MetaspaceObj", "_shared_metaspace_top",
			&search.archive.end) ||
	    search.archive.start > search.archive.end)
		return NULL;
	TRY(jvm_add(jvm, search.archive.start, search.archive.end, "Java's archive of classes"));
	if (!jvm_static(search.tables, "Abstract_VM_Version", "_vm_major_version", &version) ||
	    (uint32_t)version < FIRST_VERSION || !find_fields(&search))
		return NULL;
	search.pieces.memory.account = jvm->space.account;
	TRY(find_pieces(&search));
	return add_pieces(jvm, &search);
}
