#include "analyzer/analysis/liveness.h"
#include "analyzer/kinds/types.h"

#include "analyzer/classify/reference_judge.h"
#include "tests/allocators/glibc/process.h"

/*
 * A runtime that is this file alone: objects of malloc's heap that begin with a number of the
 * language, their class and a count of references.
 *
 *	| MAGIC | class | count | first field ... |
 */
enum { MAGIC = 0x7079, ACCOUNT = 1, SESSION = 2, CLASSES = 2, IMMORTAL = -1, HEADER = 24 };

static const char *const class_names[] = { NULL, "Account", "Session" };

/* The word of the object; 0 if it is none. */
static uint64_t read_object(const struct object_space *space, allocation_id id, size_t number)
{
	uint64_t words[HEADER / sizeof(uint64_t)];

	return image_read(space->image, allocation_start(space->index, id), words, sizeof(words)) &&
			       words[0] == MAGIC
		       ? words[number]
		       : 0;
}

static struct error *find_objects(struct object_space *space, struct debug *debug)
{
	uint32_t class;

	TRY(object_classes_init(&space->classes, allocation_count(space->index), space->account));
	for (allocation_id id = 0; id < allocation_count(space->index); id++) {
		if (!read_object(space, id, 1))
			continue;
		TRY(object_classes_know(&space->classes, read_object(space, id, 1), &class));
		TRY(object_classes_set(&space->classes, id, class));
	}
	space->has_objects = true;
	return NULL;
}

static const char *class_name(struct object_space *space, uint64_t number,
			      enum class_name_kind *ret_kind)
{
	*ret_kind = CLASS_NAMED;
	return class_names[number];
}

static bool visit_bases(struct object_space *space, uint64_t number,
			bool (*visit)(void *data, const char *name), void *data)
{
	return visit(data, "Thing");
}

static const char *field_name(struct object_space *space, uint64_t number, uint64_t offset)
{
	return number == SESSION && offset == HEADER ? "account" : NULL;
}

static bool may_refer(const struct object_space *space, allocation_id id, uint64_t offset)
{
	return offset >= HEADER;
}

static bool liveness(const struct object_space *space, allocation_id id,
		     struct object_liveness *ret)
{
	ret->has_count = true;
	ret->count = read_object(space, id, 2);
	ret->is_immortal = ret->count == (uint64_t)IMMORTAL;
	return true;
}

static const struct runtime runtime_toy = {
	.name = "toy",
	.find_objects = find_objects,
	.class_name = class_name,
	.visit_bases = visit_bases,
	.layout = &(const struct runtime_layout){ .field_name = field_name },
	.may_refer = may_refer,
	.liveness = liveness,
};

static const struct runtime *const kinds[] = { &runtime_toy, NULL };

static uint64_t make(struct process *process, uint64_t class, uint64_t count, uint64_t field)
{
	uint64_t object = process_allocate(process, 0x30);

	core_set(&process->core, object, MAGIC);
	core_set(&process->core, object + 8, class);
	core_set(&process->core, object + 16, count);
	core_set(&process->core, object + HEADER, field);
	return object;
}

struct toys {
	struct process process;
	uint64_t accounts[2], session, other;
};

static void toys_init(struct toys *toys)
{
	struct process *process = &toys->process;

	process_init(process, &GLIBC_2_36);
	toys->accounts[0] = make(process, ACCOUNT, 1, 0);
	toys->accounts[1] = make(process, ACCOUNT, (uint64_t)IMMORTAL, 0);
	toys->session = make(process, SESSION, 3, toys->accounts[0]);
	toys->other = process_allocate(process, 0x30);
	core_set(&process->core, DATA, toys->session);
	core_set(&process->core, DATA + 8, toys->accounts[1]);
	core_set(&process->core, DATA + 16, toys->other);
	process_finish(process);
	process_open(process, STAGE_IMAGE);
	analysis_set_runtimes(process->analysis, kinds);
	assert_no_error(analysis_need(process->analysis, STAGE_OWNERS));
	assert_no_error(analysis_need(process->analysis, STAGE_CLASSES));
}

static void toys_deinit(struct toys *toys)
{
	process_deinit(&toys->process);
}
DEFINE_DEINIT(toys_deinit, struct toys)

static const char *class_at(const struct toys *toys, uint64_t address)
{
	struct analysis *analysis = toys->process.analysis;
	uint64_t signature = analysis_signature(analysis, process_find(&toys->process, address));

	return signature ? classes_name(analysis_classes(analysis), signature) : NULL;
}

TEST(objects_have_the_names_of_their_classes)
{
	_cleanup_(toys_deinit) struct toys toys;

	toys_init(&toys);
	assert_string_equal(class_at(&toys, toys.accounts[0]), "Account");
	assert_string_equal(class_at(&toys, toys.session), "Session");
	assert_null(class_at(&toys, toys.other));
	assert_true(classes_is_a(analysis_classes(toys.process.analysis), SESSION, "Thing"));
}

TEST(objects_are_counted_by_class)
{
	_cleanup_(toys_deinit) struct toys toys;
	_cleanup_(types_deinit) struct types types = { 0 };

	toys_init(&toys);
	assert_no_error(types_find(toys.process.analysis, TYPES_OBJECTS, &types));
	assert_int_equal(types.count, 2);
	assert_string_equal(types.list[0].name, "Account");
	assert_int_equal(types.list[0].count, 2);
	assert_string_equal(types.list[1].name, "Session");
}

TEST(fields_have_names)
{
	_cleanup_(toys_deinit) struct toys toys;
	const struct runtimes *runtimes;
	allocation_id session;

	toys_init(&toys);
	runtimes = analysis_runtimes(toys.process.analysis);
	session = process_find(&toys.process, toys.session);
	assert_string_equal(runtimes_field_name(runtimes, session, HEADER), "account");
	assert_null(runtimes_field_name(runtimes, session, 0));
	assert_null(runtimes_field_name(runtimes, process_find(&toys.process, toys.other), HEADER));
}

TEST(words_that_hold_no_references_are_tainted)
{
	_cleanup_(toys_deinit) struct toys toys;
	struct reference_judge judge;

	toys_init(&toys);
	reference_judge_init(&judge, analysis_patterns(toys.process.analysis));
	reference_judge_set_source(&judge, process_find(&toys.process, toys.session));
	assert_non_null(reference_judge_taint(&judge, 16));
	assert_null(reference_judge_taint(&judge, HEADER));
}

TEST(how_objects_are_kept_is_told)
{
	_cleanup_(toys_deinit) struct toys toys;
	const struct runtimes *runtimes;
	char text[64];

	toys_init(&toys);
	runtimes = analysis_runtimes(toys.process.analysis);
	assert_true(runtimes_tell(runtimes, process_find(&toys.process, toys.session), text,
				  sizeof(text)));
	assert_string_equal(text, "kept by a count of 3 references");
	assert_true(runtimes_tell(runtimes, process_find(&toys.process, toys.accounts[1]), text,
				  sizeof(text)));
	assert_string_equal(text, "immortal");
	assert_false(runtimes_tell(runtimes, process_find(&toys.process, toys.other), text,
				   sizeof(text)));
}

static bool is_no_link(const struct object_space *space, allocation_id source, allocation_id target,
		       uint64_t word, uint64_t place)
{
	return false;
}

static bool is_collected(const struct object_space *space, allocation_id id)
{
	return object_class_of(space, id) != 0;
}

TEST(objects_that_a_collector_frees_are_garbage)
{
	_cleanup_(process_deinit) struct process process;
	struct runtime collected = runtime_toy;
	const struct runtime *const list[] = { &collected, NULL };
	uint64_t lost, held, block;

	collected.is_link = is_no_link;
	collected.is_collected = is_collected;
	process_init(&process, &GLIBC_2_36);
	block = process_allocate(&process, 0x30);
	held = process_allocate(&process, 0x30);
	lost = make(&process, ACCOUNT, 1, held);
	process_finish(&process);
	process_open(&process, STAGE_IMAGE);
	analysis_set_runtimes(process.analysis, list);
	assert_no_error(analysis_need(process.analysis, STAGE_REACHABILITY));
	assert_int_equal(liveness_of(process.analysis, process_find(&process, lost)),
			 STATE_GARBAGE);
	assert_int_equal(liveness_of(process.analysis, process_find(&process, held)), STATE_HELD);
	assert_int_equal(liveness_of(process.analysis, process_find(&process, block)),
			 STATE_LEAKED);
}
