/*
 * The names of C++ types as their authors wrote them.
 */
#ifndef ANALYZER_CLASSIFY_DEMANGLE_H
#define ANALYZER_CLASSIFY_DEMANGLE_H

/*
 * The type that the mangled name of a type_info stands for, to be freed. NULL if it is none, or if
 * its name would be beyond all measure: a few letters of a hostile dump can stand for gigabytes.
 */
char *demangle_type(const char *mangled);

#endif
