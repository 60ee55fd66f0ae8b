/*
 * Classes of objects. An object of no class that a program can see has its type as class:
 * "T_STRING", "imemo_iseq". For T_DATA, that is the name that C code gave it (rb_data_type_t's
 * wrap_struct_name).
 */
#include "analyzer/runtimes/ruby/objects.h"

#include "analyzer/runtimes/ruby/iseqs.h"
#include "analyzer/runtimes/ruby/space.h"

#include <inttypes.h>

enum {
	CLASS = 8, /* in all objects */
	MOST_BASES = 256,
	TYPE_BITS = RUBY_TYPES - 1,
	/* Classes below all addresses: types, then kinds of T_IMEMO. */
	FIXED_CLASSES = RUBY_TYPES + RUBY_IMEMO_KINDS,
};

void ruby_release(struct object_space *space)
{
	struct ruby *ruby = (struct ruby *)space;

	ruby_slots_deinit(&ruby->slots);
	ruby_symbols_deinit(&ruby->symbols);
	table_release(&ruby->apart);
	ruby_calls_deinit(&ruby->calls);
}

/*
 * Read the name at the start of the type of data, which is constant memory; false if there is none.
 */
bool ruby_read_data_name(const struct image *image, uint64_t type, char ret[RUBY_MOST_NAME + 1])
{
	uint64_t address;
	size_t length = 0;

	if (!image_read_u64(image, type, &address))
		return false;
	while (length < RUBY_MOST_NAME && image_read(image, address + length, &ret[length], 1) &&
	       (unsigned char)ret[length] >= ' ')
		length++;
	return length > 0 && length < RUBY_MOST_NAME && ret[length] == '\0';
}

/*
 * struct RTypedData: the type is followed by 1, or by 3 if the data is embedded. From 4.0 on, a
 * flag says that there is one; it stands a word later, with 1 added if the data is embedded.
 */
uint64_t ruby_find_data_type(const struct ruby *ruby, struct view *view, uint64_t address)
{
	enum { FLAGS, TYPE = 2, TYPED, WORDS, MOST_TYPED = 3, IS_TYPED = 1 << 6, IS_EMBEDDED = 1 };
	char name[RUBY_MOST_NAME + 1];
	uint64_t words[WORDS], type;

	if (!view_read(view, address, words, sizeof(words)) || words[TYPED] == 0 ||
	    (words[TYPED] > MOST_TYPED && !(words[FLAGS] & IS_TYPED)))
		return 0;
	type = words[TYPED] > MOST_TYPED ? words[TYPED] & ~(uint64_t)IS_EMBEDDED : words[TYPE];
	return ruby_read_data_name(ruby->space.image, type, name) ? type : 0;
}

/* The class of the object at address, which has one. */
static uint64_t find_class(const struct ruby *ruby, struct view *view, uint64_t address,
			   uint64_t flags)
{
	unsigned int type = flags & TYPE_BITS;
	uint64_t class = 0;

	if (type == RUBY_IMEMO)
		return RUBY_TYPES + ruby_imemo_kind(&ruby->slots, flags);
	if (type == RUBY_ICLASS || type == RUBY_NODE || !view_word(view, address + CLASS, &class))
		return type;
	class = ruby_real_class(&ruby->slots, view, class);
	if (!class && type == RUBY_DATA)
		class = ruby_find_data_type(ruby, view, address);
	return class > FIXED_CLASSES ? class : type;
}

struct error *ruby_find_objects(struct object_space *space, struct debug *debug)
{
	struct ruby *ruby = (struct ruby *)space;
	struct view view = { space->image };
	size_t hint = 0;

	TRY(ruby_slots_init(&ruby->slots, &space->context));
	TRY(object_classes_init(&space->classes, allocation_count(space->index), space->account));
	bitmap_for_each(id, &ruby->slots.slots) {
		uint64_t start =
			allocation_range_near(space->index, (allocation_id)id, &hint).start;
		uint64_t flags;
		uint32_t class;

		if (!view_word(&view, start, &flags) || (flags & TYPE_BITS) == 0)
			continue;
		TRY(object_classes_know(&space->classes, find_class(ruby, &view, start, flags),
					&class));
		TRY(object_classes_set(&space->classes, (allocation_id)id, class));
	}
	space->has_objects = space->classes.list.count > 0;
	return NULL;
}

const char *ruby_type_name(uint64_t type)
{
	static const char *const types[RUBY_TYPES] = {
		"T_NONE",   "T_OBJECT", "T_CLASS",   "T_MODULE",   "T_FLOAT",  "T_STRING",
		"T_REGEXP", "T_ARRAY",	"T_HASH",    "T_STRUCT",   "T_BIGNUM", "T_FILE",
		"T_DATA",   "T_MATCH",	"T_COMPLEX", "T_RATIONAL", NULL,       "T_NIL",
		"T_TRUE",   "T_FALSE",	"T_SYMBOL",  "T_FIXNUM",   "T_UNDEF",  NULL,
		NULL,	    NULL,	"T_IMEMO",   "T_NODE",	   "T_ICLASS", "T_ZOMBIE",
		"T_MOVED",
	};

	return type < RUBY_TYPES ? types[type] : NULL;
}

const char *ruby_imemo_name(uint64_t kind)
{
	static const char *const kinds[RUBY_IMEMO_KINDS] = {
		"env",	     "cref",	   "svar",   "throw_data", "ifunc",	     "memo",
		"ment",	     "iseq",	   "tmpbuf", "ast",	   "parser_strterm", "callinfo",
		"callcache", "constcache", "fields",
	};

	return kind < RUBY_IMEMO_KINDS ? kinds[kind] : NULL;
}

static const char *fixed_name(struct ruby *ruby, uint64_t number)
{
	uint64_t kind = number - RUBY_TYPES;
	const char *name = number < RUBY_TYPES ? ruby_type_name(number) : ruby_imemo_name(kind);

	if (number < RUBY_TYPES)
		return name ? name : name_pool_print(&ruby->space.texts, "T_%" PRIu64, number);
	return name ? name_pool_print(&ruby->space.texts, "imemo_%s", name)
		    : name_pool_print(&ruby->space.texts, "imemo_%" PRIu64, kind);
}

/* The name of a class; without one, what Ruby itself prints. */
const char *ruby_class_name(struct object_space *space, uint64_t number,
			    enum class_name_kind *ret_kind)
{
	struct ruby *ruby = (struct ruby *)space;
	struct view view = { space->image };
	char name[RUBY_MOST_NAME + 1];
	unsigned int type = ruby_slot_flags(&ruby->slots, &view, number) & TYPE_BITS;

	*ret_kind = CLASS_NAMED;
	if (number < FIXED_CLASSES)
		return fixed_name(ruby, number);
	if (type == 0 && ruby_read_data_name(space->image, number, name))
		return name_pool_print(&ruby->space.texts, "T_DATA %s", name);
	if (ruby_read_name(&ruby->slots, &view, number, name))
		return name_pool_print(&ruby->space.texts, "%s", name);
	*ret_kind = CLASS_NUMBERED;
	return name_pool_print(&ruby->space.texts, "#<%s:0x%016" PRIx64 ">",
			       type == RUBY_MODULE ? "Module" : "Class", number);
}

/* An object is named by its class: each would be a class of its own. */
static const char *name_singleton(struct ruby *ruby, uint64_t object, const char *before,
				  const char *after)
{
	struct view view = { ruby->space.image };
	uint64_t flags = ruby_slot_flags(&ruby->slots, &view, object);
	unsigned int type = flags & TYPE_BITS;
	bool is_class = type == RUBY_CLASS || type == RUBY_MODULE;
	enum class_name_kind kind;
	const char *name = ruby_class_name(
		&ruby->space, is_class ? object : find_class(ruby, &view, object, flags), &kind);

	return name ? name_pool_print(&ruby->space.texts, is_class ? "%s%s%s" : "%s#<%s>%s", before,
				      name, after)
		    : NULL;
}

/* The name of a singleton class, made from its object's. */
static const char *name_owner(struct ruby *ruby, uint64_t class)
{
	enum { MOST_NESTED = 3 };
	struct view view = { ruby->space.image };
	enum class_name_kind kind;
	const char *before[] = { "", "#<Class:", "#<Class:#<Class:", "#<Class:#<Class:#<Class:" };
	uint64_t attached = ruby_attached(&ruby->slots, &view, class);
	size_t depth = 0;

	for (; attached && depth < MOST_NESTED; depth++) {
		class = attached;
		attached = ruby_attached(&ruby->slots, &view, class);
	}
	return depth ? name_singleton(ruby, class, before[depth], ">>>" + MOST_NESTED - depth)
		     : ruby_class_name(&ruby->space, class, &kind);
}

/* An object that stands for an included module has the module as class. */
static uint64_t module_of(const struct ruby *ruby, struct view *view, uint64_t address)
{
	unsigned int type = ruby_slot_flags(&ruby->slots, view, address) & TYPE_BITS;
	uint64_t module = address;

	if (type == RUBY_ICLASS && !view_word(view, address + CLASS, &module))
		return 0;
	return module;
}

bool ruby_visit_bases(struct object_space *space, uint64_t number,
		      bool (*visit)(void *data, const char *name), void *data)
{
	struct ruby *ruby = (struct ruby *)space;
	struct view view = { ruby->space.image };
	uint64_t at = number;

	for (int i = 0; i < MOST_BASES && number >= FIXED_CLASSES; i++) {
		enum class_name_kind kind;
		const char *name;

		at = ruby_super(&ruby->slots, &view, at);
		if (at == 0)
			break;
		name = ruby_class_name(space, module_of(ruby, &view, at), &kind);
		if (name && visit(data, name))
			return true;
	}
	return false;
}

/* The texts of an iseq, which the pool keeps. */
static struct error *tell_code(struct ruby *ruby, const struct ruby_iseq *iseq,
			       struct object_code *ret)
{
	enum { MOST_TEXT = 1024 };
	struct view view = { ruby->space.image };
	char text[MOST_TEXT];

	*ret = (struct object_code){ .id = iseq->id, .line = iseq->line };
	if (iseq->owner && !(ret->owner = name_owner(ruby, iseq->owner)))
		return &error_no_memory;
	if (ruby_read_text(&ruby->slots, &view, iseq->path, text, sizeof(text)) &&
	    !(ret->path = name_pool_print(&ruby->space.texts, "%s", text)))
		return &error_no_memory;
	if (ruby_read_text(&ruby->slots, &view, iseq->label, text, sizeof(text)) &&
	    !(ret->label = name_pool_print(&ruby->space.texts, "%s", text)))
		return &error_no_memory;
	return NULL;
}

struct error *ruby_visit_code(struct object_space *space, object_code_visitor *visit, void *data)
{
	struct ruby *ruby = (struct ruby *)space;
	_cleanup_(ruby_iseqs_deinit) struct ruby_iseqs iseqs = { 0 };
	struct ruby_iseq iseq;
	struct object_code code;

	TRY(ruby_iseqs_init(&iseqs, &ruby->slots, ruby->space.account));
	bitmap_for_each(id, &iseqs.iseqs) {
		ruby_iseq_read(&iseqs, (allocation_id)id, &iseq);
		TRY(tell_code(ruby, &iseq, &code));
		TRY(visit(data, &code));
	}
	return NULL;
}
