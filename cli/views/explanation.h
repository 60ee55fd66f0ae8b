/*
 * Why an allocation is what it is: what holds it, or what it hangs on.
 */
#ifndef CLI_VIEWS_EXPLANATION_H
#define CLI_VIEWS_EXPLANATION_H

#include "cli/views/description.h"

/* Write it, an empty line behind it. Needs the leak roots and the incoming references. */
struct error *explain_allocation(struct describer *describer, allocation_id id);

#endif
