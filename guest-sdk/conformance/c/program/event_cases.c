#include "transcript.h"
const test_case event_cases[] = {{0}};
