#ifndef VOCABULARY_H
#define VOCABULARY_H

#include "tartlet.h"

/* The bytes of every token. */
tartlet_list_string vocabulary(tartlet_model model);

/* The mask of those tokens whose bytes are so. */
tartlet_mask mask_where(tartlet_model model, bool (*is_so)(tartlet_string bytes));

#endif
