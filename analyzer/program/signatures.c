/*
 * Finds the bits of a pointer that are no part of its address: tags, which the processor ignores,
 * and signatures (PAC of AArch64), which a function makes and another one removes.
 *
 * The kernel's cores say which bits a signature has (NT_ARM_PAC_MASK). Those of qemu do not: then
 * it is all above the highest address. Return addresses are signed in any program. Hardly any signs
 * pointers to data, and to ignore more bits makes addresses of more numbers. So these are taken for
 * signed where some code expects it, and where the processor can sign but not all code is at hand.
 */
#include "analyzer/program/program_parts.h"

/* The bits above all addresses of the process. */
static uint64_t bits_above(const struct image *image)
{
	uint64_t last = image->region_count ? image->regions[image->region_count - 1].end - 1 : 0;

	return last >> 63 ? 0 : UINT64_MAX << (last ? 64 - __builtin_clzll(last) : 0);
}

enum signed_data { NO_SIGNED_DATA, PERHAPS_SIGNED_DATA, SIGNED_DATA };

/* Says whether the region has code that authenticates signed data. */
static enum signed_data taken_by(const struct image *image, const struct region *region)
{
	uint64_t size = region->end - region->start;
	uint32_t instruction;

	if (!(region->rights & RIGHT_EXECUTE))
		return NO_SIGNED_DATA;
	if (!region->bytes)
		return image->signatures.data ? PERHAPS_SIGNED_DATA : NO_SIGNED_DATA;
	for (uint64_t i = 0; size - i >= sizeof(instruction); i += sizeof(instruction)) {
		memcpy(&instruction, region->bytes + i, sizeof(instruction));
		if (image->arch->takes_signed_data(instruction))
			return SIGNED_DATA;
	}
	return NO_SIGNED_DATA;
}

static enum signed_data signed_data_of(const struct image *image)
{
	enum signed_data taken = NO_SIGNED_DATA;

	if (image->arch->takes_signed_data)
		for (size_t i = 0; i < image->region_count && taken == NO_SIGNED_DATA; i++)
			taken = taken_by(image, &image->regions[i]);
	return taken;
}

/* Limit the mask that the dump states, which may be anything, to the bits above addresses. */
static uint64_t usable(uint64_t said, uint64_t above)
{
	return said ? said & above : above;
}

void program_find_signatures(struct program *program, struct findings *findings)
{
	const struct image *image = program->image;
	uint64_t above = bits_above(image);
	enum signed_data signed_data;

	program->ignored_bits = image->arch->tag_bits;
	if (!image->arch->signs_returns)
		return;
	program->code_signature = usable(image->signatures.code, above);
	signed_data = signed_data_of(image);
	if (signed_data != NO_SIGNED_DATA)
		program->ignored_bits |= usable(image->signatures.data, above);
	if (signed_data == PERHAPS_SIGNED_DATA)
		findings_add(
			findings, FINDING_NOTE,
			"pointers may be signed here, as not all code is at hand to say: so more numbers look like addresses, and may hold leaks (--sysroot DIR has the program's files)");
}

uint64_t program_unsigned(const struct program *program, uint64_t word)
{
	uint64_t address = word & ~program->code_signature;

	return program_find_module(program, address) ? address : word;
}
