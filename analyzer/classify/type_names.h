/*
 * The names of C++ types: from mangled to those that people write.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * The type that the mangled name of a type_info stands for, to be freed. NULL if it is none, or if
 * its name would be beyond all measure: a few letters of a hostile dump can stand for gigabytes.
 */
char *demangle_type(const char *mangled);

/*
 * The short form of a demangled name, to be freed; NULL if memory is short.
 *
 *	std::map<int, std::__cxx11::basic_string<char, std::char_traits<char>,
 *	std::allocator<char> >, std::less<int>, std::allocator<...> >
 *
 * is std::map<int, std::string>. Default template arguments of the library's containers, pointers
 * and streams are left out, and so are its inline namespaces. All other names stay as they are, but
 * for blanks; of more than a thousand letters, the first ones and a hash of all are left. The short
 * form of a short form is the same, so the forms of two spellings are equal. What makes no sense as
 * a name is copied, or comes out as another that makes none.
 */
char *short_name(const char *name);

/* The control blocks of std::shared_ptr are known by the names of their classes. */
enum {
	NO_CONTROL_BLOCK = UINT32_MAX,
	LONGEST_CONTROL_BLOCK = 34, /* bytes of a name that decide */
};

/*
 * The offset of the object that std::make_shared() put into the control block of that class; 0: it
 * holds none, or one of no class. The name is as in a type_info, with or without the * in front.
 */
uint32_t control_block_object(const char *mangled);

/* The shared type, by the control block's readable name, to be freed; NULL: unknown. */
char *control_block_shared(const char *full);
