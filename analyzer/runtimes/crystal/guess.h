/*
 * Which functions allocate objects, where no symbols tell: in a static program that was stripped.
 * They are the two into whose results most numbers of types are stored.
 */
#ifndef ANALYZER_RUNTIMES_CRYSTAL_GUESS_H
#define ANALYZER_RUNTIMES_CRYSTAL_GUESS_H

#include "analyzer/runtimes/crystal/functions.h"
#include "analyzer/runtimes/crystal/makers.h"

struct error *guess_makers(struct makers *makers, const struct function_list *list);

#endif
