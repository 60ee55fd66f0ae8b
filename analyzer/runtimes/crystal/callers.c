#include "analyzer/runtimes/crystal/callers.h"

#include "analyzer/base/address_map.h"
#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/program/debug/names.h"

#include <string.h>

/* A place in the code that leads to a constructor. */
struct call {
	uint64_t function, place;
};

struct crystal_callers {
	const struct crystal_types *types;
	const struct image *image;
	struct debug *debug;
	struct address_map constructors; /* by where they start */
	ARRAY(struct call) calls;	 /* by function */
	struct name_pool names;
};

/* "Order::new()", "new<Int32>:Order" */
static bool is_constructor(const char *function)
{
	static const char call[] = "()", method[] = "::new";
	size_t length = strlen(function);

	if (strncmp(function, "new", 3) == 0 && (!function[3] || strchr("(<:", function[3])))
		return true;
	if (length >= 2 && strcmp(function + length - 2, call) == 0)
		length -= 2;
	return length >= sizeof(method) - 1 &&
	       strncmp(function + length - (sizeof(method) - 1), method, sizeof(method) - 1) == 0;
}

static struct error *find_constructors(struct crystal_callers *callers)
{
	const struct memory_range *functions;
	size_t count = crystal_types_functions(callers->types, &functions);

	for (size_t i = 0; i < count; i++) {
		struct symbol symbol;

		if (debug_symbol(callers->debug, functions[i].start, &symbol) &&
		    symbol.start == functions[i].start && is_constructor(symbol.name) &&
		    address_map_find(&callers->constructors, symbol.start) == NOT_IN_MAP)
			TRY(address_map_add(&callers->constructors, symbol.start, 1));
	}
	return NULL;
}

/*
 * True if a relative address follows: that of call, jmp or jcc, or of lea of an address in the
 * program.
 */
static bool takes_distance(const uint8_t *before, uint64_t count)
{
	if (count >= 1 && (before[-1] == 0xe8 || before[-1] == 0xe9))
		return true;
	return count >= 2 && ((before[-2] == 0x0f && (before[-1] & 0xf0) == 0x80) ||
			      (before[-2] == 0x8d && (before[-1] & 0xc7) == 0x05));
}

/* The distance is from behind it, where the instruction ends. */
static struct error *find_calls_in(struct crystal_callers *callers,
				   const struct memory_range *function,
				   const struct memory_range *bounds)
{
	uint64_t available, size = function->end - function->start;
	const uint8_t *code = image_bytes(callers->image, function->start, &available);
	int32_t distance;

	if (!code)
		return NULL;
	size = MIN(size, available);
	for (uint64_t i = 0; i + sizeof(distance) <= size; i++) {
		uint64_t target;

		if (!takes_distance(code + i, i))
			continue;
		memcpy(&distance, code + i, sizeof(distance));
		target = function->start + i + sizeof(distance) + (uint64_t)(int64_t)distance;
		if (target >= bounds->start && target <= bounds->end &&
		    address_map_find(&callers->constructors, target) != NOT_IN_MAP)
			TRY(array_append(&callers->calls,
					 (struct call){ target, function->start + i }));
	}
	return NULL;
}

DEFINE_COMPARE(compare_calls, struct call, ASCENDING(function), ASCENDING(place))

static struct error *find_calls(struct crystal_callers *callers)
{
	struct memory_range bounds = { UINT64_MAX, 0 };
	const struct memory_range *functions;
	size_t count = crystal_types_functions(callers->types, &functions);

	array_for_each(constructor, &callers->constructors) {
		if (constructor->address < bounds.start)
			bounds.start = constructor->address;
		if (constructor->address > bounds.end)
			bounds.end = constructor->address;
	}
	for (size_t i = 0; i < count; i++)
		TRY(find_calls_in(callers, &functions[i], &bounds));
	array_sort(&callers->calls, compare_calls);
	return NULL;
}

struct error *crystal_callers_create(const struct crystal_types *types, const struct image *image,
				     struct debug *debug, struct memory_account *account,
				     struct crystal_callers **ret)
{
	_cleanup_(crystal_callers_destroy) struct crystal_callers *callers =
		calloc(1, sizeof(*callers));

	TRY_MEMORY(callers);
	callers->types = types;
	callers->image = image;
	callers->debug = debug;
	arrays_use(account, &callers->constructors, &callers->calls);
	TRY(find_constructors(callers));
	TRY(find_calls(callers));
	*ret = take(callers);
	return NULL;
}

void crystal_callers_destroy(struct crystal_callers *callers)
{
	table_release(&callers->constructors);
	array_release(&callers->calls);
	name_pool_deinit(&callers->names);
	free(callers);
}

enum { MOST_PLACES = 64 };

/* The facts found about a class. */
struct making {
	struct crystal_callers *callers;
	struct inlined makers[MOST_PLACES];
	size_t maker_count;
	uint64_t constructors[MOST_PLACES]; /* whose callers are to be asked for, or were */
	size_t constructor_count;
};

static int compare_sources(const struct inlined *left, const struct inlined *right)
{
	return strcmp(left->source ? left->source : "", right->source ? right->source : "");
}

DEFINE_COMPARE(compare_makers, struct inlined, ALPHABETICAL(function), AS_BY(compare_sources))

static bool add_maker(struct making *making, struct inlined maker)
{
	for (size_t i = 0; i < making->maker_count; i++)
		if (compare_makers(&making->makers[i], &maker) == 0)
			return true;
	if (making->maker_count == MOST_PLACES)
		return false;
	making->makers[making->maker_count++] = maker;
	return true;
}

static bool add_constructor(struct making *making, uint64_t function)
{
	for (size_t i = 0; i < making->constructor_count; i++)
		if (making->constructors[i] == function)
			return true;
	if (making->constructor_count == MOST_PLACES)
		return false;
	making->constructors[making->constructor_count++] = function;
	return true;
}

/* The start of the function around place; 0: there is none. */
static uint64_t function_at(const struct crystal_callers *callers, uint64_t place)
{
	const struct memory_range *functions;
	size_t count = crystal_types_functions(callers->types, &functions);
	const struct memory_range *function = LIST_HOLDER(functions, count, start, end, place);

	return function ? function->start : 0;
}

/* Add the function that the place is in, or the constructor. False: it has no name. */
static bool add_place(struct making *making, uint64_t place)
{
	struct crystal_callers *callers = making->callers;
	uint64_t function = function_at(callers, place);
	struct inlined maker;

	if (debug_find_around(callers->debug, place, is_constructor, &maker))
		return add_maker(making, maker);
	return function && address_map_find(&callers->constructors, function) != NOT_IN_MAP &&
	       add_constructor(making, function);
}

/* Add who calls the constructor; false: not all have names. Nobody may. */
static bool add_callers(struct making *making, uint64_t constructor)
{
	const struct call *calls = making->callers->calls.items;
	size_t count = making->callers->calls.count;

	for (size_t i = LIST_ABOVE(calls, count, function, constructor);
	     i > 0 && calls[i - 1].function == constructor; i--)
		if (!add_place(making, calls[i - 1].place))
			return false;
	return true;
}

/* Add the places of that type, and all that call the constructors that they are in. */
static bool add_sites(struct making *making, uint32_t type)
{
	const struct crystal_site *sites;
	size_t count = crystal_types_sites(making->callers->types, &sites);

	for (size_t i = LIST_ABOVE(sites, count, type, type); i > 0 && sites[i - 1].type == type;
	     i--)
		if (!add_place(making, sites[i - 1].address))
			return false;
	for (size_t i = 0; i < making->constructor_count; i++)
		if (!add_callers(making, making->constructors[i]))
			return false;
	return true;
}

/* If there are too many places, keep one for each function. */
static void drop_places(struct making *making)
{
	size_t count = making->maker_count;

	if (count <= MOST_OBJECT_MAKERS)
		return;
	making->maker_count = 0;
	for (size_t i = 0; i < count; i++)
		add_maker(making, (struct inlined){ making->makers[i].function, NULL });
}

/* "make_orders() at shop.cr:12" */
static const char *name_maker(struct crystal_callers *callers, const struct inlined *maker)
{
	size_t length = strlen(maker->function);
	const char *call = length && maker->function[length - 1] == ')' ? "" : "()";
	const char *slash = maker->source ? strrchr(maker->source, '/') : NULL;
	const char *source = slash ? slash + 1 : maker->source;

	return name_pool_print(&callers->names, "%s%s%s%s", maker->function, call,
			       source ? " at " : "", source ? source : "");
}

size_t crystal_callers_find(struct crystal_callers *callers, uint32_t type,
			    const char *ret[static MOST_OBJECT_MAKERS])
{
	struct making making = { .callers = callers };

	/* Functions that may allocate any object may allocate this class. */
	if (!add_sites(&making, type) || making.maker_count == 0 || !add_sites(&making, 0))
		return 0;
	drop_places(&making);
	if (making.maker_count > MOST_OBJECT_MAKERS)
		return 0;
	SORT(making.makers, making.maker_count, compare_makers);
	for (size_t i = 0; i < making.maker_count; i++) {
		ret[i] = name_maker(callers, &making.makers[i]);
		if (!ret[i])
			return 0;
	}
	return making.maker_count;
}
