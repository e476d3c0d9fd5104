#include "transcript.h"
const test_case constraint_cases[] = {{0}};
