#include "allocators/v8/v8.h"
#include "analyzer/classify/classes.h"

#include "tests/allocators/glibc/process.h"

/*
 * Node.js 18, with one chunk of V8's heap: maps, the function Session() with its name, an object
 * that it made, and one of a map that was derived from that object's.
 */
enum {
	TEXT = 8, /* types; those of JavaScript are above all others */
	ARRAY = 180,
	FREE = 190,
	SHARED = 200,
	MAP = 250,
	FUNCTION = V8_TYPES + 10,
	OBJECT = V8_TYPES + 20,
	MAP_SIZE = 80,
	CONSTRUCTOR = 32, /* of a map */
	IS_OF_BASE = 1,
	DATA_SIZE_OF_NODE = 4 * PAGE,
};

static const uint64_t NODE = 0x7d0000000000, VALUES = NODE + PAGE, EXPORTS = VALUES + 0x400,
		      CHUNK = 0x555540000000, START = CHUNK + 0x100,
		      END = CHUNK + V8_CHUNK_ALIGNMENT;

/* V8 states these facts to debuggers. Types that no object of the test has are there, too. */
static const struct {
	const char *name;
	uint64_t value;
} facts[] = {
	{ "node_module_register", 0 },
	{ "v8dbg_type_Map__MAP_TYPE", MAP },
	{ "v8dbg_type_JSFunction__JS_FUNCTION_TYPE", FUNCTION },
	{ "v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", SHARED },
	{ "v8dbg_FirstNonstringType", 128 },
	{ "v8dbg_type_HeapNumber__HEAP_NUMBER_TYPE", 130 },
	{ "v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE", 131 },
	{ "v8dbg_FirstContextType", 140 },
	{ "v8dbg_LastContextType", 140 },
	{ "v8dbg_StringRepresentationMask", 7 },
	{ "v8dbg_SeqStringTag", 0 },
	{ "v8dbg_ConsStringTag", 1 },
	{ "v8dbg_SlicedStringTag", 3 },
	{ "v8dbg_ThinStringTag", 5 },
	{ "v8dbg_StringEncodingMask", 8 },
	{ "v8dbg_OneByteStringTag", 8 },
	{ "v8dbg_class_String__length__int32_t", 12 },
	{ "v8dbg_class_SeqOneByteString__chars__char", 16 },
	{ "v8dbg_class_BytecodeArray__data__uintptr_t", 40 },
	{ "v8dbg_class_JSFunction__shared__SharedFunctionInfo", 24 },
	{ "v8dbg_class_JSFunction__context__Context", 32 },
	{ "v8dbg_bit_field3_number_of_own_descriptors_shift", 10 },
	{ "v8dbg_bit_field3_number_of_own_descriptors_mask", 0x3ff << 10 },
	{ "v8dbg_bit_field3_is_dictionary_map_shift", 21 },
	{ "v8dbg_prop_location_mask", 2 },
	{ "v8dbg_prop_index_shift", 19 },
	{ "v8dbg_prop_index_mask", 0x3ff << 19 },
	{ "v8dbg_namedictionary_prefix_start_index", 3 },
	{ "v8dbg_namedictionaryshape_prefix_size", 2 },
	{ "v8dbg_type_JSGlobalObject__JS_GLOBAL_OBJECT_TYPE", 150 },
	{ "v8dbg_type_PropertyCell__PROPERTY_CELL_TYPE", 151 },
	{ "v8dbg_type_Script__SCRIPT_TYPE", 152 },
	{ "v8dbg_class_Script__name__Object", 16 },
	{ "v8dbg_type_JSMap__JS_MAP_TYPE", V8_TYPES + 1 },
	{ "v8dbg_type_JSSet__JS_SET_TYPE", V8_TYPES + 2 },
	{ "v8dbg_type_JSTypedArray__JS_TYPED_ARRAY_TYPE", V8_TYPES + 3 },
	{ "v8dbg_type_JSArrayBuffer__JS_ARRAY_BUFFER_TYPE", V8_TYPES + 4 },
	{ "v8dbg_elements_dictionary_elements", 12 },
	{ "v8dbg_scopeinfo_idx_first_vars", 3 },
	{ "v8dbg_class_Map__constructor_or_back_pointer__Object", CONSTRUCTOR },
	{ "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Object", 16 },
	{ "v8dbg_class_SharedFunctionInfo__script_or_debug_info__HeapObject", 32 },
	{ "v8dbg_class_Map__instance_type__uint16_t", 12 },
	{ "v8dbg_TaggedSize", V8_WORD },
	{ "v8dbg_type_FreeSpace__FREE_SPACE_TYPE", FREE },
	{ "v8dbg_type_FixedArray__FIXED_ARRAY_TYPE", ARRAY },
	{ "v8dbg_type_ByteArray__BYTE_ARRAY_TYPE", ARRAY + 1 },
	{ "v8dbg_type_WeakFixedArray__WEAK_FIXED_ARRAY_TYPE", 160 },
	{ "v8dbg_type_EmbedderDataArray__EMBEDDER_DATA_ARRAY_TYPE", 165 },
};

struct node_process {
	struct process process;
	uint64_t next, meta;
	uint64_t map, derived;	       /* of the objects: */
	uint64_t session, other, list; /* the last is an array */
};

static uint64_t tagged(uint64_t address)
{
	return address + V8_STRONG;
}

static uint64_t add(struct node_process *node, uint64_t map, uint64_t size)
{
	uint64_t start = node->next;

	core_set(&node->process.core, start, tagged(map));
	node->next += size;
	return start;
}

/* A map of objects of so many bytes; 0: these say it. */
static uint64_t add_map(struct node_process *node, uint64_t type, uint64_t size,
			uint64_t constructor)
{
	uint64_t map = add(node, node->meta ? node->meta : node->next, MAP_SIZE);

	core_set(&node->process.core, map + 8,
		 size / V8_WORD | type << 32 | (uint64_t)IS_OF_BASE << 56);
	core_set(&node->process.core, map + CONSTRUCTOR, tagged(constructor));
	return map;
}

static uint64_t add_function(struct node_process *node, const char *name)
{
	struct core *core = &node->process.core;
	uint64_t text_map = add_map(node, TEXT, 0, 0), shared_map = add_map(node, SHARED, 48, 0);
	uint64_t function_map = add_map(node, FUNCTION, 48, 0), text, shared, function;

	text = add(node, text_map, 16 + ((strlen(name) + 7) & ~UINT64_C(7)));
	core_set(core, text + 8, (uint64_t)strlen(name) << 32);
	memcpy(core_at(core, text + 16, strlen(name)), name, strlen(name));
	shared = add(node, shared_map, 48);
	core_set(core, shared + 16, tagged(text));
	function = add(node, function_map, 48);
	core_set(core, function + 24, tagged(shared));
	return function;
}

static void export_facts(struct core *core)
{
	struct core_symbol symbols[COUNT_OF(facts)];

	core_add_module(core, NODE, DATA_SIZE_OF_NODE, "/opt/node-18/bin/node");
	for (size_t i = 0; i < COUNT_OF(facts); i++) {
		symbols[i] = (struct core_symbol){ facts[i].name, VALUES + 8 * i };
		core_set(core, VALUES + 8 * i, facts[i].value);
	}
	core_export(core, NODE, EXPORTS, symbols, COUNT_OF(symbols));
}

static void node_init(struct node_process *node)
{
	struct core *core = &node->process.core;
	const uint64_t head[] = { V8_CHUNK_ALIGNMENT, 0, HEAP, START, END, PAGE };
	uint64_t array_map;

	*node = (struct node_process){ .next = START };
	process_init(&node->process, &GLIBC_2_36);
	export_facts(core);
	core_add(core, CHUNK, V8_CHUNK_ALIGNMENT, RIGHTS_RW);
	for (size_t i = 0; i < COUNT_OF(head); i++)
		core_set(core, CHUNK + V8_WORD * i, head[i]);
	node->meta = add_map(node, MAP, MAP_SIZE, 0);
	array_map = add_map(node, ARRAY, 0, 0);
	node->map = add_map(node, OBJECT, 32, add_function(node, "Session"));
	node->derived = add_map(node, OBJECT, 40, node->map);
	node->other = add(node, node->derived, 40);
	node->session = add(node, node->map, 32);
	node->list = add(node, array_map, 16 + 2 * V8_WORD);
	core_set(core, node->list + 8, UINT64_C(2) << 32);
}

static void node_open(struct node_process *node)
{
	uint64_t free_map = add_map(node, FREE, 0, 0), rest = add(node, free_map, 16);

	core_set(&node->process.core, rest + 8, (END - rest) << 32);
	process_finish(&node->process);
	process_open(&node->process, STAGE_CLASSES);
}

static void node_deinit(struct node_process *node)
{
	process_deinit(&node->process);
}
DEFINE_DEINIT(node_deinit, struct node_process)

#define START_NODE(node)                                 \
	_cleanup_(node_deinit) struct node_process node; \
	node_init(&node)

static void assert_class(const struct node_process *node, uint64_t address, const char *expected)
{
	struct analysis *analysis = node->process.analysis;
	allocation_id id = process_find(&node->process, address);
	uint64_t signature = id == NO_ALLOCATION ? 0 : analysis_signature(analysis, id);

	assert_string_equal(
		signature ? classes_name(analysis_classes(analysis), signature) : "none", expected);
}

TEST(objects_are_of_the_constructors_that_maps_lead_to)
{
	START_NODE(node);

	node_open(&node);
	assert_class(&node, node.session, "Session");
	assert_class(&node, node.other, "Session");
	assert_class(&node, node.list, "(array)");
	assert_class(&node, node.map, "(object shape)");
}

TEST(map_that_was_derived_from_itself_costs_only_its_objects)
{
	START_NODE(node);

	core_set(&node.process.core, node.derived + CONSTRUCTOR, tagged(node.derived));
	node_open(&node);
	assert_class(&node, node.session, "Session");
	assert_class(&node, node.other, "Object");
}

TEST(array_that_is_longer_than_its_chunk_ends_what_is_known)
{
	START_NODE(node);

	core_set(&node.process.core, node.list + 8, UINT64_MAX);
	node_open(&node);
	assert_class(&node, node.session, "Session");
	assert_class(&node, node.list, "none");
}
