/*
 * Which allocations are objects of a language, and of what classes: 2 bytes an allocation, as few
 * programs have more than 65,504 classes.
 *
 * A class has a number that means something to the language, such as an address, and a place in the
 * list of all. The last values are marks, which a language gives to allocations that are no
 * objects.
 */
#pragma once

#include "analyzer/base/address_map.h"
#include "analyzer/base/array.h"
#include "analyzer/heap/index.h"
#include "analyzer/program/debug/names.h"

/* How much the name of a class says. */
enum class_name_kind {
	CLASS_NUMBERED, /* it is made of the class's number alone */
	CLASS_PLACED,	/* where the class is written */
	CLASS_NAMED,	/* the class's own name */
};

struct object_class {
	uint64_t number;
	const char *name; /* NULL: not asked for yet */
	enum class_name_kind kind;
};

struct object_classes {
	ARRAY(struct object_class) list;
	struct address_map places; /* by number */
	struct address_map names;  /* by the address of a name that object_classes_name() kept */
	ARRAY(uint16_t) low;	   /* by allocation: place + 1, or from LOW_CLASSES on, marks */
	ARRAY(uint16_t) high;	   /* what to add in multiples of LOW_CLASSES; none if all are 0 */
};

enum { LOW_CLASSES = UINT16_MAX - 31 };
#define OBJECT_MARKS (UINT32_MAX - 31)

/* Begin anew; no allocation is an object yet. */
struct error *object_classes_init(struct object_classes *classes, size_t allocations,
				  struct memory_account *account);
void object_classes_release(struct object_classes *classes);

/* The place of the class; one that is new is added. */
struct error *object_classes_know(struct object_classes *classes, uint64_t number, uint32_t *ret);

/*
 * The place of the class of that name, for languages whose classes have no other number: they
 * have their place + 1. texts keeps the name, once.
 */
struct error *object_classes_name(struct object_classes *classes, struct name_pool *texts,
				  const char *name, uint32_t *ret);

/* Make the allocation an object of the class at that place. */
struct error *object_classes_set(struct object_classes *classes, allocation_id id, uint32_t place);

static inline void object_classes_mark(struct object_classes *classes, allocation_id id,
				       uint32_t mark)
{
	classes->low.items[id] = (uint16_t)(LOW_CLASSES + (mark - OBJECT_MARKS));
}

/* The place of the allocation's class, plus 1, or its mark; 0: it has neither. */
static inline uint32_t object_classes_get(const struct object_classes *classes, allocation_id id)
{
	uint32_t low = classes->low.items[id];

	if (low >= LOW_CLASSES)
		return OBJECT_MARKS + (low - LOW_CLASSES);
	return classes->high.items ? low + classes->high.items[id] * LOW_CLASSES : low;
}

/* The allocation's class, or NULL. */
static inline const struct object_class *object_classes_of(const struct object_classes *classes,
							   allocation_id id)
{
	uint32_t place = object_classes_get(classes, id);

	return place && place < OBJECT_MARKS ? &classes->list.items[place - 1] : NULL;
}
