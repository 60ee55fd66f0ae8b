#include "analyzer/runtimes/crystal/makers.h"

#include <string.h>

enum { JUMP_SIZE = 6 }; /* of jmp *place(%rip) */

/* What a function of that name is. */
static unsigned int maker_called(const char *name)
{
	static const struct {
		const char *name;
		unsigned int maker;
	} known[] = {
		{ "GC_malloc", MAKER_SCANNED },
		{ "GC_malloc_atomic", MAKER_ATOMIC },
		{ "__crystal_malloc", MAKER_SCANNED | MAKER_PLAIN },
		{ "__crystal_malloc64", MAKER_SCANNED | MAKER_PLAIN },
		{ "__crystal_malloc_atomic", MAKER_ATOMIC | MAKER_PLAIN },
		{ "__crystal_malloc_atomic64", MAKER_ATOMIC | MAKER_PLAIN },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strcmp(name, known[i].name) == 0)
			return known[i].maker;
	return MAKER_NONE;
}

static void remember(struct makers *makers, uint64_t address, unsigned int maker)
{
	struct error *error;

	if (address_map_find(&makers->known, address) != NOT_IN_MAP)
		return;
	makers->found |= maker != MAKER_NONE;
	error = address_map_add(&makers->known, address, maker);
	if (error)
		error_destroy(error);
}

static bool take_symbol(void *data, const struct symbol *symbol)
{
	unsigned int maker = maker_called(symbol->name);

	if (maker != MAKER_NONE)
		remember(data, symbol->start, maker);
	return true;
}

struct error *makers_init(struct makers *makers, const struct image *image, struct debug *debug,
			  const struct module *module, struct memory_account *account)
{
	*makers = (struct makers){ .image = image, .debug = debug };
	makers->known.memory.account = account;
	debug_visit_symbols(debug, module, take_symbol, makers);
	return NULL;
}

void makers_deinit(struct makers *makers)
{
	table_release(&makers->known);
}

bool makers_found(const struct makers *makers)
{
	return makers->found;
}

void makers_add_guess(struct makers *makers, uint64_t address)
{
	remember(makers, address, MAKER_GUESSED);
}

/* Where the linkage table's entry at address jumps to, or 0. */
static uint64_t follow_entry(const struct image *image, uint64_t address)
{
	static const uint8_t landing[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint8_t code[16];
	const uint8_t *at = code;
	int32_t displacement;
	uint64_t place, target;

	if (!image_read(image, address, code, sizeof(code)))
		return 0;
	if (memcmp(at, landing, sizeof(landing)) == 0)
		at += sizeof(landing);
	if (*at == 0xf2) /* bnd */
		at++;
	if (at[0] != 0xff || at[1] != 0x25)
		return 0;
	memcpy(&displacement, at + 2, sizeof(displacement));
	place = address + (uint64_t)(at - code) + JUMP_SIZE + (uint64_t)(int64_t)displacement;
	return image_read_u64(image, place, &target) ? target : 0;
}

unsigned int maker_at(struct makers *makers, uint64_t address)
{
	uint32_t known = address_map_find(&makers->known, address);
	unsigned int maker = MAKER_NONE;
	struct symbol symbol;
	uint64_t target;

	if (known != NOT_IN_MAP)
		return known;
	target = follow_entry(makers->image, address);
	if (target && debug_symbol(makers->debug, target, &symbol) && symbol.start == target)
		maker = maker_called(symbol.name);
	remember(makers, address, maker);
	return maker;
}
