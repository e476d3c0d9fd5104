#include "transcript.h"
const test_case tree_cases[] = {{0}};
