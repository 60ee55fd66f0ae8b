#include "analyzer/classify/classes.h"

#include "analyzer/base/table.h"
#include "analyzer/base/text.h"
#include "analyzer/classify/cxx.h"
#include "analyzer/classify/literal.h"
#include "analyzer/classify/meta_object.h"
#include "analyzer/classify/rtti.h"
#include "analyzer/classify/type_names.h"

#include <inttypes.h>
#include <string.h>

/* Both owned; NULL: there is none. */
struct names {
	char *full, *brief;
	bool known; /* looked for already */
};

struct signature {
	uint64_t address;
	uint64_t type; /* its type_info; 0: none */
	bool type_known;
	enum signature_kind kind;
	bool control_block_known;
	uint32_t control_block;
	struct names names; /* by symbol */
	char *literal_name; /* owned; NULL: it has none, or not yet */
};

struct type {
	uint64_t address;
	struct names names;
	bool is_checked, is_right; /* is_right: it is a type_info */
};

struct classes {
	const struct image *image;
	const struct program *program;
	struct debug *debug;
	const struct runtimes *runtimes; /* NULL: none */
	HASH_TABLE(struct signature) signatures;
	HASH_TABLE(struct type) types;
	/* The budgets for names, and for bases of the classes asked for. */
	struct budget names_budget, bases_budget;
	bool libraries_known; /* of C++ */
	unsigned int libraries;
};

/*
 * Names are read once, bases for each search. Both take less than all of a large program's, and
 * hardly longer than reading the dump a few times.
 */
enum { LEAST_BUDGET = 16 << 20, DEMANGLING_COST = 16 };

struct error *classes_create(const struct image *image, const struct program *program,
			     struct debug *debug, struct memory_account *account,
			     struct classes **ret)
{
	struct classes *classes = calloc(1, sizeof(*classes));

	TRY_MEMORY(classes);
	classes->image = image;
	classes->program = program;
	classes->debug = debug;
	classes->names_budget.left = LEAST_BUDGET + image->size;
	arrays_use(account, &classes->signatures, &classes->types);
	*ret = classes;
	return NULL;
}

void classes_set_runtimes(struct classes *classes, const struct runtimes *runtimes)
{
	classes->runtimes = runtimes;
}

/* True if a runtime has this class. */
static bool is_of_runtime(const struct classes *classes, uint64_t signature)
{
	return runtimes_have_class(classes->runtimes, signature);
}

static const char *runtime_class_name(const struct classes *classes, uint64_t signature)
{
	enum class_name_kind kind;

	return runtimes_class_name(classes->runtimes, signature, &kind);
}

static void names_deinit(struct names *names)
{
	free(names->full);
	free(names->brief);
}

void classes_destroy(struct classes *classes)
{
	for (size_t i = 0; i < classes->signatures.count; i++) {
		names_deinit(&classes->signatures.items[i].names);
		free(classes->signatures.items[i].literal_name);
	}
	for (size_t i = 0; i < classes->types.count; i++)
		names_deinit(&classes->types.items[i].names);
	tables_release(&classes->signatures, &classes->types);
	free(classes);
}

/* Takes over full, which may be NULL. */
static void names_set(struct names *names, char *full)
{
	names->known = true;
	names->full = full;
	names->brief = full ? short_name(full) : NULL;
}

/* A short mangled name can stand for a long one. */
static char *demangle(struct classes *classes, const char *mangled)
{
	uint64_t cost = DEMANGLING_COST * strlen(mangled);
	char *full;

	if (!budget_take_many(&classes->names_budget, cost))
		return NULL;
	full = demangle_type(mangled);
	if (full)
		budget_take_many(&classes->names_budget, DEMANGLING_COST * strlen(full));
	return full;
}

/* The name of the object inside the control block, if there is one. */
static char *name_shared(const char *mangled, char *full)
{
	uint32_t object = control_block_object(mangled);
	char *shared;

	if (!full || object == 0 || object == NO_CONTROL_BLOCK)
		return full;
	shared = control_block_shared(full);
	if (!shared)
		return full;
	free(full);
	return shared;
}

/* A type that is no class, such as int, gets its name from the symbol of its type_info. */
static char *type_by_symbol(struct classes *classes, uint64_t address)
{
	static const char prefix[] = "typeinfo for ";
	struct symbol symbol;

	return debug_symbol(classes->debug, address, &symbol) && symbol.start == address &&
			       strncmp(symbol.name, prefix, sizeof(prefix) - 1) == 0
		       ? strdup(symbol.name + sizeof(prefix) - 1)
		       : NULL;
}

/* The names of a class, by its type_info; empty ones if memory is short. */
static struct names type_names(struct classes *classes, uint64_t address)
{
	struct type *type = table_obtain(&classes->types, address, item, item->address == address,
					 (struct type){ address });

	if (!type)
		return (struct names){ 0 };
	if (!type->names.known) {
		_cleanup_(free) char *mangled =
			rtti_name(classes->image, address, &classes->names_budget);
		char *full = mangled ? name_shared(mangled, demangle(classes, mangled)) : NULL;

		/* A mangled name is better than none. */
		if (!full)
			full = mangled ? take(mangled) : type_by_symbol(classes, address);
		names_set(&type->names, full);
	}
	return type->names;
}

/*
 * A class without type_info gets its name from the symbol of its vtable. The vtable of a class
 * without virtual functions ends where objects point to, behind the type_info's empty slot.
 */
static const char *class_by_symbol(struct classes *classes, uint64_t address)
{
	static const char prefix[] = "vtable for ";
	struct symbol symbol;
	uint64_t type;

	if (!debug_symbol(classes->debug, address - 1, &symbol) ||
	    strncmp(symbol.name, prefix, sizeof(prefix) - 1) != 0 ||
	    (address - symbol.start == symbol.size &&
	     (!image_read_word(classes->image, address - image_word_size(classes->image), &type) ||
	      type != 0)))
		return NULL;
	return symbol.name + sizeof(prefix) - 1;
}

/* "handler" at its start, "handler+0x10" within. */
static char *symbol_text(const struct symbol *symbol, uint64_t address)
{
	char *text;

	if (address == symbol->start)
		return strdup(symbol->name);
	if (asprintf(&text, "%s+0x%" PRIx64, symbol->name, address - symbol->start) < 0)
		return NULL;
	return text;
}

/* True if there is code, or data that refers to code. */
static bool is_functional(const struct image *image, uint64_t address)
{
	enum { SEARCHED = 4 };
	const struct region *region = image_find(image, address);

	for (size_t i = 0; i < SEARCHED; i++) {
		uint64_t word;

		if (region && (region->rights & RIGHT_EXECUTE))
			return true;
		region = image_read_word(image, address + i * image_word_size(image), &word)
				 ? image_find(image, word)
				 : NULL;
	}
	return region && (region->rights & RIGHT_EXECUTE);
}

/* "strings of libfoo.so", "libfoo.so+0x4018": better than nothing. */
static char *place_text(const struct classes *classes, uint64_t address)
{
	const struct module *module = program_find_module(classes->program, address);
	uint64_t available;
	size_t length;
	char *text;
	int size;

	if (!module)
		return NULL;
	if (literal_find(classes->image, address, &length))
		size = asprintf(&text, "strings of %s", module_name(module));
	else if (is_functional(classes->image, address) ||
		 !image_bytes(classes->image, address, &available))
		size = asprintf(&text, "%s+0x%" PRIx64, module_name(module),
				address - module->start);
	else
		size = asprintf(&text, "data of %s", module_name(module));
	return size < 0 ? NULL : text;
}

static void name_by_symbol(struct classes *classes, struct signature *signature)
{
	struct symbol symbol;
	const char *class;

	signature->names.known = true;
	class = class_by_symbol(classes, signature->address);
	if (class) {
		signature->kind = SIGNATURE_CLASS;
		names_set(&signature->names, strdup(class));
		return;
	}
	if (!debug_symbol(classes->debug, signature->address, &symbol)) {
		names_set(&signature->names, meta_object_name(classes->image, signature->address));
		if (signature->names.full) {
			signature->kind = SIGNATURE_CLASS;
			return;
		}
		debug_miss_names(classes->debug, signature->address);
		names_set(&signature->names, place_text(classes, signature->address));
		return;
	}
	if (!signature->type)
		signature->kind =
			symbol.kind == SYMBOL_FUNCTION ? SIGNATURE_FUNCTION : SIGNATURE_DATA;
	names_set(&signature->names, symbol_text(&symbol, signature->address));
}

/* The signature, its type known; NULL if memory is short. It stays until the next one is added. */
static struct signature *find_signature(struct classes *classes, uint64_t address)
{
	struct signature *signature =
		table_obtain(&classes->signatures, address, item, item->address == address,
			     (struct signature){ address });

	if (!signature || signature->type_known)
		return signature;
	signature->type_known = true;
	signature->type = rtti_type(classes->image, address, &classes->names_budget);
	if (signature->type)
		signature->kind = SIGNATURE_CLASS;
	return signature;
}

bool classes_is_vtable(struct classes *classes, uint64_t address)
{
	const struct signature *signature = find_signature(classes, address);

	return signature && signature->type;
}

uint32_t classes_control_block(struct classes *classes, uint64_t vtable)
{
	struct signature *signature = find_signature(classes, vtable);

	if (!signature || !signature->type)
		return NO_CONTROL_BLOCK;
	if (!signature->control_block_known) {
		_cleanup_(free) char *mangled =
			rtti_name(classes->image, signature->type, &classes->names_budget);

		signature->control_block =
			mangled ? control_block_object(mangled) : NO_CONTROL_BLOCK;
		signature->control_block_known = true;
	}
	return signature->control_block;
}

static void name_marked(struct signature *signature, enum signature_mark mark,
			const struct names *names)
{
	static const struct {
		const char *before, *behind;
	} texts[] = {
		[MARK_SLAB] = { "slab, beginning with ", "" },
		[MARK_DESTROYED] = { "", " (destroyed, held by weak_ptr)" },
		[MARK_EXCEPTION] = { "exception ", "" },
		[MARK_RETHROWN] = { "exception ", " (rethrown)" },
	};
	const char *before = texts[mark].before, *behind = texts[mark].behind;

	signature->kind = SIGNATURE_DATA;
	signature->names.known = true;
	if (!names->brief)
		return;
	signature->names.full = format_text("%s%s%s", before, names->full, behind);
	signature->names.brief = format_text("%s%s%s", before, names->brief, behind);
}

static struct names find_names(struct classes *classes, uint64_t address);

/* The names of the class whose address is the signature without its mark. */
static struct names unmarked_names(struct classes *classes, uint64_t address,
				   enum signature_mark mark)
{
	switch (mark) {
	case MARK_SLAB:
	case MARK_DESTROYED:
		return find_names(classes, address - mark);
	case MARK_EXCEPTION:
	case MARK_RETHROWN:
		return type_names(classes, address - mark);
	default:
		return (struct names){ 0 };
	}
}

/* Symbols are asked where the type does not tell the name: it takes longer. */
static struct names find_names(struct classes *classes, uint64_t address)
{
	enum signature_mark mark = classes_mark(classes, address);
	struct names unmarked = unmarked_names(classes, address, mark);
	struct signature *signature = find_signature(classes, address);
	struct names names = { 0 };

	if (!signature)
		return names;
	if (signature->type)
		names = type_names(classes, signature->type);
	if (names.brief)
		return names;
	if (!signature->names.known && mark)
		name_marked(signature, mark, &unmarked);
	else if (!signature->names.known)
		name_by_symbol(classes, signature);
	return signature->names;
}

enum signature_kind classes_kind(struct classes *classes, uint64_t signature)
{
	const struct signature *known;

	if (is_of_runtime(classes, signature))
		return SIGNATURE_CLASS;
	find_names(classes, signature);
	known = find_signature(classes, signature);
	return known ? known->kind : SIGNATURE_UNKNOWN;
}

bool classes_is_class(struct classes *classes, uint64_t signature)
{
	const struct signature *known = find_signature(classes, signature);

	if (known && known->type)
		return true;
	if (known && known->names.known && !is_of_runtime(classes, signature))
		return known->kind == SIGNATURE_CLASS;
	return classes_kind(classes, signature) == SIGNATURE_CLASS;
}

/* True if there is a type_info; that of a pointer or number has its name only in a symbol. */
static bool is_type(struct classes *classes, uint64_t address)
{
	struct names names = type_names(classes, address);
	struct type *type = table_find(&classes->types, address, item, item->address == address);

	if (!type || !names.brief)
		return false;
	if (!type->is_checked) {
		_cleanup_(free) char *symbol = type_by_symbol(classes, address);

		type->is_checked = true;
		type->is_right =
			symbol || rtti_is_class(classes->image, address, &classes->names_budget);
	}
	return type->is_right;
}

enum signature_mark classes_mark(struct classes *classes, uint64_t signature)
{
	enum signature_mark mark = (enum signature_mark)(signature % sizeof(uint64_t));
	uint64_t address = signature - mark;

	if (mark == MARK_NONE || is_of_runtime(classes, signature) ||
	    is_of_runtime(classes, address))
		return MARK_NONE;
	switch (mark) {
	case MARK_SLAB:
		return classes_is_class(classes, address) ? mark : MARK_NONE;
	case MARK_DESTROYED:
		return classes_control_block(classes, address) != NO_CONTROL_BLOCK ? mark
										   : MARK_NONE;
	case MARK_EXCEPTION:
	case MARK_RETHROWN:
		return is_type(classes, address) ? mark : MARK_NONE;
	default:
		return MARK_NONE;
	}
}

bool classes_may_throw(struct classes *classes)
{
	if (!classes->libraries_known) {
		classes->libraries_known = true;
		classes->libraries = cxx_find(classes->image, classes->program);
	}
	return classes->libraries != 0;
}

const char *classes_name(struct classes *classes, uint64_t signature)
{
	if (is_of_runtime(classes, signature))
		return runtime_class_name(classes, signature);
	return find_names(classes, signature).brief;
}

const char *classes_full_name(struct classes *classes, uint64_t signature)
{
	if (is_of_runtime(classes, signature))
		return runtime_class_name(classes, signature);
	return find_names(classes, signature).full;
}

const char *classes_literal_name(struct classes *classes, uint64_t signature)
{
	enum { SHOWN = 64 };
	struct signature *known;
	const char *text;
	size_t length;
	bool cut;

	if (classes_kind(classes, signature) != SIGNATURE_UNKNOWN)
		return NULL;
	known = find_signature(classes, signature);
	text = known && known->names.brief && !known->literal_name
		       ? literal_find(classes->image, signature, &length)
		       : NULL;
	cut = text && length > SHOWN;
	if (text && asprintf(&known->literal_name, "%s: \"%.*s\"%s", known->names.brief,
			     cut ? SHOWN : (int)length, text, cut ? "..." : "") < 0)
		known->literal_name = NULL;
	return known ? known->literal_name : NULL;
}

void classes_begin_search(struct classes *classes)
{
	enum { SHARE = 8 };

	classes->bases_budget.left = LEAST_BUDGET + classes->image->size / SHARE;
}

struct visit {
	struct classes *classes;
	bool (*visit)(void *data, const char *name);
	void *data;
};

static bool visit_base(void *data, uint64_t base)
{
	const struct visit *visit = data;
	const char *name = type_names(visit->classes, base).brief;

	return name && visit->visit(visit->data, name);
}

bool classes_visit_names(struct classes *classes, uint64_t signature,
			 bool (*visit)(void *data, const char *name), void *data)
{
	struct visit bases = { classes, visit, data };
	const char *name = classes_name(classes, signature);
	const struct signature *known;

	if (name && visit(data, name))
		return true;
	if (is_of_runtime(classes, signature))
		return runtimes_visit_bases(classes->runtimes, signature, visit, data);
	known = find_signature(classes, signature);
	return known && known->type &&
	       rtti_find_base(classes->image, known->type, visit_base, &bases,
			      &classes->bases_budget);
}

static bool is_name(void *data, const char *name)
{
	return strcmp(data, name) == 0;
}

bool classes_is_a(struct classes *classes, uint64_t signature, const char *name)
{
	return classes_visit_names(classes, signature, is_name, (char *)name);
}
