#include "analyzer/runtimes/crystal/code.h"

#include "tests/analyzer/image/core_builder.h"

/* Code stands at CODE; what allocates, at MAKER; constants, at DATA. */
static const uint64_t CODE = 0x400000, MAKER = 0x400800, OTHER = 0x400900, DATA = 0x402000,
		      LENGTH = 0x1000;

struct world {
	struct core core;
	struct findings findings;
	struct image *image;
	struct code_reader *reader;
	uint8_t *code;
	uint8_t *data;
	size_t size;
};

static bool allocates(const void *data, uint64_t function)
{
	return function == MAKER;
}

static void world_init(struct world *world)
{
	*world = (struct world){ 0 };
	core_init(&world->core);
	world->code = core_add(&world->core, CODE, LENGTH, RIGHT_READ | RIGHT_EXECUTE);
	world->data = core_add(&world->core, DATA, LENGTH, RIGHT_READ);
}

static void world_deinit(struct world *world)
{
	if (world->reader)
		code_reader_destroy(world->reader);
	if (world->image)
		image_close(world->image);
	findings_deinit(&world->findings);
	core_deinit(&world->core);
}
DEFINE_DEINIT(world_deinit, struct world)

static void add(struct world *world, size_t size, const uint8_t *bytes)
{
	memcpy(world->code + world->size, bytes, size);
	world->size += size;
}

#define ADD(world, ...) add(world, sizeof((uint8_t[]){ __VA_ARGS__ }), (uint8_t[]){ __VA_ARGS__ })

static void add_call(struct world *world, uint64_t target)
{
	uint8_t bytes[5] = { 0xe8 };
	int32_t distance = (int32_t)(target - (CODE + world->size + 5));

	memcpy(bytes + 1, &distance, 4);
	add(world, sizeof(bytes), bytes);
}

static size_t find(struct world *world, const struct made_object **ret)
{
	core_write_file(&world->core);
	assert_no_error(image_open(world->core.path, &world->findings, &world->image));
	assert_no_error(code_reader_create(world->image, allocates, NULL, &world->reader));
	return code_find_objects(world->reader, CODE, CODE + world->size, ret);
}

TEST(size_and_type_of_a_made_object_are_read)
{
	_cleanup_(world_deinit) struct world world;
	const struct made_object *made;

	world_init(&world);
	ADD(&world, 0xbf, 0x30, 0, 0, 0); /* mov $0x30,%edi */
	add_call(&world, MAKER);
	ADD(&world, 0xc7, 0x40, 4, 0, 0, 0, 0); /* movl $0,4(%rax) */
	ADD(&world, 0xc7, 0x00, 0x47, 0, 0, 0); /* movl $0x47,(%rax) */
	ADD(&world, 0xc3);			/* ret */
	assert_int_equal(find(&world, &made), 1);
	assert_int_equal(made[0].size, 0x30);
	assert_int_equal(made[0].type, 0x47);
	assert_true(made[0].returned);
	assert_int_equal(made[0].maker, MAKER);
}

TEST(unoptimised_code_is_followed_through_the_stack)
{
	_cleanup_(world_deinit) struct world world;
	const struct made_object *made;

	world_init(&world);
	ADD(&world, 0x48, 0x83, 0xec, 0x28);	   /* sub $0x28,%rsp */
	ADD(&world, 0x31, 0xc0, 0x89, 0xc7);	   /* xor eax; mov eax,edi */
	ADD(&world, 0x48, 0x83, 0xc7, 0x10);	   /* add $0x10,%rdi */
	add_call(&world, MAKER);		   /* makes it */
	ADD(&world, 0x48, 0x89, 0xc7);		   /* mov %rax,%rdi */
	ADD(&world, 0x48, 0x89, 0x3c, 0x24);	   /* mov %rdi,(%rsp) */
	add_call(&world, OTHER);		   /* clears it */
	ADD(&world, 0x48, 0x8b, 0x04, 0x24);	   /* mov (%rsp),%rax */
	ADD(&world, 0xc7, 0x00, 0xcc, 0, 0, 0);	   /* movl $0xcc,(%rax) */
	ADD(&world, 0x48, 0x89, 0x44, 0x24, 0x20); /* mov %rax,0x20(%rsp) */
	ADD(&world, 0x48, 0x8b, 0x7c, 0x24, 0x20); /* mov 0x20(%rsp),%rdi */
	add_call(&world, OTHER);		   /* initialize */
	ADD(&world, 0x48, 0x8b, 0x44, 0x24, 0x20); /* mov 0x20(%rsp),%rax */
	ADD(&world, 0x48, 0x83, 0xc4, 0x28, 0xc3); /* add $0x28,%rsp; ret */
	assert_int_equal(find(&world, &made), 1);
	assert_int_equal(made[0].size, 0x10);
	assert_int_equal(made[0].type, 0xcc);
	assert_int_equal(made[0].user, OTHER);
	assert_true(made[0].returned);
}

TEST(type_that_is_a_constant_in_memory_is_read)
{
	_cleanup_(world_deinit) struct world world;
	const struct made_object *made;
	int32_t distance;

	world_init(&world);
	world.data[0x40] = 0xd0;
	ADD(&world, 0xbf, 0x20, 0, 0, 0); /* mov $0x20,%edi */
	add_call(&world, MAKER);
	distance = (int32_t)(DATA + 0x40 - (CODE + world.size + 7));
	ADD(&world, 0x48, 0x8d, 0x0d); /* lea distance(%rip),%rcx */
	add(&world, 4, (const uint8_t *)&distance);
	ADD(&world, 0x8b, 0x09, 0x89, 0x08, 0xc3); /* mov through ecx; ret */
	assert_int_equal(find(&world, &made), 1);
	assert_int_equal(made[0].type, 0xd0);
}

TEST(object_is_followed_along_the_path_that_makes_it)
{
	_cleanup_(world_deinit) struct world world;
	const struct made_object *made;

	world_init(&world);
	ADD(&world, 0xbf, 0x20, 0, 0, 0); /* mov $0x20,%edi */
	ADD(&world, 0x85, 0xf6, 0x74, 5); /* test esi; je behind the call */
	add_call(&world, MAKER);
	ADD(&world, 0xc7, 0x00, 0x47, 0, 0, 0); /* movl $0x47,(%rax) */
	ADD(&world, 0xc3);
	assert_int_equal(find(&world, &made), 1);
	assert_int_equal(made[0].type, 0x47);
	assert_int_equal(made[0].size, 0x20);
}

TEST(nothing_is_known_of_what_comes_around_again)
{
	_cleanup_(world_deinit) struct world world;
	const struct made_object *made;

	world_init(&world);
	ADD(&world, 0xbf, 0x20, 0, 0, 0); /* mov $0x20,%edi */
	add_call(&world, MAKER);
	ADD(&world, 0xc7, 0x00, 0x47, 0, 0, 0); /* movl $0x47,(%rax) */
	ADD(&world, 0x48, 0x8b, 0x06);		/* mov (%rsi),%rax */
	ADD(&world, 0x85, 0xf6, 0x75, 0xf3);	/* test; jne to the store */
	ADD(&world, 0xc3);
	assert_int_equal(find(&world, &made), 1);
	assert_int_equal(made[0].type, 0);
}

/* An object whose class is chosen by code that ends with it in eax. */
static void check_choice(size_t size, const uint8_t *code)
{
	_cleanup_(world_deinit) struct world world;
	const struct made_object *made;

	world_init(&world);
	ADD(&world, 0xbf, 0x10, 0, 0, 0); /* mov $0x10,%edi */
	add_call(&world, MAKER);
	ADD(&world, 0x49, 0x89, 0xc4, 0x85, 0xf6); /* mov rax,r12; test esi */
	add(&world, size, code);
	ADD(&world, 0x41, 0x89, 0x04, 0x24, 0xc3); /* mov eax,(r12); ret */
	assert_int_equal(find(&world, &made), 2);
	assert_int_equal(made[0].type + made[1].type, 0x13e + 0x13f);
	assert_int_equal(made[0].type ^ made[1].type, 1);
	assert_int_equal(made[0].size, 0x10);
	assert_int_equal(made[1].size, 0x10);
}

TEST(object_of_one_of_two_classes_is_of_either)
{
	static const uint8_t by_jump[] = {
		0x74, 7,	     /* je */
		0xb8, 0x3e, 1, 0, 0, /* mov $0x13e,%eax */
		0xeb, 5,	     /* jmp */
		0xb8, 0x3f, 1, 0, 0, /* mov $0x13f,%eax */
	};
	static const uint8_t by_flag[] = {
		0x31, 0xed, 0x40, 0x0f, 0x94, 0xc5, /* xor ebp; sete bpl */
		0xb8, 0x3f, 1,	  0,	0,	    /* mov $0x13f,%eax */
		0x48, 0x29, 0xe8,		    /* sub %rbp,%rax */
	};
	static const uint8_t by_byte[] = {
		0x0f, 0x94, 0xc0, 0x0f, 0xb6, 0xc0, /* sete al; movzbl */
		0x05, 0x3e, 1,	  0,	0,	    /* add $0x13e,%eax */
	};
	static const uint8_t by_move[] = {
		0xb8, 0x3e, 1,	  0, 0, /* mov $0x13e,%eax */
		0xb9, 0x3f, 1,	  0, 0, /* mov $0x13f,%ecx */
		0x0f, 0x44, 0xc1,	/* cmove %ecx,%eax */
	};

	check_choice(sizeof(by_jump), by_jump);
	check_choice(sizeof(by_flag), by_flag);
	check_choice(sizeof(by_byte), by_byte);
	check_choice(sizeof(by_move), by_move);
}

TEST(what_was_overwritten_is_not_the_object)
{
	_cleanup_(world_deinit) struct world world;
	const struct made_object *made;

	world_init(&world);
	ADD(&world, 0xbf, 0x20, 0, 0, 0); /* mov $0x20,%edi */
	add_call(&world, MAKER);
	ADD(&world, 0x48, 0x8b, 0x06);		/* mov (%rsi),%rax */
	ADD(&world, 0xc7, 0x00, 0x47, 0, 0, 0); /* movl $0x47,(%rax) */
	ADD(&world, 0xc3);
	assert_int_equal(find(&world, &made), 1);
	assert_int_equal(made[0].type, 0);
	assert_false(made[0].returned);
}

TEST(code_that_is_not_there_makes_nothing)
{
	_cleanup_(world_deinit) struct world world;
	const struct made_object *made;

	world_init(&world);
	ADD(&world, 0xc3);
	find(&world, &made);
	assert_int_equal(code_find_objects(world.reader, CODE + LENGTH, CODE + 2 * LENGTH, &made),
			 0);
	assert_int_equal(code_find_objects(world.reader, CODE, CODE, &made), 0);
	assert_int_equal(code_find_objects(world.reader, CODE + 0x800, CODE + 0x1800, &made), 0);
}
