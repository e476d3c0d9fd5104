#include "transcript.h"
const test_case forward_cases[] = {{0}};
