#include "tests/analyzer/runtimes/language.h"

extern const struct runtime runtime_jvm;

/*
 * A virtual machine of Java 17 with two generations, and two loaders of a class each. What its
 * fields are called, and where they are, stands in a table of its data.
 */
enum { ENTRY = 40, ENTRIES = 64, PIECE = 4 << 20, GENERATION = 1 << 20, VALUES = 32 };

static const uint64_t TABLE = LANGUAGE_DATA + PAGE, NAMES = TABLE + PAGE, WORDS = NAMES + 2 * PAGE,
		      STATICS = WORDS + 8 * VALUES, OBJECTS = WORDS + PAGE,
		      EXPORTS = OBJECTS + PAGE, YOUNG = 0x700000000, OLD = YOUNG + GENERATION,
		      CODE = 0x7e0000000000, CLASSES = 0x800000000, METHODS = 0x7d0000000000,
		      LOADERS = OBJECTS + 0x400;

/* Fields of a virtual machine's objects: their offsets. */
enum {
	RESERVED = 16,
	YOUNG_GENERATION = 64,
	OLD_GENERATION = 72,
	NEXT_LOADER = 8,
	LOADED = 16,
	NEXT_CLASS = 24,
	KIND = 8,
	CONSTANTS = 32,
	METHOD_LIST = 40,
};

struct jvm {
	struct language language;
	uint64_t entries, names;
};

static uint64_t add_name(struct jvm *jvm, const char *name)
{
	uint64_t address = NAMES + jvm->names;

	language_set_text(&jvm->language, address, name);
	jvm->names += strlen(name) + 1;
	return address;
}

static void add_entry(struct jvm *jvm, const char *type, const char *field, bool is_static,
		      uint64_t offset, uint64_t address)
{
	language_set(&jvm->language, TABLE + ENTRY * jvm->entries++, add_name(jvm, type),
		     add_name(jvm, field), is_static, offset, address);
}

static void add_field(struct jvm *jvm, const char *type, const char *field, uint64_t offset)
{
	add_entry(jvm, type, field, false, offset, 0);
}

static void add_static(struct jvm *jvm, const char *type, const char *field, uint64_t value)
{
	uint64_t place = STATICS + 8 * jvm->entries;

	add_entry(jvm, type, field, true, 0, place);
	language_set(&jvm->language, place, value);
}

/* The layout of the table, which the module exports. */
static void export_table(struct jvm *jvm)
{
	static const struct {
		const char *name;
		uint64_t value;
	} variables[] = {
		{ "gHotSpotVMStructs", TABLE },
		{ "gHotSpotVMStructEntryArrayStride", ENTRY },
		{ "gHotSpotVMStructEntryTypeNameOffset", 0 },
		{ "gHotSpotVMStructEntryFieldNameOffset", 8 },
		{ "gHotSpotVMStructEntryIsStaticOffset", 16 },
		{ "gHotSpotVMStructEntryOffsetOffset", 24 },
		{ "gHotSpotVMStructEntryAddressOffset", 32 },
	};
	struct core_symbol symbols[COUNT_OF(variables)];

	for (size_t i = 0; i < COUNT_OF(variables); i++) {
		symbols[i] = (struct core_symbol){ variables[i].name, WORDS + 8 * i };
		language_set(&jvm->language, WORDS + 8 * i, variables[i].value);
	}
	core_export(&jvm->language.world.core, LANGUAGE_MODULE, EXPORTS, symbols,
		    COUNT_OF(symbols));
}

static void add_heap(struct jvm *jvm)
{
	const uint64_t young = OBJECTS + 0x100, old = OBJECTS + 0x200;

	add_static(jvm, "Universe", "_collectedHeap", OBJECTS);
	add_field(jvm, "CollectedHeap", "_reserved", RESERVED);
	add_field(jvm, "MemRegion", "_start", 0);
	add_field(jvm, "MemRegion", "_word_size", 8);
	add_field(jvm, "GenCollectedHeap", "_young_gen", YOUNG_GENERATION);
	add_field(jvm, "GenCollectedHeap", "_old_gen", OLD_GENERATION);
	add_field(jvm, "Generation", "_reserved", RESERVED);
	language_set(&jvm->language, OBJECTS + RESERVED, YOUNG, 2 * GENERATION / 8);
	language_set(&jvm->language, OBJECTS + YOUNG_GENERATION, young, old);
	language_set(&jvm->language, young + RESERVED, YOUNG, GENERATION / 8);
	language_set(&jvm->language, old + RESERVED, OLD, GENERATION / 8);
}

static uint64_t loader(unsigned int number)
{
	return LOADERS + 0x40 * number;
}

/* Each class is in a piece of its own. */
static uint64_t class_of(unsigned int number)
{
	return CLASSES + (uint64_t)PIECE * number;
}

static void add_loader(struct jvm *jvm, unsigned int number, uint64_t next)
{
	uint64_t class = class_of(number);

	core_add(&jvm->language.world.core, class, PAGE, RIGHTS_RW);
	language_set(&jvm->language, loader(number) + NEXT_LOADER, next, class);
	language_set(&jvm->language, class + KIND, 1);
	language_set(&jvm->language, class + CONSTANTS, METHODS, METHODS + 0x100);
}

static void add_classes(struct jvm *jvm)
{
	add_static(jvm, "MetaspaceObj", "_shared_metaspace_base", 0);
	add_static(jvm, "MetaspaceObj", "_shared_metaspace_top", 0);
	add_static(jvm, "Abstract_VM_Version", "_vm_major_version", 17);
	add_static(jvm, "ClassLoaderDataGraph", "_head", loader(0));
	add_field(jvm, "ClassLoaderData", "_next", NEXT_LOADER);
	add_field(jvm, "ClassLoaderData", "_klasses", LOADED);
	add_field(jvm, "Klass", "_next_link", NEXT_CLASS);
	add_field(jvm, "Klass", "_layout_helper", KIND);
	add_field(jvm, "InstanceKlass", "_constants", CONSTANTS);
	add_field(jvm, "InstanceKlass", "_methods", METHOD_LIST);
	core_add(&jvm->language.world.core, METHODS, PAGE, RIGHTS_RW);
	add_loader(jvm, 0, loader(1));
	add_loader(jvm, 1, 0);
}

static void jvm_init(struct jvm *jvm)
{
	*jvm = (struct jvm){ .entries = 0 };
	language_init(&jvm->language, "/opt/jdk-17/lib/server/libjvm.so");
	export_table(jvm);
	add_heap(jvm);
	add_static(jvm, "CodeCache", "_low_bound", CODE);
	add_static(jvm, "CodeCache", "_high_bound", CODE + PIECE);
	add_classes(jvm);
}

static void jvm_deinit(struct jvm *jvm)
{
	language_deinit(&jvm->language);
}
DEFINE_DEINIT(jvm_deinit, struct jvm)

#define START(jvm)                            \
	_cleanup_(jvm_deinit) struct jvm jvm; \
	jvm_init(&jvm)

#define assert_range(jvm, address, name) \
	assert_string_equal(language_range(&(jvm).language, address), name)

TEST(memory_is_named_by_what_the_virtual_machine_says_of_itself)
{
	START(jvm);

	language_open(&jvm.language, &runtime_jvm);
	assert_range(jvm, YOUNG, "Java's heap: young");
	assert_range(jvm, OLD - 1, "Java's heap: young");
	assert_range(jvm, OLD, "Java's heap: old");
	assert_range(jvm, OLD + GENERATION, "none");
	assert_range(jvm, CODE, "Java's code cache");
	assert_range(jvm, class_of(0), "Java's compressed class space");
	assert_range(jvm, class_of(1), "Java's compressed class space");
	assert_range(jvm, class_of(2), "none");
	assert_range(jvm, METHODS, "Java's metaspace");
}

TEST(generations_that_do_not_share_the_heap_are_not_told_apart)
{
	START(jvm);

	language_set(&jvm.language, OBJECTS + 0x200 + RESERVED, OLD, UINT64_C(1) << 43);
	language_open(&jvm.language, &runtime_jvm);
	assert_range(jvm, YOUNG, "Java's heap");
	assert_range(jvm, OLD, "Java's heap");
	assert_range(jvm, OLD + GENERATION, "none");
	assert_range(jvm, CODE, "Java's code cache");
}

TEST(list_of_classes_that_returns_to_itself_costs_only_its_loader)
{
	START(jvm);

	language_set(&jvm.language, class_of(0) + NEXT_CLASS, class_of(0));
	language_open(&jvm.language, &runtime_jvm);
	assert_range(jvm, class_of(0), "Java's compressed class space");
	assert_range(jvm, class_of(1), "Java's compressed class space");
}

TEST(loaders_that_are_not_there_cost_only_their_classes)
{
	START(jvm);

	language_set(&jvm.language, loader(0) + NEXT_LOADER, 0x5a5a5a5a5a5a5a58);
	language_open(&jvm.language, &runtime_jvm);
	assert_range(jvm, class_of(0), "Java's compressed class space");
	assert_range(jvm, class_of(1), "none");
	assert_range(jvm, YOUNG, "Java's heap: young");
}

/* The field of an entry without a name, which ends the table, is not looked for behind it. */
TEST(table_ends_with_an_entry_without_a_name)
{
	START(jvm);

	language_set(&jvm.language, TABLE, 0);
	language_open(&jvm.language, &runtime_jvm);
	assert_range(jvm, YOUNG, "none");
	assert_range(jvm, CODE, "none");
}
