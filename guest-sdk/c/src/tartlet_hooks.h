#ifndef TARTLET_HOOKS_H
#define TARTLET_HOOKS_H

/* What tartlet_bindings.c needs of tartlet.c. */

#include "tartlet_bindings.h"

/** Tells of a refused call, or ends the run if nobody wants to hear of it. Takes the error. */
void tartlet_refused(const char *call, tartlet_error *error, tartlet_failure *failure);

/** The host calls the program; its arguments of the call before are freed after this. */
void tartlet_begin_call(void);

/** The program has returned. */
void tartlet_end_call(void);

#endif
