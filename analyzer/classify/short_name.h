/*
 * Names of the standard library's types as people write them.
 *
 *	std::map<int, std::__cxx11::basic_string<char, std::char_traits<char>,
 *	std::allocator<char> >, std::less<int>, std::allocator<...> >
 *
 * is std::map<int, std::string>. Template arguments that are the default ones are left out of the
 * library's containers, pointers and streams, and so are its inline namespaces. All other names
 * stay as they are, but for blanks; of more than a thousand letters, the first ones and a hash of
 * all are left.
 */
#ifndef ANALYZER_CLASSIFY_SHORT_NAME_H
#define ANALYZER_CLASSIFY_SHORT_NAME_H

/*
 * The short form of a demangled name, to be freed; NULL if memory is short. The short form of a
 * type or function stays as it is, so the forms of two spellings are equal. What makes no sense as
 * a name is copied, or comes out as another that makes none.
 */
char *short_name(const char *name);

#endif
