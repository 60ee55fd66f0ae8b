/*
 * Notes: registers, the process, mapped files. Layouts are those that formats/elf_core.c reads.
 */
#include "analyzer/base/macros.h"
#include "analyzer/image/own_notes.h"
#include "analyzer/slim/parts.h"

#include <elf.h>
#include <string.h>

enum { NOTE_ALIGNMENT = 4, MOST_FLAGS = 1 << 22, MOST_CONTENTS = 1 << 30 };

struct note {
	const char *owner;
	uint32_t type;
	uint8_t *bytes; /* to be changed */
	size_t size;
};

static size_t aligned(size_t size)
{
	return (size + NOTE_ALIGNMENT - 1) & ~(size_t)(NOTE_ALIGNMENT - 1);
}

/* True for what says how the thread runs, and no value of the program's. */
static bool is_of_state(const struct arch *arch, unsigned int number, uint64_t word)
{
	if (number == arch->system_call || number == arch->instruction ||
	    number == arch->stack_pointer || number == arch->thread_pointer)
		return true;
	/* Segments and flags. */
	return arch->registers[number].unwound == NOT_A_REGISTER && word < MOST_FLAGS;
}

/* The size of what a system call reads into memory, which is no root then. */
static bool is_size_of_call(const struct arch *arch, const uint8_t *registers, unsigned int number)
{
	unsigned int word = arch_word_size(arch);
	enum system_call call = arch_system_call(
		arch, load_word(registers + (size_t)arch->system_call * word, word));

	return arch->registers[number].unwound == arch->parameters[2] &&
	       (call == SYSTEM_CALL_READ || call == SYSTEM_CALL_EVENTS ||
		call == SYSTEM_CALL_READV);
}

static void clear_status(const struct slim_rules *rules, const struct note *note)
{
	const struct arch *arch = rules->image->arch;
	uint8_t *registers = note->bytes + arch->status.registers;

	for (unsigned int i = 0; i < arch->register_count; i++) {
		uint8_t *place = registers + (size_t)i * rules->word;
		uint64_t word = load_word(place, rules->word);

		if (!slim_is_address(rules, word) && !is_of_state(arch, i, word) &&
		    !is_size_of_call(arch, registers, i))
			memset(place, 0, rules->word);
	}
}

/* True for control words and the like of the processor's own, at that offset. */
static bool is_own(const struct arch *arch, size_t offset)
{
	for (size_t i = 0; i < COUNT_OF(arch->vectors_head); i++)
		if (offset >= arch->vectors_head[i].start && offset < arch->vectors_head[i].end)
			return true;
	return false;
}

/* Clear all but addresses, which may be anywhere in a vector. */
static void clear_vectors(const struct slim_rules *rules, const struct note *note)
{
	size_t kept = 0;

	for (size_t i = 0; i < note->size; i++) {
		if (i + rules->word <= note->size &&
		    slim_is_address(rules, load_word(note->bytes + i, rules->word)))
			kept = i + rules->word;
		if (i >= kept && !is_own(rules->image->arch, i))
			note->bytes[i] = 0;
	}
}

/* Clear the command line but for the program's name. */
static void clear_command(const struct note *note)
{
	enum { COMMAND_SIZE = 80 }; /* at the end */
	char *command = (char *)note->bytes + note->size - COMMAND_SIZE;
	size_t length = strcspn(command, " ");

	if (length < COMMAND_SIZE)
		memset(command + length, 0, COMMAND_SIZE - length);
}

/* Clear the value that the sender of a signal chose; the rest is the kernel's. */
static void clear_signal(const struct slim_rules *rules, const struct note *note)
{
	/* Behind three numbers, aligned, and the sender, or the address of a fault. */
	size_t value = rules->word == sizeof(uint64_t) ? 24 : 20;

	if (note->size > value)
		memset(note->bytes + value, 0, note->size - value);
}

/* The kernel holds any value that the program gave it. */
static void clear_held(const struct slim_rules *rules, const struct note *note)
{
	struct held_value value;

	for (size_t i = sizeof(uint64_t); i + sizeof(value) <= note->size; i += sizeof(value)) {
		memcpy(&value, note->bytes + i, sizeof(value));
		if (!slim_is_address(rules, value.value))
			memset(note->bytes + i, 0, sizeof(value.value));
	}
}

/* Clear the note; false: nothing is known of it that would stay. */
static bool clear_own(const struct slim_rules *rules, const struct note *note)
{
	switch (note->type) {
	case NOTE_HELD:
		clear_held(rules, note);
		return true;
	case NOTE_SMAPS:
	case NOTE_CUTS:
	case NOTE_TIME:
	case NOTE_UNSHARED:
		return true;
	case NOTE_SLIM:
		if (rules->hash_names && note->size > offsetof(struct slim_note, flags))
			note->bytes[offsetof(struct slim_note, flags)] |= SLIM_HASHED_NAMES;
		return true;
	default:
		return false;
	}
}

static bool clear_note(const struct slim_rules *rules, const struct note *note)
{
	const struct arch *arch = rules->image->arch;
	size_t info_size = rules->word == sizeof(uint64_t) ? 136 : 124;

	if (strcmp(note->owner, NOTE_OWNER) == 0)
		return clear_own(rules, note);
	if (strcmp(note->owner, "CORE") != 0 && strcmp(note->owner, "LINUX") != 0)
		return false;
	if (note->type == NT_FPREGSET || note->type == arch->vectors_note) {
		clear_vectors(rules, note);
		return true;
	}
	switch (note->type) {
	case NT_PRSTATUS:
		if (note->size < arch->status.size)
			return false;
		clear_status(rules, note);
		return true;
	case NT_PRPSINFO:
		if (note->size < info_size)
			return false;
		clear_command(note);
		return true;
	case NT_SIGINFO:
		clear_signal(rules, note);
		return true;
	case NT_AUXV:
	case NT_FILE:
		return true;
	default:
		return (arch->thread_pointer == NOT_A_REGISTER &&
			note->type == arch->thread_pointer_note) ||
		       (arch->signature_note && note->type == arch->signature_note);
	}
}

static bool reserve(struct slim_notes *notes, size_t more)
{
	size_t room = notes->room ? notes->room : PAGE;
	uint8_t *bytes;

	while (room - notes->size < more)
		room *= 2;
	if (room == notes->room)
		return true;
	bytes = realloc(notes->bytes, room);
	if (!bytes)
		return false;
	notes->bytes = bytes;
	notes->room = room;
	return true;
}

/* Append the note as it is; returns where its description is, or NULL. */
static uint8_t *append(struct slim_notes *notes, const char *owner, uint32_t type,
		       const uint8_t *bytes, size_t size)
{
	Elf64_Nhdr header = { (Elf64_Word)strlen(owner) + 1, (Elf64_Word)size, type };
	size_t name = aligned(header.n_namesz), all = sizeof(header) + name + aligned(size);
	uint8_t *place;

	if (!reserve(notes, all))
		return NULL;
	place = notes->bytes + notes->size;
	memset(place, 0, all);
	memcpy(place, &header, sizeof(header));
	memcpy(place + sizeof(header), owner, header.n_namesz);
	memcpy(place + sizeof(header) + name, bytes, size);
	notes->size += all;
	return place + sizeof(header) + name;
}

/* Append what may stay of a note. */
static struct error *add(struct slim_notes *notes, const struct slim_rules *rules,
			 const char *owner, uint32_t type, const uint8_t *bytes, size_t size,
			 struct slim_tally *tally)
{
	size_t before = notes->size;
	struct note note = { owner, type, append(notes, owner, type, bytes, size), size };

	TRY_MEMORY(note.bytes);
	if (!clear_note(rules, &note)) {
		notes->size = before;
		tally->placeholders += size;
		return NULL;
	}
	for (size_t i = 0; i < size; i++) {
		tally->zeros += bytes[i] == 0;
		tally->structure += bytes[i] != 0 && bytes[i] == note.bytes[i];
		tally->placeholders += bytes[i] != note.bytes[i];
	}
	return NULL;
}

struct error *slim_notes_add(struct slim_notes *notes, const struct slim_rules *rules,
			     const uint8_t *bytes, size_t size, struct slim_tally *tally)
{
	Elf64_Nhdr header;
	size_t place = 0;

	while (size - place >= sizeof(header)) {
		const char *owner = (const char *)bytes + place + sizeof(header);
		size_t name, description;

		memcpy(&header, bytes + place, sizeof(header));
		place += sizeof(header);
		name = aligned(header.n_namesz);
		description = aligned(header.n_descsz);
		if (name > size - place || description > size - place - name)
			break;
		if (header.n_namesz > 0 && owner[header.n_namesz - 1] == '\0')
			TRY(add(notes, rules, owner, header.n_type, bytes + place + name,
				header.n_descsz, tally));
		place += name + description;
	}
	return NULL;
}

static struct error *add_own(struct slim_notes *notes, uint32_t type, const void *bytes,
			     size_t size)
{
	TRY_MEMORY(append(notes, NOTE_OWNER, type, bytes, size));
	return NULL;
}

struct error *slim_notes_end(struct slim_notes *notes, const struct slim_rules *rules)
{
	const struct range_list *contents = &rules->contents;
	const struct image *image = rules->image;
	uint64_t size = contents->count * sizeof(*contents->items);
	struct slim_note note = {
		.version = 1,
		.flags = (image->origin.by_debugger ? SLIM_BY_DEBUGGER : 0U) |
			 (image->origin.unpacked ? SLIM_UNPACKED : 0U) |
			 (rules->hash_names ? SLIM_HASHED_NAMES : 0U),
		.random = image_random_hash(image),
	};

	_Static_assert(sizeof(*contents->items) == sizeof(struct note_range), "one is the other");
	if (size > MOST_CONTENTS)
		return error_create(
			ERROR_NOT_SUPPORTED,
			"has too many allocations that --keep names: a note cannot list them");
	if (!image_is_slim(image))
		TRY(add_own(notes, NOTE_SLIM, &note, sizeof(note)));
	return size ? add_own(notes, NOTE_KEPT, contents->items, size) : NULL;
}
