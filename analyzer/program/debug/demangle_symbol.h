/*
 * Names of C++ and Rust, as the source has them.
 *
 * A mangled name of 250 bytes can stand for one of 400 MB, as it may refer to parts of itself again
 * and again. So one that would be longer than any compiler makes it is left as it is.
 */
#ifndef ANALYZER_PROGRAM_DEBUG_DEMANGLE_SYMBOL_H
#define ANALYZER_PROGRAM_DEBUG_DEMANGLE_SYMBOL_H

/*
 * The name that the symbol stands for, to be freed. NULL: it is none such, it is too long, or
 * memory is short.
 */
char *demangle_symbol(const char *symbol);

#endif
