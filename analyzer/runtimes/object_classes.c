#include "analyzer/runtimes/object_classes.h"

struct error *object_classes_init(struct object_classes *classes, size_t allocations,
				  struct memory_account *account)
{
	object_classes_release(classes);
	arrays_use(account, &classes->list, &classes->places, &classes->low, &classes->high);
	return array_resize(&classes->low, allocations + 1);
}

void object_classes_release(struct object_classes *classes)
{
	table_release(&classes->places);
	arrays_release(&classes->list, &classes->low, &classes->high);
}

struct error *object_classes_know(struct object_classes *classes, uint64_t number, uint32_t *ret)
{
	*ret = address_map_find(&classes->places, number);
	if (*ret != NOT_IN_MAP)
		return NULL;
	*ret = (uint32_t)classes->list.count;
	TRY(address_map_add(&classes->places, number, *ret));
	return array_append(&classes->list, (struct object_class){ .number = number });
}

struct error *object_classes_set(struct object_classes *classes, allocation_id id, uint32_t place)
{
	if (place + 1 >= LOW_CLASSES && !classes->high.items)
		TRY(array_resize(&classes->high, classes->low.count));
	classes->low.items[id] = (uint16_t)((place + 1) % LOW_CLASSES);
	if (classes->high.items)
		classes->high.items[id] = (uint16_t)((place + 1) / LOW_CLASSES);
	return NULL;
}
