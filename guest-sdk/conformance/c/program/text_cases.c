#include "transcript.h"
const test_case text_cases[] = {{0}};
