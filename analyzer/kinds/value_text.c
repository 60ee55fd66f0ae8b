#include "analyzer/kinds/value_text.h"

#include "analyzer/base/macros.h"
#include "analyzer/kinds/library_values.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
	MOST_ELEMENTS = 200, /* of a value, and characters of a text */
	MOST_READ = 1 << 16, /* elements compared for repetition */
	DEEPEST = 10,
	REPEATS = 10, /* so many equal elements are printed as one */
};

struct printing {
	const struct analysis *analysis;
	const struct type_table *table;
	FILE *out;
	char *text; /* the printed text, once out is closed */
	size_t size;
	size_t left; /* elements that may be printed still */
};

static void print_value(struct printing *printing, type_number number, uint64_t address,
			size_t depth);

/* A number of up to eight bytes, little-endian. */
static bool read_number(const struct printing *printing, uint64_t address, uint64_t size,
			uint64_t *ret)
{
	*ret = 0;
	return size > 0 && size <= sizeof(*ret) &&
	       image_read(analysis_image(printing->analysis), address, ret, size);
}

static const char *enumerator_name(const struct printing *printing, const struct data_type *type,
				   uint64_t number)
{
	const struct type_member *members = type_members(printing->table, type);

	for (size_t i = 0; i < type->member_count; i++)
		if (members[i].offset == (uint32_t)number)
			return members[i].name;
	return NULL;
}

/* Flags that are all there: "(READ | WRITE)". */
static bool print_flags(struct printing *printing, const struct data_type *type, uint64_t number)
{
	const struct type_member *members = type_members(printing->table, type);
	uint64_t rest = number;
	const char *before = "(";

	for (size_t i = 0; i < type->member_count && rest; i++) {
		uint64_t flag = members[i].offset;

		if (flag && !(flag & (flag - 1)) && (rest & flag))
			rest &= ~flag;
	}
	if (rest || number == 0)
		return false;
	for (size_t i = 0; i < type->member_count && number; i++) {
		uint64_t flag = members[i].offset;

		if (!flag || flag & (flag - 1) || !(number & flag))
			continue;
		fprintf(printing->out, "%s%s", before, members[i].name ? members[i].name : "?");
		before = " | ";
		number &= ~flag;
	}
	fputc(')', printing->out);
	return true;
}

static int64_t sign_extend(uint64_t number, unsigned int bits)
{
	return (int64_t)(number << (64 - bits)) >> (64 - bits);
}

/* Print a number of that many bits. */
static void print_number(struct printing *printing, const struct data_type *type, uint64_t number,
			 unsigned int bits)
{
	const char *name = type->member_count ? enumerator_name(printing, type, number) : NULL;
	FILE *out = printing->out;
	double real;
	float single;

	if (name) {
		fputs(name, out);
	} else if (type->member_count) {
		if (!print_flags(printing, type, number))
			fprintf(out, "%" PRId64, sign_extend(number, bits));
	} else if (type->form == FORM_BOOLEAN && number <= 1) {
		fputs(number ? "true" : "false", out);
	} else if (type->form == FORM_FLOAT && bits == 64) {
		memcpy(&real, &number, sizeof(real));
		fprintf(out, "%.17g", real);
	} else if (type->form == FORM_FLOAT && bits == 32) {
		memcpy(&single, &number, sizeof(single));
		fprintf(out, "%.9g", (double)single);
	} else if (type->form == FORM_SIGNED) {
		fprintf(out, "%" PRId64, sign_extend(number, bits));
	} else {
		fprintf(out, "%" PRIu64, number);
	}
	if (type->kind == TYPE_CHARACTER && bits == 8 && number >= ' ' && number < 0x7f)
		fprintf(out, " '%c'", (char)number);
}

/* The text at address up to a NUL, at most size bytes; false: there is none that can be read. */
static bool print_text(struct printing *printing, uint64_t address, uint64_t size)
{
	FILE *out = printing->out;
	uint64_t count = 0, present;
	const uint8_t *bytes = image_bytes(analysis_image(printing->analysis), address, &present);

	if (!bytes)
		return false;
	if (size > present)
		size = present;
	while (count < size && count < MOST_ELEMENTS && bytes[count])
		count++;
	fputc('"', out);
	fwrite(bytes, 1, count, out);
	fputc('"', out);
	if (count < size && bytes[count])
		fputs("...", out);
	return true;
}

/* Print the pointer's target, unless it is text. */
static void print_target(struct printing *printing, uint64_t address)
{
	const struct analysis *analysis = printing->analysis;
	const struct allocation_index *index = analysis_index(analysis);
	allocation_id id = allocation_find(index, address);
	const char *name = NULL;
	uint64_t text, size;
	struct typed typed;

	if (id == NO_ALLOCATION) {
		name = debug_name(analysis_debug(analysis), address);
		if (name)
			fprintf(printing->out, " <%s>", name);
		return;
	}
	if (allocation_state(index, id) != BLOCK_USED) {
		fputs(" (free)", printing->out);
		return;
	}
	if (address == allocation_start(index, id) &&
	    runtimes_text(analysis_runtimes(analysis), id, &text, &size)) {
		fputc(' ', printing->out);
		print_text(printing, text, size);
		return;
	}
	name = runtimes_type_name(analysis_runtimes(analysis), id);
	if (!name && analysis_type_of(analysis, id, &typed))
		name = typing_name(analysis_typing(analysis), typed);
	if (!name && analysis_signature(analysis, id))
		name = classes_name(analysis_classes(analysis), analysis_signature(analysis, id));
	if (name && address == allocation_start(index, id))
		fprintf(printing->out, " (%s)", name);
	else if (name)
		fprintf(printing->out, " (0x%" PRIx64 " bytes into %s)",
			address - allocation_start(index, id), name);
}

/* Print a pointer to a known type, or to an unknown one. */
static void print_pointer(struct printing *printing, const struct data_type *target,
			  uint64_t address)
{
	uint64_t value;

	if (!image_read_word(analysis_image(printing->analysis), address, &value)) {
		fputs("(absent)", printing->out);
		return;
	}
	fprintf(printing->out, "0x%" PRIx64, value);
	if (value == 0)
		return;
	if (target && target->kind == TYPE_CHARACTER &&
	    image_find(analysis_image(printing->analysis), value)) {
		fputc(' ', printing->out);
		if (print_text(printing, value, UINT64_MAX))
			return;
	}
	print_target(printing, value);
}

static bool are_equal(const struct printing *printing, uint64_t one, uint64_t other, uint64_t size)
{
	const struct image *image = analysis_image(printing->analysis);
	uint64_t first, second;
	const uint8_t *left = image_bytes(image, one, &first);
	const uint8_t *right = image_bytes(image, other, &second);

	return left && right && first >= size && second >= size && memcmp(left, right, size) == 0;
}

static void print_array(struct printing *printing, const struct data_type *type, uint64_t address,
			size_t depth)
{
	const struct data_type *element = type_get(printing->table, type->target);
	const char *between = "";
	uint64_t compared = 0;

	if (element->kind == TYPE_CHARACTER && type->count) {
		if (!print_text(printing, address, type->count))
			fputs("(absent)", printing->out);
		return;
	}
	fputc('{', printing->out);
	for (uint64_t i = 0; element->size && i < type->count;) {
		uint64_t start = address + i * element->size, equal = 1;

		fputs(between, printing->out);
		between = ", ";
		if (printing->left == 0) {
			fputs("...", printing->out);
			break;
		}
		while (i + equal < type->count && ++compared < MOST_READ &&
		       are_equal(printing, start, start + equal * element->size, element->size))
			equal++;
		print_value(printing, type->target, start, depth + 1);
		if (equal < REPEATS)
			equal = 1;
		else
			fprintf(printing->out, " <repeats %" PRIu64 " times>", equal);
		i += equal;
	}
	fputc('}', printing->out);
}

static void print_bits(struct printing *printing, const struct type_member *member,
		       uint64_t address)
{
	unsigned int end = member->bit_offset + member->bit_size;
	uint64_t number;

	/* A field of more than 57 bits that begins within a byte has a ninth: none do. */
	if (end > 64 || !read_number(printing, address, (end + 7) / 8, &number)) {
		fputs("(absent)", printing->out);
		return;
	}
	number >>= member->bit_offset;
	if (member->bit_size < 64)
		number &= (UINT64_C(1) << member->bit_size) - 1;
	print_number(printing, type_get(printing->table, member->type), number, member->bit_size);
}

static void print_base(struct printing *printing, type_number type)
{
	const char *name = type_text(printing->table, type, "", "");

	fprintf(printing->out, "<%s> = ", name ? name : "base class");
}

static bool begins_with_any(const char *name, const char *const *starts, size_t count)
{
	for (size_t i = 0; name && i < count; i++)
		if (strncmp(name, starts[i], strlen(starts[i])) == 0)
			return true;
	return false;
}

/* The member that is all of a structure of Rust's library, which only wraps it; or NULL. */
static const struct type_member *find_wrapped(const struct printing *printing,
					      const struct data_type *type)
{
	static const char *const wrappers[] = { "core::mem::maybe_uninit::MaybeUninit<",
						"core::mem::manually_drop::ManuallyDrop<",
						"core::mem::maybe_dangling::MaybeDangling<",
						"core::ptr::non_null::NonNull<",
						"core::ptr::unique::Unique<" };
	const struct type_member *members = type_members(printing->table, type);

	if (!begins_with_any(type->name, wrappers, COUNT_OF(wrappers)))
		return NULL;
	for (size_t i = 0; i < type->member_count; i++)
		if (type_get(printing->table, members[i].type)->size == type->size)
			return &members[i];
	return NULL;
}

/* The text of a String or &str of Rust, which no 0 ends; of a Vec, what its elements are. */
static bool print_counted(struct printing *printing, const struct data_type *type, uint64_t address)
{
	static const char *const names[] = { "alloc::string::String", "&str",
					     "alloc::boxed::Box<str", "alloc::vec::Vec<" };
	struct library_value value;

	if (!begins_with_any(type->name, names, COUNT_OF(names)) ||
	    !library_value_read(printing->table, analysis_image(printing->analysis), type, address,
				&value))
		return false;
	if (value.is_text && value.length > 0)
		return print_text(printing, value.elements, value.length);
	if (value.is_text) {
		fputs("\"\"", printing->out);
		return true;
	}
	fprintf(printing->out, "{elements = 0x%" PRIx64, value.elements);
	print_target(printing, value.elements);
	fprintf(printing->out, ", len = %" PRIu64 "}", value.length);
	return true;
}

static void print_structure(struct printing *printing, const struct data_type *type,
			    uint64_t address, size_t depth)
{
	const struct type_member *wrapped = find_wrapped(printing, type);
	const struct type_member *members = type_members(printing->table, type);
	const char *between = "";

	if (wrapped) {
		print_value(printing, wrapped->type, address + wrapped->offset, depth + 1);
		return;
	}
	if (print_counted(printing, type, address))
		return;
	fputc('{', printing->out);
	for (size_t i = 0; i < type->member_count; i++) {
		uint64_t start = address + members[i].offset;

		fputs(between, printing->out);
		between = ", ";
		if (printing->left == 0) {
			fputs("...", printing->out);
			break;
		}
		if (members[i].is_base)
			print_base(printing, members[i].type);
		else if (members[i].name)
			fprintf(printing->out, "%s = ", members[i].name);
		if (members[i].bit_size)
			print_bits(printing, &members[i], start);
		else
			print_value(printing, members[i].type, start, depth + 1);
	}
	fputc('}', printing->out);
}

static void print_value(struct printing *printing, type_number number, uint64_t address,
			size_t depth)
{
	const struct data_type *type = type_get(printing->table, number);
	uint64_t value;

	if (printing->left)
		printing->left--;
	if (depth >= DEEPEST) {
		fputs("{...}", printing->out);
		return;
	}
	switch (type->kind) {
	case TYPE_NUMBER:
	case TYPE_CHARACTER:
		if (read_number(printing, address, type->size, &value))
			print_number(printing, type, value, (unsigned int)type->size * 8);
		else
			fprintf(printing->out, "(%" PRIu64 " bytes)", type->size);
		break;
	case TYPE_POINTER:
		print_pointer(printing, type_get(printing->table, type->target), address);
		break;
	case TYPE_ARRAY:
		print_array(printing, type, address, depth);
		break;
	case TYPE_STRUCTURE:
	case TYPE_UNION:
		print_structure(printing, type, address, depth);
		break;
	default:
		fputs("(of no known type)", printing->out);
		break;
	}
}

static bool begin(struct printing *printing, const struct analysis *analysis)
{
	*printing = (struct printing){
		.analysis = analysis,
		.table = analysis_typing(analysis) ? typing_types(analysis_typing(analysis)) : NULL,
		.left = MOST_ELEMENTS,
	};
	printing->out = open_memstream(&printing->text, &printing->size);
	return printing->out;
}

static char *finish(struct printing *printing)
{
	if (fclose(printing->out) == 0)
		return printing->text;
	free(printing->text);
	return NULL;
}

char *value_text_of(const struct analysis *analysis, type_number type, uint64_t address)
{
	struct printing printing;

	if (!begin(&printing, analysis))
		return NULL;
	print_value(&printing, type, address, 0);
	return finish(&printing);
}

char *value_text_of_elements(const struct analysis *analysis, type_number element, uint64_t address,
			     uint64_t count)
{
	const struct data_type array = { .kind = TYPE_ARRAY, .target = element, .count = count };
	struct printing printing;

	if (!begin(&printing, analysis))
		return NULL;
	print_array(&printing, &array, address, 0);
	return finish(&printing);
}

char *value_text_of_member(const struct analysis *analysis, const struct type_member *member,
			   uint64_t address)
{
	struct printing printing;

	if (!begin(&printing, analysis))
		return NULL;
	if (member->bit_size)
		print_bits(&printing, member, address + member->offset);
	else
		print_value(&printing, member->type, address + member->offset, 0);
	return finish(&printing);
}

char *value_text_of_word(const struct analysis *analysis, uint64_t address)
{
	struct printing printing;

	if (!begin(&printing, analysis))
		return NULL;
	print_pointer(&printing, NULL, address);
	return finish(&printing);
}

char *value_text_of_text(const struct analysis *analysis, uint64_t address, uint64_t length)
{
	struct printing printing;

	if (!begin(&printing, analysis))
		return NULL;
	if (!print_text(&printing, address, length))
		fputs("(absent)", printing.out);
	return finish(&printing);
}
