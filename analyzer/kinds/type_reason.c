#include "analyzer/kinds/type_reason.h"

#include "analyzer/base/text.h"
#include "analyzer/types/member_path.h"

#include <inttypes.h>
#include <string.h>

enum {
	MOST_STEPS = 10000,	 /* allocations further away have no path */
	SHOWN_FIRST = 4,	 /* of a longer path */
	SHOWN_LAST = 3,		 /* the same */
	MOST_SEARCHED = 1 << 20, /* words of what may hold a pointer */
};

/* The start of a path: "local.orders" and " of main(), frame 0 of thread 4711". */
struct origin {
	char *variable; /* owned */
	char *where;	/* in it */
};

/* Why an allocation has a type to which no variable leads: it is the start of a path, as one is. */
static const char *own_reason(const struct analysis *analysis, uint64_t address)
{
	allocation_id id = allocation_find(analysis_index(analysis), address);
	struct typed typed;

	if (id == NO_ALLOCATION || !typing_of(analysis_typing(analysis), id, &typed))
		return "";
	return typed.is_stated	   ? " of stated type"
	       : typed.is_inferred ? " by its pointers"
				   : " by its vtable";
}

static const char *name_variable(const struct analysis *analysis, uint64_t address)
{
	struct debug *debug = analysis_debug(analysis);
	const struct stack *stack = program_find_stack(analysis_program(analysis), address);
	const char *name = debug_thread_local(debug, address);

	if (!name && stack && stack->thread != NO_THREAD)
		name = debug_stack_place(debug, stack->thread, address);
	return name ? name : debug_name(debug, address);
}

/* Split it in front of the function, thread or module that it is in. */
static bool origin_init(struct origin *origin, const struct analysis *analysis,
			const struct type_step *step)
{
	static const char *const words[] = { "variable ", "parameter " };
	const char *name = name_variable(analysis, step->address);
	char *where;

	*origin = (struct origin){ NULL };
	if (step->is_in_register && name) {
		/* The stack there says which function it is. */
		const char *function = strstr(name, " of ");

		if (asprintf(&origin->variable, "register%s", function ? function : " in code") < 0)
			return false;
	} else if (name) {
		for (size_t i = 0; i < COUNT_OF(words); i++)
			if (strncmp(name, words[i], strlen(words[i])) == 0)
				name += strlen(words[i]);
		origin->variable = strdup(name);
	} else if (asprintf(&origin->variable, "0x%" PRIx64 "%s", step->address,
			    own_reason(analysis, step->address)) < 0) {
		return false;
	}
	if (!origin->variable)
		return false;
	where = strstr(origin->variable, " of ");
	if (!where)
		where = strrchr(origin->variable, '(');
	if (where && where > origin->variable && where[-1] == ' ')
		where--;
	origin->where =
		where && *where == ' ' ? where : origin->variable + strlen(origin->variable);
	return true;
}

static void origin_deinit(struct origin *origin)
{
	free(origin->variable);
}
DEFINE_DEINIT(origin_deinit, struct origin)

/* The path from a pointer to the allocation to a field of it. */
static void print_field(const struct analysis *analysis, allocation_id id, uint64_t address,
			bool is_first, FILE *out)
{
	const struct typing *typing = analysis_typing(analysis);
	uint64_t offset = address - allocation_start(analysis_index(analysis), id);
	const struct type_table *table = typing_types(typing);
	_cleanup_(free) char *text = NULL;
	struct typed typed;
	size_t size;
	FILE *field;

	if (!typing_of(typing, id, &typed) || typed_is_within(typed)) {
		fprintf(out, "+0x%" PRIx64, offset);
		return;
	}
	field = open_memstream(&text, &size);
	if (!field)
		return;
	if (typed.fit == FIT_ARRAY) {
		uint64_t element = type_get(table, typed.type)->size;

		fprintf(field, "[%" PRIu64 "]", offset / element);
		offset %= element;
	}
	member_path_print(table, typed.type, offset, field);
	if (fclose(field) != 0)
		return;
	/* ".next" of what a pointer leads to is "->next". */
	if (text[0] == '.')
		fprintf(out, "%s%s", is_first ? "" : "->", text + 1);
	else
		fputs(text, out);
}

char *type_field(const struct analysis *analysis, allocation_id from, allocation_id to)
{
	const struct allocation_index *index = analysis_index(analysis);
	const unsigned int width = image_word_size(analysis_image(analysis));
	uint64_t start = allocation_start(index, from), count, word;
	struct typed typed;
	char *text = NULL;
	size_t size;
	FILE *out;

	if (!typing_of(analysis_typing(analysis), from, &typed) || typed_is_within(typed))
		return NULL;
	count = allocation_size(index, from) / width;
	for (uint64_t i = 0; i < count && i < MOST_SEARCHED; i++) {
		uint64_t address = start + i * width;

		if (!image_read_word(analysis_image(analysis), address, &word) ||
		    word - allocation_start(index, to) >= allocation_size(index, to))
			continue;
		out = open_memstream(&text, &size);
		if (!out)
			return NULL;
		print_field(analysis, from, address, true, out);
		if (fclose(out) == 0)
			return text;
		free(text);
		return NULL;
	}
	return NULL;
}

/* The steps from the allocation back to a variable; how many there are, or 0: too many, or none. */
static size_t find_steps(const struct typing *typing, allocation_id id,
			 struct type_step ret[static MOST_STEPS])
{
	for (size_t count = 0; count < MOST_STEPS; id = ret[count++].from) {
		if (!typing_step_to(typing, id, &ret[count]))
			return 0;
		if (ret[count].from == NO_ALLOCATION)
			return count + 1;
	}
	return 0;
}

static char *print_path(const struct analysis *analysis, const struct type_step *steps,
			size_t count)
{
	_cleanup_(origin_deinit) struct origin origin;
	char *text = NULL;
	size_t size;
	FILE *out;

	if (!origin_init(&origin, analysis, &steps[count - 1]))
		return NULL;
	out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	fprintf(out, "%.*s", (int)(origin.where - origin.variable), origin.variable);
	for (size_t i = count - 1; i-- > 0;) {
		if (count > SHOWN_FIRST + SHOWN_LAST + 1 && i == count - 1 - SHOWN_FIRST - 1) {
			fputs("->...", out);
			i = SHOWN_LAST - 1;
		}
		print_field(analysis, steps[i].from, steps[i].address, false, out);
	}
	if (count > 1)
		fprintf(out, ", %zu steps from %.*s", count, (int)(origin.where - origin.variable),
			origin.variable);
	fputs(origin.where, out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static const char *name_like(const struct typing *typing, const struct sibling_type *like)
{
	return typing_name(typing,
			   (struct typed){ like->type, like->is_array ? FIT_ARRAY : FIT_ONE });
}

/* Large counts are inexact, because only a part of the heap may have types. */
static char *format_others(const struct analysis *analysis, const struct sibling_type *like)
{
	enum { MANY = 1000 };
	const struct sibling_type *from =
		like->is_by_link ? siblings_of(analysis_siblings(analysis), like->example) : NULL;
	const char *size = like->size == ANY_SIZE || like->size == ANY_ARRAY ? "of several sizes"
									     : "of its size";

	if (from)
		return format_text("a pointer of leaked %s",
				   name_like(analysis_typing(analysis), from));
	return like->count > MANY ? format_text("more than 1,000 others %s", size)
				  : format_text("%" PRIu64 " others %s", like->count, size);
}

/* Describe as "by 48 others of its size, as shop.customers->orders, 2 steps from shop". */
static bool find_like(const struct analysis *analysis, const struct sibling_type *like,
		      struct type_step *steps, struct type_reason *ret)
{
	const struct typing *typing = analysis_typing(analysis);
	size_t count = like->is_by_link ? 0 : find_steps(typing, like->example, steps);
	_cleanup_(free) char *path = count ? print_path(analysis, steps, count) : NULL;
	_cleanup_(free) char *others = format_others(analysis, like);

	*ret = (struct type_reason){
		.type = name_like(typing, like),
		.sure = "looks like",
		.path = others ? format_text("%s%s%s", others, path ? ", as " : "",
					     path ? path : "")
			       : NULL,
	};
	return ret->path;
}

bool type_reason_find(const struct analysis *analysis, allocation_id id, struct type_reason *ret)
{
	const struct typing *typing = analysis_typing(analysis);
	_cleanup_(free) struct type_step *steps = calloc(MOST_STEPS, sizeof(*steps));
	struct typed typed = { NO_TYPE, FIT_NONE };
	const struct sibling_type *like = siblings_of(analysis_siblings(analysis), id);
	struct type_step step;
	size_t count;

	if (steps && like)
		return find_like(analysis, like, steps, ret);
	if (!steps || !typing || !typing_step_to(typing, id, &step))
		return false;
	*ret = (struct type_reason){ .sure = "held by" };
	if (typing_of(typing, id, &typed))
		ret->type = typing_name(typing, typed);
	if (ret->type && typed.is_stated) {
		ret->sure = "stated by the user";
		return true;
	}
	if (ret->type)
		ret->sure =
			typed.fit <= FIT_PREFIX || typed.is_inferred ? "looks like"
			: typed.fit == FIT_ONE && step.from == NO_ALLOCATION && !step.led_to_other
				? "certain"
				: "typed";
	ret->values = typing_values_in(typing, id, typed.type);
	if (ret->values == 1)
		ret->values = 0;
	count = find_steps(typing, id, steps);
	ret->path = count ? print_path(analysis, steps, count)
			  : strdup("a path of more than 10,000 steps");
	return ret->path;
}
