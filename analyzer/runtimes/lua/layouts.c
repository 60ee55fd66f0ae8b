/*
 * The layouts of Lua's versions, by lstate.h, lobject.h and lj_obj.h of each, as binaries have
 * them.
 */
#include "analyzer/runtimes/lua/lua.h"

/* Redis added a member to tables, in 7.0. */
#define LUA_51                                                                           \
	.type = 8, .color = 9, .fixed = 1 << 5,                                          \
	.kinds = { [4] = LUA_STRING, LUA_TABLE, LUA_FUNCTION, LUA_USERDATA,              \
		   LUA_THREAD,	     LUA_PROTO, LUA_UPVALUE },                           \
	.state = { .size = 616, .global = 184 },                                         \
	.thread = { .top = 16,                                                           \
		    .base = 24,                                                          \
		    .global = 32,                                                        \
		    .call = 40,                                                          \
		    .code = 48,                                                          \
		    .stack = 64,                                                         \
		    .calls = 80,                                                         \
		    .environment = 120,                                                  \
		    .upvalues = 152 },                                                   \
	.global = { .registry = 160,                                                     \
		    .main = 176,                                                         \
		    .objects = 40,                                                       \
		    .finalizing = 80,                                                    \
		    .metatables = 224,                                                   \
		    .names = 224,                                                        \
		    .names_end = 432 },                                                  \
	.call = { .base = 0, .function = 8, .top = 16, .code = 24, .size = 40 },         \
	.node = { .size = 40, .key = 16, .key_type = 24 },                               \
	.function = { .in_c = 10,                                                        \
		      .count = 11,                                                       \
		      .environment = 24,                                                 \
		      .proto = 32,                                                       \
		      .upvalues = 40,                                                    \
		      .c_upvalues = 40 },                                                \
	.proto = { .constants = 16,                                                      \
		   .code = 24,                                                           \
		   .protos = 32,                                                         \
		   .lines = 40,                                                          \
		   .locals = 48,                                                         \
		   .upvalues = 56,                                                       \
		   .source = 64,                                                         \
		   .upvalue_count = 72,                                                  \
		   .constant_count = 76,                                                 \
		   .code_count = 80,                                                     \
		   .proto_count = 88,                                                    \
		   .line_count = 84,                                                     \
		   .local_count = 92,                                                    \
		   .first_line = 96,                                                     \
		   .size = 120,                                                          \
		   .upvalue_size = 8 },                                                  \
	.upvalue = { .place = 16, .value = 24 }, .string = { .length = 16, .text = 24 }, \
	.userdata = { .metatable = 16, .environment = 24, .data = 40 }

static const struct lua_layout lua_51 = {
	.version = "5.1",
	.table = { .metatable = 16,
		   .array = 24,
		   .nodes = 32,
		   .array_size = 56,
		   .node_count = 11,
		   .size = 64 },
	LUA_51,
};

static const struct lua_layout lua_redis = {
	.version = "5.1 of Redis",
	.table = { .metatable = 24,
		   .array = 32,
		   .nodes = 40,
		   .array_size = 64,
		   .node_count = 16,
		   .size = 72 },
	LUA_51,
};

static const struct lua_layout lua_52 = {
	.version = "5.2",
	.type = 8,
	.color = 9,
	.fixed = 1 << 5,
	.kinds = { [4] = LUA_STRING,
		   LUA_TABLE,
		   LUA_FUNCTION,
		   LUA_USERDATA,
		   LUA_THREAD,
		   LUA_PROTO,
		   LUA_UPVALUE },
	.collectable = 1 << 6,
	.c_function = 0x26,
	.state = { .size = 704, .global = 208 },
	.thread = { .top = 16,
		    .global = 24,
		    .call = 32,
		    .stack = 56,
		    .upvalues = 96,
		    .calls = 128 },
	.global = { .registry = 64,
		    .main = 264,
		    .strings = 48,
		    .objects = 96,
		    .finalized = 104,
		    .finalizing = 168,
		    .names = 280,
		    .names_end = 496,
		    .metatables = 424 },
	.call = { .function = 0,
		  .top = 8,
		  .previous = 16,
		  .status = 34,
		  .base = 48,
		  .code = 56,
		  .in_c = 1,
		  .size = 80 },
	.table = { .array_size = 12,
		   .array = 16,
		   .nodes = 24,
		   .metatable = 40,
		   .node_count = 11,
		   .size = 56 },
	.node = { .size = 40, .key = 16, .key_type = 24 },
	.function = { .count = 10, .proto = 24, .upvalues = 32, .c_upvalues = 32 },
	.proto = { .constants = 16,
		   .code = 24,
		   .protos = 32,
		   .lines = 40,
		   .locals = 48,
		   .upvalues = 56,
		   .source = 72,
		   .upvalue_count = 80,
		   .constant_count = 84,
		   .code_count = 88,
		   .proto_count = 96,
		   .line_count = 92,
		   .local_count = 100,
		   .first_line = 104,
		   .size = 128,
		   .upvalue_size = 16 },
	.upvalue = { .place = 16, .value = 24 },
	.string = { .length = 16, .text = 24 },
	.userdata = { .metatable = 16, .environment = 24, .data = 40 },
};

static const struct lua_layout lua_53 = {
	.version = "5.3",
	.type = 8,
	.color = 9,
	.kinds = { [4] = LUA_STRING, LUA_TABLE, LUA_FUNCTION, LUA_USERDATA, LUA_THREAD, LUA_PROTO },
	.integer = 0x13,
	.collectable = 1 << 6,
	.c_function = 0x26,
	.strings_listed = true,
	.state = { .size = 1552, .thread = 8, .global = 216 },
	.thread = { .top = 16, .global = 24, .call = 32, .stack = 56, .upvalues = 64, .calls = 96 },
	.global = { .registry = 64,
		    .main = 200,
		    .strings = 48,
		    .objects = 88,
		    .finalized = 104,
		    .finalizing = 152,
		    .fixed = 160,
		    .names = 216,
		    .names_end = 488,
		    .metatables = 416 },
	.call = { .function = 0,
		  .top = 8,
		  .previous = 16,
		  .base = 32,
		  .code = 40,
		  .status = 66,
		  .in_c = 1,
		  .size = 72 },
	.table = { .array_size = 12,
		   .array = 16,
		   .nodes = 24,
		   .metatable = 40,
		   .node_count = 11,
		   .size = 56 },
	.node = { .size = 32, .key = 16, .key_type = 24 },
	.function = { .count = 10, .proto = 24, .upvalues = 32, .c_upvalues = 32 },
	.proto = { .constants = 48,
		   .code = 56,
		   .protos = 64,
		   .lines = 72,
		   .locals = 80,
		   .upvalues = 88,
		   .source = 104,
		   .upvalue_count = 16,
		   .constant_count = 20,
		   .code_count = 24,
		   .proto_count = 32,
		   .line_count = 28,
		   .local_count = 36,
		   .first_line = 40,
		   .size = 120,
		   .upvalue_size = 16 },
	.upvalue = { .place = 0, .value = 16 },
	.string = { .length = 16, .text = 24 },
	.userdata = { .metatable = 16, .environment = 32, .data = 40 },
};

/* 5.4.2 moved members of the state, and 5.4.3 again. */
#define LUA_54                                                                              \
	.type = 8, .color = 9,                                                              \
	.kinds = { [4] = LUA_STRING, LUA_TABLE,	  LUA_FUNCTION, LUA_USERDATA,               \
		   LUA_THREAD,	     LUA_UPVALUE, LUA_PROTO },                              \
	.integer = 0x03, .collectable = 1 << 6, .c_function = 0x26, .strings_listed = true, \
	.upvalues_listed = true,                                                            \
	.call = { .function = 0,                                                            \
		  .top = 8,                                                                 \
		  .previous = 16,                                                           \
		  .code = 32,                                                               \
		  .status = 62,                                                             \
		  .in_c = 2,                                                                \
		  .size = 64 },                                                             \
	.table = { .array_size = 12,                                                        \
		   .array = 16,                                                             \
		   .nodes = 24,                                                             \
		   .metatable = 40,                                                         \
		   .node_count = 11,                                                        \
		   .size = 56 },                                                            \
	.node = { .size = 24, .key = 16, .key_type = 9 },                                   \
	.function = { .count = 10, .proto = 24, .upvalues = 32, .c_upvalues = 32 },         \
	.proto = { .constants = 56,                                                         \
		   .code = 64,                                                              \
		   .protos = 72,                                                            \
		   .upvalues = 80,                                                          \
		   .lines = 88,                                                             \
		   .far_lines = 96,                                                         \
		   .locals = 104,                                                           \
		   .source = 112,                                                           \
		   .upvalue_count = 16,                                                     \
		   .constant_count = 20,                                                    \
		   .code_count = 24,                                                        \
		   .proto_count = 32,                                                       \
		   .line_count = 28,                                                        \
		   .local_count = 36,                                                       \
		   .far_line_count = 40,                                                    \
		   .first_line = 44,                                                        \
		   .size = 128,                                                             \
		   .upvalue_size = 16 },                                                    \
	.upvalue = { .place = 16, .value = 24, .next = 24 },                                \
	.string = { .length = 16, .text = 24 },                                             \
	.userdata = { .metatable = 24, .data = 40, .value_count = 10 }

#define LUA_54_GLOBAL(main_)                                                            \
	{                                                                               \
		.registry = 64, .strings = 48, .objects = 112, .finalized = 128,        \
		.finalizing = 176, .fixed = 184, .main = (main_), .names = (main_) + 8, \
		.metatables = (main_) + 216, .names_end = (main_) + 288                 \
	}

static const struct lua_layout lua_540 = {
	.version = "5.4.0",
	.state = { .size = 1624, .thread = 8, .global = 208 },
	.thread = { .top = 16, .global = 24, .call = 32, .stack = 56, .upvalues = 64, .calls = 96 },
	.global = LUA_54_GLOBAL(256),
	LUA_54,
};

static const struct lua_layout lua_542 = {
	.version = "5.4.2",
	.state = { .size = 1616, .thread = 8, .global = 200 },
	.thread = { .top = 16, .global = 24, .call = 32, .stack = 48, .upvalues = 56, .calls = 88 },
	.global = LUA_54_GLOBAL(264),
	LUA_54,
};

static const struct lua_layout lua_54 = {
	.version = "5.4",
	.state = { .size = 1624, .thread = 8, .global = 208 },
	.thread = { .top = 16, .global = 24, .call = 32, .stack = 48, .upvalues = 56, .calls = 96 },
	.global = LUA_54_GLOBAL(264),
	LUA_54,
};

/* OpenResty added members to threads. Where the roots begin differs by a word between releases. */
#define LUAJIT_21                                                                        \
	.is_jit = true, .type = 9, .color = 8, .fixed = 1 << 5,                          \
	.kinds = { [4] = LUA_STRING, LUA_UPVALUE, LUA_THREAD, LUA_PROTO,   LUA_FUNCTION, \
		   LUA_TRACE,	     LUA_CDATA,	  LUA_TABLE,  LUA_USERDATA },            \
	.thread = { .global = 16,                                                        \
		    .base = 32,                                                          \
		    .top = 40,                                                           \
		    .stack = 56,                                                         \
		    .upvalues = 64,                                                      \
		    .environment = 72 },                                                 \
	.global = { .registry = 272,                                                     \
		    .main = 192,                                                         \
		    .strings = 152,                                                      \
		    .objects = 40,                                                       \
		    .finalizing = 80,                                                    \
		    .names = 424,                                                        \
		    .names_end = 744,                                                    \
		    .light = 112 },                                                      \
	.table = { .array = 16,                                                          \
		   .metatable = 32,                                                      \
		   .nodes = 40,                                                          \
		   .array_size = 48,                                                     \
		   .node_count = 52,                                                     \
		   .size = 64 },                                                         \
	.node = { .size = 24, .key = 8 },                                                \
	.function = { .in_c = 10,                                                        \
		      .count = 11,                                                       \
		      .environment = 16,                                                 \
		      .proto = 32,                                                       \
		      .upvalues = 40,                                                    \
		      .c_upvalues = 48 },                                                \
	.proto = { .constants = 32,                                                      \
		   .upvalues = 88,                                                       \
		   .constant_count = 48,                                                 \
		   .source = 64,                                                         \
		   .code_count = 12,                                                     \
		   .first_line = 72,                                                     \
		   .line_count = 76,                                                     \
		   .lines = 80,                                                          \
		   .locals = 96,                                                         \
		   .upvalue_count = 60,                                                  \
		   .size = 104 },                                                        \
	.upvalue = { .place = 32, .value = 16 }, .string = { .length = 20, .text = 24 }, \
	.userdata = { .environment = 16, .metatable = 32, .data = 48 }

static const struct lua_layout luajit_21 = {
	.version = "LuaJIT 2.1",
	.state = { .size = 4096, .global = 96 },
	LUAJIT_21,
};

static const struct lua_layout luajit_openresty = {
	.version = "LuaJIT 2.1 of OpenResty",
	.state = { .size = 4096, .global = 112 },
	LUAJIT_21,
};

const struct lua_layout *const lua_layouts[] = {
	&lua_51,  &lua_redis, &lua_52,	  &lua_53,	     &lua_540,
	&lua_542, &lua_54,    &luajit_21, &luajit_openresty, NULL,
};
