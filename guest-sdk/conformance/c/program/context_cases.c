#include "transcript.h"
const test_case context_cases[] = {{0}};
