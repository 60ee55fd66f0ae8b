#include "analyzer/runtimes/object_classes.h"

struct error *object_classes_init(struct object_classes *classes, size_t allocations,
				  struct memory_account *account)
{
	object_classes_release(classes);
	arrays_use(account, &classes->list, &classes->places, &classes->names, &classes->low,
		   &classes->high);
	return array_resize(&classes->low, allocations + 1);
}

void object_classes_release(struct object_classes *classes)
{
	tables_release(&classes->places, &classes->names);
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

struct error *object_classes_name(struct object_classes *classes, struct name_pool *texts,
				  const char *name, uint32_t *ret)
{
	const char *kept = name_pool_print(texts, "%s", name);

	TRY_MEMORY(kept);
	*ret = address_map_find(&classes->names, (uintptr_t)kept);
	if (*ret != NOT_IN_MAP)
		return NULL;
	TRY(object_classes_know(classes, classes->list.count + 1, ret));
	classes->list.items[*ret].name = kept;
	classes->list.items[*ret].kind = CLASS_NAMED;
	return address_map_add(&classes->names, (uintptr_t)kept, *ret);
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
