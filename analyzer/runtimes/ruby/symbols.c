#include "analyzer/runtimes/ruby/symbols.h"

enum {
	WORD = 8,
	CLASS = 8,
	UNIT = 512, /* symbols in an array */
	MOST_SYMBOLS = 1 << 24,
	ID_SHIFT = 4,
	FIRST_SHIFTED =
		1 << 10, /* IDs below are those of operators: tLAST_OP_ID is less than 256 */
	STATIC_BITS = 8,
	STATIC_SYMBOL = 0xc,
	SYMBOL_STRING = 24, /* of one that is an object */
};

uint64_t ruby_serial(uint64_t symbol_id)
{
	return symbol_id < FIRST_SHIFTED ? symbol_id : symbol_id >> ID_SHIFT;
}

static bool is_static(uint64_t value)
{
	return (value & UINT8_MAX) == STATIC_SYMBOL;
}

/* The elements of an array that programs cannot see: it has no class. */
static bool read_hidden(const struct ruby_slots *slots, struct view *view, uint64_t address,
			uint64_t *ret_elements, uint64_t *ret_count)
{
	uint64_t class;

	return ruby_read_array(slots, view, address, ret_elements, ret_count) &&
	       view_word(view, address + CLASS, &class) && class == 0;
}

/* In the first unit, symbols of the interpreter itself tell their numbers, most of them. */
static bool has_units(const struct ruby_slots *slots, struct view *view, uint64_t address)
{
	enum { FIRST = 256, ENOUGH = 128 };
	uint64_t units, count, unit, pairs, words, symbol;
	size_t right = 0;

	if (!read_hidden(slots, view, address, &units, &count) || count == 0 ||
	    !view_word(view, units, &unit) || !read_hidden(slots, view, unit, &pairs, &words) ||
	    words != UINT64_C(2) * UNIT)
		return false;
	for (uint64_t i = FIRST; i < UNIT; i++)
		right += view_word(view, pairs + WORD * (2 * i + 1), &symbol) &&
			 is_static(symbol) && ruby_serial(symbol >> STATIC_BITS) == i;
	return right >= ENOUGH;
}

static uint64_t find_units(const struct ruby_slots *slots, struct view *view)
{
	size_t hint = 0;

	bitmap_for_each(id, &slots->slots) {
		uint64_t start =
			allocation_range_near(slots->index, (allocation_id)id, &hint).start;

		if (has_units(slots, view, start))
			return start;
	}
	return 0;
}

static unsigned int kind_of(const char *name)
{
	return name[0] == '@'			  ? RUBY_VARIABLE_NAME
	       : name[0] >= 'A' && name[0] <= 'Z' ? RUBY_CONSTANT_NAME
	       : name[0] == '_' || (name[0] >= 'a' && name[0] <= 'z') ||
			       (unsigned char)name[0] >= 0x80
		       ? RUBY_LOCAL_NAME
		       : 0;
}

static struct error *add_unit(struct ruby_symbols *symbols, struct view *view, uint64_t unit,
			      uint64_t serial)
{
	uint64_t pairs, words, string;
	char name[RUBY_MOST_NAME + 1];

	if (!read_hidden(symbols->slots, view, unit, &pairs, &words))
		return NULL;
	words = MIN(words, UINT64_C(2) * UNIT);
	TRY(array_resize(&symbols->strings, serial + words / 2));
	for (uint64_t i = 0; i < words / 2; i++) {
		if (!view_word(view, pairs + WORD * 2 * i, &string) || string % WORD != 0 ||
		    !ruby_read_string(symbols->slots, view, string, name))
			continue;
		symbols->strings.items[serial + i] = string | kind_of(name);
		if (strcmp(name, "__members__") == 0)
			symbols->members = serial + i;
	}
	return NULL;
}

struct error *ruby_symbols_init(struct ruby_symbols *symbols, const struct ruby_slots *slots,
				struct memory_account *account)
{
	struct view view = { slots->image };
	uint64_t units, count, unit;

	*symbols = (struct ruby_symbols){ .slots = slots, .strings.memory.account = account };
	if (!read_hidden(slots, &view, find_units(slots, &view), &units, &count))
		return NULL;
	count = MIN(count, MOST_SYMBOLS / UNIT);
	for (uint64_t i = 0; i < count && view_word(&view, units + WORD * i, &unit); i++)
		TRY(add_unit(symbols, &view, unit, i * UNIT));
	return NULL;
}

void ruby_symbols_deinit(struct ruby_symbols *symbols)
{
	array_release(&symbols->strings);
}

bool ruby_symbol_text(const struct ruby_symbols *symbols, struct view *view, uint64_t serial,
		      char ret[RUBY_MOST_NAME + 1])
{
	return serial < symbols->strings.count && symbols->strings.items[serial] != 0 &&
	       ruby_read_string(symbols->slots, view,
				symbols->strings.items[serial] & -(uint64_t)WORD, ret);
}

bool ruby_read_symbol(const struct ruby_symbols *symbols, struct view *view, uint64_t value,
		      char ret[RUBY_MOST_NAME + 1])
{
	uint64_t string;

	if (is_static(value))
		return ruby_symbol_text(symbols, view, ruby_serial(value >> STATIC_BITS), ret);
	return ruby_slot_flags(symbols->slots, view, value) % RUBY_TYPES == RUBY_SYMBOL &&
	       view_word(view, value + SYMBOL_STRING, &string) &&
	       ruby_read_string(symbols->slots, view, string, ret);
}
