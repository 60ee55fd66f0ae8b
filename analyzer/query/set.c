#include "analyzer/query/set.h"

#include "analyzer/account/waste.h"
#include "analyzer/base/text.h"
#include "analyzer/query/chain.h"
#include "analyzer/query/collector_sets.h"
#include "analyzer/query/reference_choice.h"
#include "analyzer/query/string_users.h"
#include "analyzer/query/word_scan.h"

#include <inttypes.h>
#include <string.h>

/* Bits of struct set's roots. */
enum {
	THREAD_ROOTS = 1 << ROOT_STACK | 1 << ROOT_REGISTER,
	ALL_ROOTS = (1 << ROOT_KINDS) - 1,
};

static struct error *select_all(struct analysis *analysis, const struct set_arguments *arguments,
				struct bitmap *ret)
{
	bitmap_fill(ret);
	return NULL;
}

static struct error *select_free(struct analysis *analysis, const struct set_arguments *arguments,
				 struct bitmap *ret)
{
	select_all(analysis, arguments, ret);
	bitmap_minus(ret, allocation_used(analysis_index(analysis)));
	return NULL;
}

/*
 * What refers to a leaked allocation is leaked itself, or free; so it is enough to look at what the
 * leaked ones refer to.
 */
struct error *set_select_unreferenced(struct analysis *analysis,
				      const struct set_arguments *arguments, struct bitmap *ret)
{
	const struct bitmap *leaked = analysis_leaked(analysis);
	const struct graph *graph = analysis_graph(analysis);

	bitmap_copy(ret, leaked);
	bitmap_for_each(id, leaked) {
		struct edges edges = graph_outgoing(graph, (allocation_id)id);

		for (size_t i = 0; i < edges.count; i++)
			bitmap_clear(ret, edges.targets[i]);
	}
	return NULL;
}

struct error *set_select_leakroots(struct analysis *analysis, const struct set_arguments *arguments,
				   struct bitmap *ret)
{
	const struct leaks *leaks = analysis_leaks(analysis);

	for (size_t i = 0; i < leak_root_count(leaks); i++)
		bitmap_set(ret, leak_root(leaks, i)->id);
	return NULL;
}

/* Call visit for each kind of roots of which choice has the bit. */
static struct error *visit_kinds(struct analysis *analysis, uint32_t choice,
				 struct error *(*visit)(struct analysis *analysis,
							enum root_kind kind,
							struct bitmap *members),
				 struct bitmap *members)
{
	struct error *error = NULL;

	for (enum root_kind kind = 0; kind < ROOT_KINDS && !error; kind++)
		if (choice & UINT32_C(1) << kind)
			error = visit(analysis, kind, members);
	return error;
}

static struct error *add_targets(struct analysis *analysis, enum root_kind kind,
				 struct bitmap *members)
{
	bitmap_or(members, root_targets(analysis_roots(analysis), kind));
	return NULL;
}

static struct error *add_anchored(struct analysis *analysis, enum root_kind kind,
				  struct bitmap *members)
{
	const struct bitmap *anchored;
	struct error *error = analysis_anchored_by(analysis, kind, &anchored);

	if (!error)
		bitmap_or(members, anchored);
	return error;
}

static struct error *take_anchored_away(struct analysis *analysis, enum root_kind kind,
					struct bitmap *members)
{
	const struct bitmap *anchored;
	struct error *error = analysis_anchored_by(analysis, kind, &anchored);

	if (!error)
		bitmap_minus(members, anchored);
	return error;
}

static struct error *select_anchorpoints(struct analysis *analysis,
					 const struct set_arguments *arguments, struct bitmap *ret)
{
	return visit_kinds(analysis, arguments->roots, add_targets, ret);
}

static struct error *select_anchored_by(struct analysis *analysis,
					const struct set_arguments *arguments, struct bitmap *ret)
{
	return visit_kinds(analysis, arguments->roots, add_anchored, ret);
}

/* Those to which no other roots lead. */
static struct error *select_only_anchored_by(struct analysis *analysis,
					     const struct set_arguments *arguments,
					     struct bitmap *ret)
{
	bitmap_copy(ret, analysis_anchored(analysis));
	return visit_kinds(analysis, ~arguments->roots, take_anchored_away, ret);
}

static struct error *select_only_anchorpoints(struct analysis *analysis,
					      const struct set_arguments *arguments,
					      struct bitmap *ret)
{
	struct error *error = select_anchorpoints(analysis, arguments, ret);

	return error ? error : visit_kinds(analysis, ~arguments->roots, take_anchored_away, ret);
}

struct error *set_find_allocation(const struct analysis *analysis, uint64_t address,
				  allocation_id *ret)
{
	allocation_id id = allocation_find(analysis_index(analysis), address);

	if (id == NO_ALLOCATION)
		return error_create(ERROR_USAGE, "0x%" PRIx64 " is not in any allocation", address);
	*ret = id;
	return NULL;
}

static struct error *select_allocation(struct analysis *analysis,
				       const struct set_arguments *arguments, struct bitmap *ret)
{
	allocation_id id = NO_ALLOCATION;
	struct error *error = set_find_allocation(analysis, arguments->values[0], &id);

	if (!error)
		bitmap_set(ret, id);
	return error;
}

static struct error *add_edges(struct analysis *analysis, const struct graph *graph,
			       uint64_t address, struct bitmap *ret)
{
	allocation_id id = NO_ALLOCATION;
	struct error *error = set_find_allocation(analysis, address, &id);

	if (error)
		return error;
	struct edges edges = graph_outgoing(graph, id);

	for (size_t i = 0; i < edges.count; i++)
		bitmap_set(ret, edges.targets[i]);
	return NULL;
}

/* What it refers to, used and free. */
static struct error *select_targets(struct analysis *analysis,
				    const struct set_arguments *arguments, struct bitmap *ret)
{
	const struct graph *graph;
	struct error *error = reference_choice_outgoing(arguments->references, &graph);

	return error ? error : add_edges(analysis, graph, arguments->values[0], ret);
}

static struct error *select_outgoing(struct analysis *analysis,
				     const struct set_arguments *arguments, struct bitmap *ret)
{
	struct error *error = select_targets(analysis, arguments, ret);

	if (!error)
		bitmap_and(ret, allocation_used(analysis_index(analysis)));
	return error;
}

static struct error *select_freeoutgoing(struct analysis *analysis,
					 const struct set_arguments *arguments, struct bitmap *ret)
{
	struct error *error = select_targets(analysis, arguments, ret);

	if (!error)
		bitmap_minus(ret, allocation_used(analysis_index(analysis)));
	return error;
}

static struct error *select_incoming(struct analysis *analysis,
				     const struct set_arguments *arguments, struct bitmap *ret)
{
	const struct graph *graph;
	struct error *error = reference_choice_incoming(arguments->references, &graph);

	return error ? error : add_edges(analysis, graph, arguments->values[0], ret);
}

/* Whether an aligned word of the allocation refers to the start of another. */
static bool refers_to_start(struct reference_choice *choice, allocation_id id, allocation_id target)
{
	const struct analysis *analysis = choice->analysis;
	const struct allocation_index *index = analysis_index(analysis);
	uint64_t start = allocation_start(index, id), address, word;
	struct word_scan scan;

	word_scan_init(&scan, analysis_image(analysis), start, start + allocation_size(index, id));
	while (word_scan_next(&scan, &address, &word))
		if (word == allocation_start(index, target) &&
		    reference_choice_takes(choice, id, address - start, target))
			return true;
	return false;
}

static struct error *select_exactincoming(struct analysis *analysis,
					  const struct set_arguments *arguments, struct bitmap *ret)
{
	allocation_id id = NO_ALLOCATION;
	struct error *error = set_find_allocation(analysis, arguments->values[0], &id);

	if (!error)
		error = select_incoming(analysis, arguments, ret);
	if (error)
		return error;
	bitmap_for_each(referrer, ret)
		if (!refers_to_start(arguments->references, (allocation_id)referrer, id))
			bitmap_clear(ret, referrer);
	return NULL;
}

static struct error *select_derived(struct analysis *analysis,
				    const struct set_arguments *arguments, struct bitmap *ret)
{
	const struct bitmap *members = named_sets_find(analysis_named_sets(analysis), DERIVED_SET);

	if (members)
		bitmap_copy(ret, members);
	return NULL;
}

/* Which allocations are waste, as far as that makes sets. */
static struct error *find_waste(struct analysis *analysis, struct waste *ret)
{
	return waste_find(analysis, allocation_used(analysis_index(analysis)), WASTE_SETS, 0, ret);
}

static struct error *select_duplicates(struct analysis *analysis,
				       const struct set_arguments *arguments, struct bitmap *ret)
{
	_cleanup_(waste_deinit) struct waste waste = { 0 };
	struct error *error = find_waste(analysis, &waste);

	if (!error)
		bitmap_copy(ret, &waste.duplicates.copies);
	return error;
}

static struct error *select_zeros(struct analysis *analysis, const struct set_arguments *arguments,
				  struct bitmap *ret)
{
	_cleanup_(waste_deinit) struct waste waste = { 0 };
	struct error *error = find_waste(analysis, &waste);

	if (!error)
		bitmap_copy(ret, &waste.zeros);
	return error;
}

/* A set that only a comparison makes. */
static struct error *select_compared(struct analysis *analysis, const char *name,
				     struct bitmap *ret)
{
	const struct bitmap *members = named_sets_find(analysis_named_sets(analysis), name);

	if (!members)
		return error_create(
			ERROR_USAGE,
			"there is no set '%s' before this core was compared with an older one of the same process: try 'diff OLD' first",
			name);
	bitmap_copy(ret, members);
	return NULL;
}

static struct error *select_new(struct analysis *analysis, const struct set_arguments *arguments,
				struct bitmap *ret)
{
	return select_compared(analysis, NEW_SET, ret);
}

static struct error *select_survived(struct analysis *analysis,
				     const struct set_arguments *arguments, struct bitmap *ret)
{
	return select_compared(analysis, SURVIVED_SET, ret);
}

static struct error *select_named(struct analysis *analysis, const struct set_arguments *arguments,
				  struct bitmap *ret)
{
	const struct bitmap *members =
		named_sets_find(analysis_named_sets(analysis), arguments->name);

	if (!members)
		return set_unknown(analysis, arguments->name);
	bitmap_copy(ret, members);
	return NULL;
}

const struct set set_named = {
	.name = "a set of your own",
	.summary = "what 'let' gave that name to",
	.needs = STAGE_HEAP,
	.select = select_named,
};

static const struct set sets[] = {
	{ "allocations", "all allocations, used and free", NULL, STAGE_HEAP, select_all, NULL,
	  .example = "count allocations" },
	{ "used", "allocations in use", NULL, STAGE_HEAP, NULL, NULL, .state = STATE_USED,
	  .example = "summarize used\n"
		     "list used --sort-by bytes --limit 10",
	  .description =
		  "The program got each from an allocator, as by malloc() or new, and has not given it back." },
	{ "free", "free allocations, those in threads' caches included", NULL, STAGE_HEAP,
	  select_free, NULL, .example = "summarize free --sort-by bytes",
	  .description =
		  "Memory that the allocators keep for later. Much of it in many small pieces is a fragmented heap." },
	{ "threadcached", "free allocations in the caches of threads", NULL, STAGE_HEAP, NULL, NULL,
	  .state = STATE_CACHED, .example = "summarize threadcached",
	  .description =
		  "glibc's malloc keeps a few free allocations of each size for each thread (tcache). Their headers say used, but they are not." },
	{ "anchored", "used allocations that a root leads to", NULL, STAGE_REACHABILITY, NULL, NULL,
	  .state = STATE_ANCHORED,
	  .example = "count anchored\n"
		     "summarize anchored app::Session",
	  .description =
		  "A chain of references from static memory, a stack or a register holds each: 'explain' shows that chain." },
	{ "leaked", "used allocations that no root leads to", NULL, STAGE_REACHABILITY, NULL, NULL,
	  .state = STATE_LEAKED,
	  .example = "summarize leaked\n"
		     "list leaked --sort-by bytes --limit 10",
	  .description =
		  "Nothing can reach them any more, so nothing can free them. Many were lost along with something else: see 'leakroots'." },
	{ "unreferenced", "leaked allocations that no other used allocation refers to", NULL,
	  STAGE_REACHABILITY, set_select_unreferenced, NULL, .example = "summarize unreferenced",
	  .description =
		  "The simple idea of where leaks begin. A ring whose members refer to each other is missed; 'leakroots' has it." },
	{ "leakroots", "the leaked allocations, or rings of them, that all others hang on", NULL,
	  STAGE_LEAKS, set_select_leakroots, NULL,
	  .example = "summarize leakroots\n"
		     "explain leakroots --sort-by bytes --limit 3",
	  .description =
		  "Here something was lost, and what hangs on it with it: to mend these mends all leaks. Of a ring, one member is its root." },
	{ "collectable",
	  "used allocations that a garbage collector frees once nothing refers to them", NULL,
	  STAGE_HEAP, set_select_collectable, NULL, .example = "count collectable",
	  .description = "Memory of the Boehm collector, as of programs in Crystal." },
	{ "uncollectable", "used allocations of a garbage collector that the program has to free",
	  NULL, STAGE_HEAP, set_select_uncollectable, NULL, .example = "summarize uncollectable",
	  .description = "From GC_malloc_uncollectable() of the Boehm collector." },
	{ "unswept",
	  "allocations that a garbage collector found unused, though they cannot be used again yet",
	  NULL, STAGE_HEAP, NULL, NULL, .state = STATE_UNSWEPT, .example = "count unswept" },
	{ "garbage",
	  "collectable allocations that no root leads to: not leaked, as the collector will free them",
	  NULL, STAGE_REACHABILITY, NULL, NULL, .state = STATE_GARBAGE,
	  .example = "summarize garbage" },
	{ "heldbygarbage",
	  "allocations that only garbage leads to, and that nobody can free once that is gone",
	  NULL, STAGE_REACHABILITY, NULL, NULL, .state = STATE_HELD,
	  .example = "summarize heldbygarbage" },
	{ "atrisk",
	  "collectable allocations in use that the collector may free, as it does not see what refers to them",
	  NULL, STAGE_COLLECTOR, set_select_atrisk, NULL, .example = "explain atrisk --limit 3" },
	{ "anchorpoints", "allocations that a root refers to directly", NULL, STAGE_REACHABILITY,
	  select_anchorpoints, NULL, .roots = ALL_ROOTS, .example = "summarize anchorpoints",
	  .description = "All that is anchored hangs on one of these." },
	{ "staticanchorpoints", "allocations that static memory refers to directly", NULL,
	  STAGE_ROOTS, select_anchorpoints, NULL, .roots = 1 << ROOT_STATIC,
	  .example = "describe staticanchorpoints --sort-by bytes --limit 5",
	  .description =
		  "Static memory is the variables of the program and its libraries, and other memory outside of heaps and stacks." },
	{ "stackanchorpoints", "allocations that a stack refers to directly", NULL, STAGE_ROOTS,
	  select_anchorpoints, NULL, .roots = 1 << ROOT_STACK,
	  .example = "list stackanchorpoints --limit 5" },
	{ "registeranchorpoints", "allocations that a register refers to directly", NULL,
	  STAGE_ROOTS, select_anchorpoints, NULL, .roots = 1 << ROOT_REGISTER,
	  .example = "list registeranchorpoints" },
	{ "kernelanchorpoints", "allocations that the kernel holds for the program", NULL,
	  STAGE_REACHABILITY, select_anchorpoints, NULL, .roots = 1 << ROOT_KERNEL,
	  .example = "describe kernelanchorpoints",
	  .description =
		  "As a thread's stack for signals, what epoll hands back, or the value of a timer. 'run', 'snap' and '-p' ask the kernel; other cores do not tell." },
	{ "threadonlyanchorpoints",
	  "allocations that a stack or register refers to directly, and to which no static memory leads",
	  NULL, STAGE_REACHABILITY, select_only_anchorpoints, NULL, .roots = THREAD_ROOTS,
	  .example = "summarize threadonlyanchorpoints",
	  .description = "What a running function alone holds: it is temporary, or a leak soon." },
	{ "staticanchored", "allocations that static memory leads to", NULL, STAGE_REACHABILITY,
	  select_anchored_by, NULL, .roots = 1 << ROOT_STATIC,
	  .example = "summarize staticanchored" },
	{ "stackanchored", "allocations that a stack leads to", NULL, STAGE_REACHABILITY,
	  select_anchored_by, NULL, .roots = 1 << ROOT_STACK,
	  .example = "summarize stackanchored" },
	{ "registeranchored", "allocations that a register leads to", NULL, STAGE_REACHABILITY,
	  select_anchored_by, NULL, .roots = 1 << ROOT_REGISTER,
	  .example = "count registeranchored" },
	{ "kernelanchored", "allocations that what the kernel holds leads to", NULL,
	  STAGE_REACHABILITY, select_anchored_by, NULL, .roots = 1 << ROOT_KERNEL,
	  .example = "summarize kernelanchored" },
	{ "integeranchored",
	  "allocations whose address an interpreter keeps as an integer, and what these lead to",
	  NULL, STAGE_REACHABILITY, select_anchored_by, NULL, .roots = 1 << ROOT_INTEGER,
	  .example = "summarize integeranchored",
	  .description =
		  "As a Python int or a Ruby Integer, which ctypes and Fiddle hand out for addresses. Only what nothing else holds is looked for so." },
	{ "threadonlyanchored", "allocations that only stacks and registers lead to", NULL,
	  STAGE_REACHABILITY, select_only_anchored_by, NULL, .roots = THREAD_ROOTS,
	  .example = "summarize threadonlyanchored",
	  .description =
		  "They go when the functions that run now have returned, or else they leak." },
	{ "allocation", "the allocation that the address is in", "ADDRESS", STAGE_HEAP,
	  select_allocation, NULL, .example = "show allocation 55d0c0ffee10 --ascii",
	  .description = "The address may be anywhere inside of it." },
	{ "incoming", "used allocations that refer to the one at the address", "ADDRESS",
	  STAGE_INCOMING, select_incoming, NULL,
	  .example = "list incoming 55d0c0ffee10\n"
		     "summarize incoming 55d0c0ffee10",
	  .description =
		  "A word in them holds an address in it, of its start or of a byte inside." },
	{ "exactincoming", "used allocations that refer to the start of the one at the address",
	  "ADDRESS", STAGE_INCOMING, select_exactincoming, NULL,
	  .example = "list exactincoming 55d0c0ffee10",
	  .description = "Most references that are no chance are to the start." },
	{ "outgoing", "used allocations that the one at the address refers to", "ADDRESS",
	  STAGE_GRAPH, select_outgoing, NULL,
	  .example = "list outgoing 55d0c0ffee10\n"
		     "summarize outgoing 55d0c0ffee10" },
	{ "freeoutgoing", "free allocations that the one at the address refers to", "ADDRESS",
	  STAGE_GRAPH, select_freeoutgoing, NULL, .example = "list freeoutgoing 55d0c0ffee10",
	  .description =
		  "References to free allocations are left over, or a use of freed memory to come." },
	{ "chain",
	  "allocations along a chain: from the one at the address to what the word at the offset points into, and so on",
	  "ADDRESS OFFSET", STAGE_HEAP, NULL, NULL, chain_walk,
	  .example = "list chain 55d0c0ffee10 8 --limit 10",
	  .description =
		  "A linked list, if the offset is that of its next pointer. It ends at what is no used allocation, and at a cycle, which is reported." },
	{ "reversechain",
	  "the same backwards: from the one at the address to that whose word at the source offset points to the target offset of it, and so on",
	  "ADDRESS SOURCE_OFFSET TARGET_OFFSET", STAGE_INCOMING, NULL, NULL, reverse_chain_walk,
	  .example = "list reversechain 55d0c0ffee10 8 0 --limit 10",
	  .description =
		  "From an element of a linked list to those in front of it. It ends where no allocation refers so to the last one, or several do, and at a cycle." },
	{ "duplicates", "used allocations that hold the same as one at a lower address", NULL,
	  STAGE_PATTERNS, select_duplicates, NULL,
	  .example = "summarize duplicates --sort-by bytes\n"
		     "explain duplicates --limit 3",
	  .description =
		  "The first of those that hold the same is not among them. 'waste' tells what they take." },
	{ "zeros", "used allocations that hold nothing but zeros", NULL, STAGE_PATTERNS,
	  select_zeros, NULL, .example = "list zeros --sort-by bytes --limit 3",
	  .description = "Spare room of containers does not count." },
	{ DERIVED_SET, "what was put there by --set-operation", NULL, STAGE_HEAP, select_derived,
	  NULL,
	  .example = "count leaked --set-operation assign\n"
		     "count derived",
	  .description =
		  "'--set-operation assign' puts the members of any set there, '--set-operation subtract' takes them away. 'let' does the same with names of your own." },
	{ NEW_SET, "allocations in use that the oldest core has not", NULL, STAGE_HEAP, select_new,
	  NULL,
	  .example = "diff older.core\n"
		     "summarize new\n"
		     "explain new --sort-by bytes --limit 3",
	  .description =
		  "Known once 'diff' compared this core with older ones of the same process. What was freed and given out again for the same size and class looks as if it had survived." },
	{ SURVIVED_SET, "allocations in use in all cores that were compared", NULL, STAGE_HEAP,
	  select_survived, NULL,
	  .example = "diff older.core\n"
		     "count survived",
	  .description =
		  "Known once 'diff' compared this core with older ones of the same process." },
	{ "stacks", "the stacks of threads", NULL, STAGE_PROGRAM, NULL, &range_kind_stacks,
	  .example = "list stacks" },
	{ "threads", "threads, each as its stack", NULL, STAGE_DEBUG, NULL, &range_kind_threads,
	  .example = "describe threads" },
	{ "fibers", "fibers of Crystal, each as its stack", NULL, STAGE_FIBERS, NULL,
	  &range_kind_fibers,
	  .example = "list fibers\n"
		     "describe fibers",
	  .description =
		  "What a program in Crystal switches between by itself. 'describe' shows the calls that each is in." },
	{ "modules", "the program and its libraries", NULL, STAGE_PROGRAM, NULL,
	  &range_kind_modules, .example = "list modules" },
	{ "arenas", "the arenas of the allocators", NULL, STAGE_HEAP, NULL, &range_kind_arenas,
	  .example = "list arenas\n"
		     "summarize arenas",
	  .description = "What an allocator got from the system, and gives away in pieces." },
	{ "writable", "memory that can be written", NULL, STAGE_PROGRAM, NULL, &range_kind_writable,
	  .example = "summarize writable" },
	{ "readonly", "memory that can be read, but not written or executed", NULL, STAGE_PROGRAM,
	  NULL, &range_kind_readonly, .example = "list readonly --sort-by bytes --limit 5" },
	{ "rxonly", "memory that can be read and executed, but not written", NULL, STAGE_PROGRAM,
	  NULL, &range_kind_rxonly, .example = "list rxonly", .description = "Code, mostly." },
	{ "inaccessible", "memory that was mapped without any rights, as guards of stacks", NULL,
	  STAGE_PROGRAM, NULL, &range_kind_inaccessible, .example = "list inaccessible",
	  .description =
		  "Cores of the kernel tell of such memory. gcore writes it as if it could be read." },
	{ "maps", "all mapped memory, by address", NULL, STAGE_PROGRAM, NULL, &range_kind_maps,
	  .example = "list maps" },
	{ "roots", "memory outside of the heaps that is searched for pointers", NULL, STAGE_ROOTS,
	  NULL, &range_kind_roots, .example = "summarize roots",
	  .description = "What is referred to from there is anchored." },
	{ "pointers", "aligned words, anywhere in memory, of that value", "ADDRESS", STAGE_HEAP,
	  NULL, &range_kind_pointers,
	  .example = "enumerate pointers 55d0c0ffee10\n"
		     "describe pointers 55d0c0ffee10 --skip free",
	  .description =
		  "Wherever they stand: in allocations, stacks or static memory. '--skip' leaves some of these out." },
	{ "rangerefs", "aligned words, anywhere in memory, from START up to END, which is excluded",
	  "START END", STAGE_HEAP, NULL, &range_kind_rangerefs,
	  .example = "describe rangerefs 55d0c0ffee10 55d0c0ffee18",
	  .description =
		  "As 'pointers', but of a range of values: all that lead into one allocation, for example." },
	{ "relrefs",
	  "4 bytes, anywhere in memory, that lead to the address by their distance from it, as in code",
	  "ADDRESS", STAGE_HEAP, NULL, &range_kind_relrefs,
	  .example = "enumerate relrefs 55d0c0ffee10",
	  .description =
		  "Code refers to variables and functions so: by a signed distance from the byte behind it." },
	{ "stringusers", "used allocations with a C++ std::string in them", NULL, STAGE_HEAP,
	  set_select_stringusers, NULL,
	  .example = "summarize stringusers\n"
		     "list stringusers app::Session --limit 3",
	  .description =
		  "'summarize' tells by class and offset how many strings there are, empty, short and long, and what the long ones take." },
	{ "signatures", "what first words of used allocations point to", NULL, STAGE_CLASSES, NULL,
	  &range_kind_signatures,
	  .example = "summarize signatures\n"
		     "list signatures" },
};

const struct set *set_at(size_t number)
{
	return number < sizeof(sets) / sizeof(*sets) ? &sets[number] : NULL;
}

size_t set_argument_count(const struct set *set)
{
	const char *word = set->arguments;
	size_t count = 0;

	for (; word; word = strchr(word + 1, ' '))
		count++;
	return count;
}

/* Those of the table, then those that the user named. */
static const char *set_name(const void *data, size_t number)
{
	const struct analysis *analysis = data;
	const size_t count = sizeof(sets) / sizeof(*sets);

	if (number < count)
		return sets[number].name;
	return analysis ? named_sets_name(analysis_named_sets(analysis), number - count) : NULL;
}

const struct set *set_find(const char *name)
{
	const struct set *set;

	for (size_t i = 0; (set = set_at(i)) != NULL; i++)
		if (strcmp(set->name, name) == 0)
			return set;
	return NULL;
}

/* An address names a place, to 'describe' and 'explain', and no set. */
static struct error *no_set(const char *name)
{
	uint64_t address;
	struct error *error = parse_address(name, &address);

	if (error) {
		error_destroy(error);
		return error_unknown("set", name, NULL);
	}
	return error_create(
		ERROR_USAGE,
		"'%s' is an address, not a set; the set of what is there is 'allocation %" PRIx64
		"'",
		name, address);
}

struct error *set_unknown(const struct analysis *analysis, const char *name)
{
	const char *nearest = nearest_word(name, set_name, analysis);

	if (strcmp(name, "gone") == 0)
		return error_create(
			ERROR_USAGE,
			"what is gone is not in this core: look into the older one, for what 'diff' says is gone there");
	return nearest ? error_unknown("set", name, nearest) : no_set(name);
}
